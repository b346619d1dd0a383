"""Check a container's health: exit with 0 if ``$HOMER_HEALTH`` answers 200, else with 1.

A container that serves nothing, such as one for a command, sets no address and is healthy.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

PATIENCE_S = 5.0


def healthy(address: str | None) -> bool:
    """Check whether ``address`` answers; without an address the container is healthy."""
    if not address:
        return True
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as reply:  # noqa: S310
            return bool(reply.status == 200)
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.exit(not healthy(os.environ.get("HOMER_HEALTH")))
