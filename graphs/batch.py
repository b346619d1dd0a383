"""Batches: many questions at once, with bounded concurrency, streamed answers and resumption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, TypeAdapter, ValidationError

from domain.asking import Question
from domain.base import Frozen, first_problem
from domain.errors import HomerError, InputError
from graphs.ask_result import answer_json
from graphs.runner import Runner
from store.files import make_private, open_private
from store.queries.videos import find_video
from strategies.registry import check_strategy

if TYPE_CHECKING:
    from models.toolbox import Toolbox
    from store.database import Store


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

    A question that fails does not stop the others. Closing the iterator drops what has not begun.
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
                    failure = error
                yield BatchResult(name, line, failure, n, len(questions))
        finally:
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
