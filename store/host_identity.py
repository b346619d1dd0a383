"""Host identity: machine, boot and pid namespace of a process.

Host names alone are not unique: containers of one image may share them. A process id is only
meaningful within one pid namespace since one boot.
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
"""The inode of Linux's initial pid namespace (``PROC_PID_INIT_INO``)."""


class HostIdentity(NamedTuple):
    """A digest of host name and machine id, the boot id, and the pid namespace; "": unknown."""

    machine: str
    boot: str
    pids: str

    @classmethod
    def here(cls) -> Self:
        """Return the identity of this process's host."""
        name = f"{socket.gethostname()}\0{_read(MACHINE)}"
        pids = ""
        with suppress(OSError):
            pids = str(PIDS.stat().st_ino)
        return cls(hashlib.sha256(name.encode()).hexdigest()[:16], _read(BOOT), pids)

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Parse what ``str`` returned; None if it is not a host identity."""
        parts = text.split("/")
        return cls(*parts) if len(parts) == len(cls._fields) else None

    def __str__(self) -> str:
        """Return one word, which reveals neither the host nor the machine."""
        return "/".join(self)

    def ended_before(self, now: HostIdentity) -> bool:
        """Check whether this is an earlier boot of the machine of ``now``: its processes are gone.

        False for containers: nothing is known about one that was started again.
        """
        is_initial = self.pids == now.pids == FIRST_PIDS
        return is_initial and self.machine == now.machine and self.boot != now.boot


def _read(path: Path) -> str:
    with suppress(OSError, UnicodeError):
        return path.read_text(encoding="ascii").strip()
    return ""
