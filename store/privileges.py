"""Running Postgres as root, which Postgres itself refuses.

In order: a user namespace in which root is seen as ``nobody`` (files stay root's, nothing is
chmodded, no user is created); where namespaces are forbidden (Docker's default), ``nobody`` itself,
with the one capability needed to enter root's folders. Otherwise without a prefix.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from domain.errors import DatabaseError

NOBODY = 65534
_NAMESPACE = ("unshare", "-U", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
_SETPRIV = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
_CAPABLE = (*_SETPRIV, "--inh-caps=+dac_override", "--ambient-caps=+dac_override")


@dataclass(frozen=True, slots=True)
class UnprivilegedUser:
    """A command prefix and the user that must own the data folder."""

    prefix: tuple[str, ...]
    owner: int

    def own(self, path: Path) -> None:
        """Give ``path`` and everything in it to the owner, if it is not theirs already."""
        if path.stat().st_uid == self.owner:
            return
        for below in [path, *path.rglob("*")]:
            os.chown(below, self.owner, -1, follow_symlinks=False)


ROOT_RUNNERS = (UnprivilegedUser(_NAMESPACE, 0), UnprivilegedUser(_CAPABLE, NOBODY))


@cache
def find_runner() -> UnprivilegedUser:
    """Return the first way to run Postgres that works here.

    Raises:
        DatabaseError: This is root and none works.
    """
    if os.geteuid() != 0:
        return UnprivilegedUser((), os.geteuid())
    for runner in ROOT_RUNNERS:
        if _works(runner.prefix):
            return runner
    raise DatabaseError(
        "the embedded Postgres cannot run as root here (neither unshare nor setpriv works): "
        "run homer as an ordinary user, or set HOMER_DATABASE_URL to a Postgres of yours"
    )


def _works(prefix: tuple[str, ...]) -> bool:
    try:
        result = subprocess.run([*prefix, "true"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return result.returncode == 0
