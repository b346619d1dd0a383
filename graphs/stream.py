"""A question whose events come as they happen, for programs that wait for other things too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable

from domain.asking import Question
from domain.live import RunEvent, RunListener
from graphs.ask import AskResult
from graphs.runner import Runner


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


async def stream(
    asker: Runner,
    question: Question,
    begun: Callable[[str], None] = lambda _: None,
    ended: Callable[[], None] = lambda: None,
) -> AsyncGenerator[RunEvent | AskResult, None]:
    """Ask in a thread of its own: every event and word as it comes, and the answer last.

    Who closes the iterator early stops the run at its next event or word; what it knows by then is
    kept as the trajectory's answer, marked as stopped, as after Ctrl-C.

    Args:
        asker: the machine.
        question: what is asked.
        begun: is given the trajectory before its first event; called in that thread.
        ended: is called in that thread when it ends, which may be after the iterator is closed.

    Raises:
        HomerError: as ``graphs.ask.ask``.
    """
    told: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    loop, stop = asyncio.get_running_loop(), Stop()

    def tell(event: RunEvent) -> None:
        if event.kind != "question":  # Before its first event a run cannot be ended with an answer.
            stop.check()
        loop.call_soon_threadsafe(told.put_nowait, event)

    asking = asyncio.ensure_future(asyncio.to_thread(_asked, asker, question, tell, begun, ended))
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


def _asked(
    asker: Runner,
    question: Question,
    tell: RunListener,
    begun: Callable[[str], None],
    ended: Callable[[], None],
) -> AskResult | BaseException:
    """The answer, or what came instead: an event loop lets no Ctrl-C out of its threads."""
    try:
        return asker.ask(question, tell, lambda _, trajectory: begun(trajectory))
    except BaseException as error:  # noqa: BLE001 - raised again by who waits for the answer
        return error
    finally:
        ended()
