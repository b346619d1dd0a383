"""When a server process of Homer's stops by itself: idle for long, or its directory is gone."""

from __future__ import annotations

import os
import signal
import threading
import time

from store.home import Home
from store.usage import LOOK_EVERY_S, IdleClock

END_WITHIN_S = 15.0


def stop_by_itself(home: Home, idle_s: float | None = None) -> IdleClock:
    """Have this process stop when its data directory is gone, or nobody has used it for long.

    Args:
        home: the data directory.
        idle_s: seconds without a use after which it stops; None: it never does for that.

    Returns:
        The clock, which has to be told of uses that hold no lock.
    """
    clock = IdleClock(home)
    threading.Thread(target=_look, args=(clock, idle_s), name="lifetime", daemon=True).start()
    return clock


def _look(clock: IdleClock, idle_s: float | None) -> None:
    while True:
        time.sleep(LOOK_EVERY_S)
        if clock.is_gone():
            _end()
        if idle_s is not None and clock.idle_s() > idle_s:
            with clock.unused() as free:
                if free:
                    _end()


def _end() -> None:
    """End this process as Ctrl-C would, and by force where that takes too long.

    The caller goes on holding its lock, so whoever wants the server waits until it has ended.
    """
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_WITHIN_S)
    os._exit(1)
