"""A question whose events come as they happen, for programs that wait for other things too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator

from domain.asking import Question
from domain.live import Tell, Told
from graphs.ask import Asked
from graphs.asker import Asker


class Stop:
    """Stops a run in another thread, once: what is told about its end is let through."""

    def __init__(self) -> None:
        self._wanted = threading.Event()

    def set(self) -> None:
        """Stop at the next event or word."""
        self._wanted.set()

    def check(self) -> None:
        """Called by the run at every event and word.

        Raises:
            KeyboardInterrupt: the run is to stop.
        """
        if self._wanted.is_set():
            self._wanted.clear()
            raise KeyboardInterrupt


async def stream(asker: Asker, question: Question) -> AsyncGenerator[Told | Asked, None]:
    """Ask in a thread of its own: every event and word as it comes, and the answer last.

    Who closes the iterator early stops the run at its next event or word; what it knows by then is
    kept as the trajectory's answer, marked as stopped, as after Ctrl-C.

    Raises:
        HomerError: as ``graphs.ask.ask``.
    """
    told: asyncio.Queue[Told | None] = asyncio.Queue()
    loop, stop = asyncio.get_running_loop(), Stop()

    def tell(event: Told) -> None:
        stop.check()
        loop.call_soon_threadsafe(told.put_nowait, event)

    asking = asyncio.ensure_future(asyncio.to_thread(_asked, asker, question, tell))
    asking.add_done_callback(lambda _: told.put_nowait(None))
    try:
        while (event := await told.get()) is not None:
            yield event
        made = await asking
        if isinstance(made, BaseException):
            raise made
        yield made
    finally:
        stop.set()


def _asked(asker: Asker, question: Question, tell: Tell) -> Asked | BaseException:
    """The answer, or what came instead: an event loop lets no Ctrl-C out of its threads."""
    try:
        return asker.ask(question, tell)
    except BaseException as error:  # noqa: BLE001 - raised again by who waits for the answer
        return error
