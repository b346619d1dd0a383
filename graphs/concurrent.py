"""Questions that run beside other work: as streams of events, in background threads, in batches.

Streams are asynchronous ones too; batches have bounded concurrency, and are resumed.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pydantic import Field, TypeAdapter, ValidationError

from domain.asking import Question
from domain.base import Frozen, first_problem
from domain.errors import HomerError, InputError
from domain.trajectory import ForkEdit, PartialReply, RunEvent, RunListener
from graphs.ask_result import AskResult, StoppedEarly, answer_json
from graphs.runner import Runner
from store.files import make_private, open_private
from store.queries.videos import find_video
from strategies.registry import check_strategy

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


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
        # Closed early, the run stops at its next event or word; its best answer so far is stored,
        # marked as stopped, as after Ctrl-C.
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


# Background threads. A run continues in a thread of this process, watched or not. Every step is
# recorded, so a process that ends loses nothing but time: ``resume`` continues the run.


GONE = "the run ended without an answer"


class BackgroundRun:
    """One run: its model's current reply, and the error if it failed."""

    def __init__(self) -> None:
        self.said: PartialReply | None = None
        self.error = ""
        self._stop = Stop()

    def tell(self, event: RunEvent) -> None:
        """Receive an event or word of the run.

        Raises:
            KeyboardInterrupt: the run is to stop.
        """
        self._stop.check()
        self.said = event if isinstance(event, PartialReply) else None

    def stop(self) -> None:
        """End at the next event or word, with the best answer so far."""
        self._stop.set()


