"""Runs as iterators of events, asynchronous ones for programs that wait for other things too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from queue import SimpleQueue

from domain.asking import Question
from domain.trajectory import RunEvent, RunListener
from graphs.ask_result import AskResult
from graphs.runner import Runner


class Stop:
    """Stops a run in another thread, once: later events about its end still pass."""

    def __init__(self) -> None:
        self._wanted = threading.Event()

    def set(self) -> None:
        """Stop at the next event or word."""
        self._wanted.set()

    def check(self) -> None:
        """Raise if the run is to stop; called at every event and word.

        Raises:
            KeyboardInterrupt: the run is to stop.
        """
        if self._wanted.is_set():
            self._wanted.clear()
            raise KeyboardInterrupt


async def stream(
    runner: Runner,
    question: Question,
    begun: Callable[[str], None] = lambda _: None,
    ended: Callable[[], None] = lambda: None,
    strategy: str | None = None,
) -> AsyncGenerator[RunEvent | AskResult, None]:
    """Ask in a thread of its own: yield every event and word, and the answer last.

    Closing the iterator early stops the run at its next event or word; its best answer so far is
    stored, marked as stopped, as after Ctrl-C.

    Args:
        begun: called in that thread with the trajectory, before its first event.
        ended: called in that thread when it ends, which may be after the iterator is closed.
        strategy: another than the settings name.

    Raises:
        HomerError: as ``graphs.runner.Runner.ask``.
    """
    events: asyncio.Queue[RunEvent | None] = asyncio.Queue()
    loop, stop = asyncio.get_running_loop(), Stop()

    listener = _until(stop, lambda event: loop.call_soon_threadsafe(events.put_nowait, event))
    asking = asyncio.ensure_future(
        asyncio.to_thread(_answer_or_error, runner, question, listener, begun, ended, strategy)
    )
    asking.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        result = await asking
        if isinstance(result, BaseException):
            raise result
        yield result
    finally:
        stop.set()


def iterate(
    runner: Runner, question: Question, strategy: str | None = None
) -> Generator[RunEvent | AskResult]:
    """Ask as ``stream`` does: yield every event and word, and the answer last.

    Raises:
        HomerError: as ``graphs.runner.Runner.ask``.
    """
    events: SimpleQueue[RunEvent | AskResult | BaseException] = SimpleQueue()
    stop = Stop()
    listener = _until(stop, events.put)

    def ask() -> None:
        begun, ended = lambda _: None, lambda: None
        events.put(_answer_or_error(runner, question, listener, begun, ended, strategy))

    threading.Thread(target=ask, name="ask", daemon=True).start()
    try:
        while not isinstance(event := events.get(), AskResult):
            if isinstance(event, BaseException):
                raise event
            yield event
        yield event
    finally:
        stop.set()


def _until(stop: Stop, listener: Callable[[RunEvent], object]) -> RunListener:
    def on_event(event: RunEvent) -> None:
        if event.kind != "question":  # Before its first event a run cannot be ended with an answer.
            stop.check()
        listener(event)

    return on_event


def _answer_or_error(
    runner: Runner,
    question: Question,
    listener: RunListener,
    begun: Callable[[str], None],
    ended: Callable[[], None],
    strategy: str | None,
) -> AskResult | BaseException:
    """Return the answer or the error: an event loop lets no Ctrl-C out of its threads."""
    try:
        return runner.ask(
            question, listener, lambda _, trajectory: begun(trajectory), strategy=strategy
        )
    except BaseException as error:  # noqa: BLE001 - raised again by who waits for the answer
        return error
    finally:
        ended()
