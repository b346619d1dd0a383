"""The end of a server process: when it has been idle for long, or its directory is gone."""

from __future__ import annotations

import os
import signal
import threading
import time

from store.home import Home
from store.usage import POLL_INTERVAL_S, IdleClock

STOP_TIMEOUT_S = 15.0


def stop_when_unused(home: Home, idle_s: float | None = None) -> IdleClock:
    """Stop this process when its data directory is gone, or unused for ``idle_s``.

    Args:
        idle_s: seconds without a use after which it stops; None: no limit.

    Returns:
        The clock, on which uses without a lock have to be noted.
    """
    clock = IdleClock(home)
    threading.Thread(target=_watch, args=(clock, idle_s), name="lifetime", daemon=True).start()
    return clock


def _watch(clock: IdleClock, idle_s: float | None) -> None:
    while True:
        time.sleep(POLL_INTERVAL_S)
        if clock.is_gone():
            _end()
        if idle_s is not None and clock.idle_s() > idle_s:
            with clock.unused() as free:
                if free:
                    _end()


def _end() -> None:
    """End this process as Ctrl-C would, and by force where that takes too long.

    The caller keeps its lock, so that others who want the server wait until it has ended.
    """
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_TIMEOUT_S)
    os._exit(1)
