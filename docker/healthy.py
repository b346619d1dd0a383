"""Whether this container does what it is there for: ``$HOMER_HEALTH`` answers 200; 0 if so, else 1.

A container that serves nothing, as one for a command, names no address and is healthy.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

PATIENCE_S = 5.0


def healthy(address: str | None) -> bool:
    """Whether ``address`` answers, or there is none to ask."""
    if not address:
        return True
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as reply:  # noqa: S310
            return bool(reply.status == 200)
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.exit(not healthy(os.environ.get("HOMER_HEALTH")))
