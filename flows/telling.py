"""Who is told what a process does: its log, and a collector where the environment names one."""

from __future__ import annotations

from flows.logs import set_up
from store.home import Home


def begin_to_tell(home: Home, level: str | None = None) -> None:
    """From here on this process tells what it does.

    Raises:
        InputError: the environment asks for a log that there is not.
        SetupError: it names a collector, and the extra ``otel`` is not installed.
    """
    set_up(home, level)