class BackgroundRuns:
    """The runs of this process, by trajectory. Thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[BackgroundRun, threading.Thread]] = {}
        self._lock = threading.Lock()

    def ask(self, runner: Runner, question: Question, strategy: str | None = None) -> str:
        """Start answering a question in the background; return the trajectory.

        Raises:
            HomerError: as ``Runner.begin``.
        """
        run = BackgroundRun()
        state, context = runner.begin(question, run.tell, strategy=strategy)
        return self._start(state["trajectory"], run, lambda: runner.run(state, context))

    def fork(self, runner: Runner, name: str, number: int, edit: ForkEdit) -> str:
        """Start a fork in the background; return its trajectory.

        Raises:
            HomerError: as ``Runner.begin_fork``.
        """
        run = BackgroundRun()
        state, context = runner.begin_fork(name, number, edit, run.tell)
        return self._start(state["trajectory"], run, lambda: runner.run(state, context))

    def resume(self, runner: Runner, trajectory: str) -> str:
        """Resume an interrupted question; ``trajectory`` is its whole id."""
        run = BackgroundRun()
        return self._start(trajectory, run, lambda: runner.resume(trajectory, run.tell))

    def running(self, trajectory: str) -> bool:
        entry = self._runs.get(trajectory)
        return entry is not None and entry[1].is_alive()

    def said(self, trajectory: str) -> PartialReply | None:
        """Return what the model is saying, if it is."""
        entry = self._runs.get(trajectory)
        return entry[0].said if entry else None

    def error(self, trajectory: str) -> str:
        """Return why the run ended without an answer; "" if it did not."""
        entry = self._runs.get(trajectory)
        return entry[0].error if entry else ""

    def stop(self, trajectory: str) -> None:
        """Stop a run of this process with the best answer so far."""
        if self.running(trajectory):
            self._runs[trajectory][0].stop()

    def wait(self, trajectory: str, timeout_s: float | None = None) -> None:
        entry = self._runs.get(trajectory)
        if entry is not None:
            entry[1].join(timeout_s)

    def _start(self, trajectory: str, run: BackgroundRun, work: Callable[[], object]) -> str:
        # A daemon thread: Ctrl-C does not wait for a model.
        thread = threading.Thread(
            target=_run_safely, args=(run, work), name=f"ask {trajectory}", daemon=True
        )
        with self._lock:
            self._runs[trajectory] = (run, thread)
        thread.start()
        return trajectory


def _run_safely(run: BackgroundRun, work: Callable[[], object]) -> None:
    """Run to the end of the thread, and note the error, since nobody can catch it."""
    try:
        work()
    except (StoppedEarly, KeyboardInterrupt):
        pass
    except HomerError as error:
        run.error = str(error)
    except BaseException as error:
        run.error = f"{GONE}: {type(error).__name__}"
        raise
    finally:
        run.said = None


# Batches: many questions at once.


class BatchQuestion(Frozen):
    """One line of a batch file. ``video`` is an id, an unambiguous prefix or a title."""

    id: str | int
    video: str
    question: str = Field(min_length=1)
    options: tuple[str, ...] = Field(default=(), max_length=26)
    as_of_s: float | None = Field(default=None, ge=0, le=1e11)


_ID: TypeAdapter[str | int] = TypeAdapter(str | int)


@dataclass(frozen=True)
class BatchResult:
    """One finished question: its answer line, or the error."""

    id: str | int
    line: dict[str, Any] | None
    error: HomerError | None
    finished: int
    total: int


def read_questions(path: Path) -> list[BatchQuestion]:
    """Read the questions of a JSON lines file.

    Raises:
        InputError: the file cannot be read, a line is not a question, or an id is repeated.
    """
    try:
        # Text may contain characters that end a line for Python but not for JSON.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the batch file {path} cannot be read: {error}") from error
    questions: dict[str | int, BatchQuestion] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            question = BatchQuestion.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"{path}, line {number}: {first_problem(error, 'line')}") from error
        if question.id in questions:
            raise InputError(f"{path}: the id {question.id!r} comes twice")
        questions[question.id] = question
    return [*questions.values()]


def answered_ids(path: Path) -> set[str | int]:
    """Return the ids that the output file answers; an incomplete last line is cut off.

    Raises:
        InputError: a complete line is not an answer, so this is not the output of a batch.
    """
    if not path.exists():
        return set()
    complete = path.read_bytes().splitlines(keepends=True)
    incomplete = complete.pop() if complete and not complete[-1].endswith(b"\n") else b""
    ids = set[str | int]()
    for number, line in enumerate(complete, start=1):
        try:
            ids.add(_ID.validate_python(json.loads(line)["id"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{path}, line {number} is no answer: name another output") from error
    if incomplete:
        with path.open("r+b") as file:
            file.truncate(sum(len(line) for line in complete))
    return ids


def run_batch(
    store: Store,
    toolbox: Toolbox,
    questions: Sequence[BatchQuestion],
    done: Collection[str | int] = frozenset(),
    workers: int | None = None,
    make: Callable[[Store, Toolbox], Runner] = Runner,
    strategy: str | None = None,
) -> Iterator[BatchResult]:
    """Ask all questions that are not ``done``; yield results as they finish.

    ``workers`` is how many are asked at a time; by default one per processor, at most 4.
    ``strategy``: another than the settings name.

    Raises:
        NotFound: there is no such strategy or video.
    """
    check_strategy(strategy or toolbox.profile.settings.ask.strategy)
    remaining = [q for q in questions if q.id not in done]
    with store.begin() as session:
        ids = {name: find_video(session, name).id for name in sorted({q.video for q in remaining})}
    resolved = [
        Question(
            text=q.question,
            videos=(ids[q.video],),
            options=q.options,
            as_of_ms=None if q.as_of_s is None else round(q.as_of_s * 1000),
        )
        for q in remaining
    ]
    pool = ThreadPoolExecutor(workers or min(4, os.cpu_count() or 1))
    with make(store, toolbox) as runner:
        try:
            futures = {
                pool.submit(runner.ask, question, strategy=strategy): item.id
                for item, question in zip(remaining, resolved, strict=True)
            }
            start = len(questions) - len(remaining)
            for n, future in enumerate(as_completed(futures), start=start + 1):
                name, line, failure = futures[future], None, None
                try:
                    line = answer_json(future.result(), name)
                except HomerError as error:
                    # A question that fails does not stop the others.
                    failure = error
                yield BatchResult(name, line, failure, n, len(questions))
        finally:
            # Closing the iterator drops what has not begun.
            pool.shutdown(wait=True, cancel_futures=True)


def write_batch(path: Path, results: Iterator[BatchResult]) -> Iterator[BatchResult]:
    """Append each answer to ``path`` as it arrives, flushed, and pass the result on.

    The file is readable by its owner only.
    """
    if not path.parent.is_dir():
        make_private(path.parent)
    with open_private(path, append=True) as file:
        for result in results:
            if result.line is not None:
                file.write(json.dumps(result.line, ensure_ascii=False) + "\n")
                file.flush()
            yield result
