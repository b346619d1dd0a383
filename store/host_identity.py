"""Where a process runs: host names alone are given twice, as to containers of one image.

A process id means something only among the processes of one pid namespace, since one boot.
"""

from __future__ import annotations

import hashlib
import socket
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

MACHINE = Path("/etc/machine-id")
BOOT = Path("/proc/sys/kernel/random/boot_id")
PIDS = Path("/proc/self/ns/pid")
FIRST_PIDS = "4026531836"
"""The inode of the namespace that Linux itself begins with (``PROC_PID_INIT_INO``)."""


class HostIdentity(NamedTuple):
    """A digest of host name and machine id, the boot, and the pid namespace; "": none is told."""

    machine: str
    boot: str
    pids: str

    @classmethod
    def here(cls) -> Self:
        """Where this process runs."""
        named = f"{socket.gethostname()}\0{_read(MACHINE)}"
        pids = ""
        with suppress(OSError):
            pids = str(PIDS.stat().st_ino)
        return cls(hashlib.sha256(named.encode()).hexdigest()[:16], _read(BOOT), pids)

    @classmethod
    def of(cls, told: str) -> Self | None:
        """What ``str`` made of one; None where it is none."""
        parts = told.split("/")
        return cls(*parts) if len(parts) == len(cls._fields) else None

    def __str__(self) -> str:
        """One word, which names neither the host nor the machine."""
        return "/".join(self)

    def ended_before(self, now: HostIdentity) -> bool:
        """Whether this was an earlier boot of the machine of ``now``, whose processes are gone.

        Containers are not told apart from their hosts' others so, but by their namespace: of one
        that was begun anew nothing is known.
        """
        real = self.pids == now.pids == FIRST_PIDS
        return real and self.machine == now.machine and self.boot != now.boot


def _read(path: Path) -> str:
    with suppress(OSError, UnicodeError):
        return path.read_text(encoding="ascii").strip()
    return ""
