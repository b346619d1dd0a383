"""How to run Postgres when we are root, which Postgres refuses to be.

In order: a user namespace in which root is seen as ``nobody`` (files stay root's, nothing is
chmodded, no user is created); where namespaces are closed (Docker's default), ``nobody`` itself,
keeping the one capability that lets it enter root's folders. Not root: plainly.
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
    """A command prefix and the user that the data folder must belong to."""

    prefix: tuple[str, ...]
    owner: int

    def own(self, path: Path) -> None:
        """Gives ``path`` and all below it to the owner, where it is not theirs already."""
        if path.stat().st_uid == self.owner:
            return
        for below in [path, *path.rglob("*")]:
            os.chown(below, self.owner, -1, follow_symlinks=False)


ROOT_RUNNERS = (UnprivilegedUser(_NAMESPACE, 0), UnprivilegedUser(_CAPABLE, NOBODY))


@cache
def find_runner() -> UnprivilegedUser:
    """The first way to run Postgres that works here.

    Raises:
        DatabaseError: we are root and none works.
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
        done = subprocess.run([*prefix, "true"], capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
