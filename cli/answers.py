"""Answering questions for ``homer ask`` and ``homer fork``: progress while it runs, and the answer.

A module of its own since LangGraph and SQLAlchemy are slow to import: ``homer ask --help`` does
without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.status import Status
from rich.text import Text

from cli.console import is_terminal, note, say, say_json
from cli.options import parse_as_of
from cli.pictures import open_cited
from cli.progress import meter
from domain.asking import Question
from domain.trajectory import PartialReply, RunEvent, RunListener
from domain.words import counted, plain_line, printable
from flows.workspace import Workspace, open_trajectory_workspace, open_workspace
from graphs.ask import ask, resume
from graphs.ask_result import AskResult, StoppedEarly, answer_json
from graphs.batch import BatchResult, answered_ids, read_questions, run_batch, write_batch
from library.answers import (
    answer_lines,
    citation_line,
    confidence_line,
    event_lines,
    one_line,
    reply_tail,
)
from library.asking import make_question
from library.rounds import search_in_words
from models.preload import Name, preloading
from models.toolbox import Toolbox
from store.progress import Meter
from store.queries.videos import list_videos

ROOM = 24
"""Columns for the spinner, the call's purpose and the ends of a line."""


def ask_one(
    text: str,
    videos: tuple[str, ...],
    options: tuple[str, ...],
    as_of: str | None,
    profile: str | None,
    as_json: bool,
    opens: bool = False,
    strategy: str | None = None,
    *,
    verbose: bool = False,
) -> None:
    """Ask a question and print its answer; ``opens``: open the images that it cites."""
    as_of_ms = parse_as_of(as_of)
    with open_workspace(profile) as workspace:
        question = make_question(workspace.store, text, videos, options, as_of_ms)
        with preloading(workspace.toolbox, models_needed(workspace.toolbox)):
            run_and_show(
                workspace,
                question,
                lambda listener: ask(
                    workspace.store, workspace.toolbox, question, listener, strategy
                ),
                as_json=as_json,
                opens=opens,
                verbose=verbose,
            )


def resume_one(
    name: str,
    profile: str | None,
    as_json: bool,
    opens: bool = False,
    *,
    verbose: bool = False,
) -> None:
    """Resume a question and print its answer; an answered one prints its answer again."""
    with (
        open_trajectory_workspace(name, profile) as (workspace, row),
        preloading(workspace.toolbox, models_needed(workspace.toolbox)),
    ):
        if row.answer is not None and row.state == "done":
            note("this question is answered already")
        run_and_show(
            workspace,
            row.question,
            lambda listener: resume(workspace.store, workspace.toolbox, row.id, listener),
            as_json=as_json,
            opens=opens,
            verbose=verbose,
        )


def ask_batch(
    batch: Path,
    out: Path | None,
    concurrency: int,
    profile: str | None,
    strategy: str | None = None,
) -> int:
    """Ask what ``out`` does not answer yet; return the exit code."""
    questions = read_questions(batch)
    done = (answered_ids(out) if out else set()) & {question.id for question in questions}
    if done:
        note(f"{out}: {len(done)} of {len(questions)} are answered already")
    with (
        open_workspace(profile) as workspace,
        preloading(workspace.toolbox, models_needed(workspace.toolbox)),
        meter() as bar,
    ):
        bar.start(batch.stem, len(questions), len(done))
        results = run_batch(
            workspace.store, workspace.toolbox, questions, done, concurrency, strategy=strategy
        )
        return _follow_batch(write_batch(out, results) if out else _print_answers(results), bar)


def run_and_show(
    workspace: Workspace,
    question: Question,
    run: Callable[[RunListener | None], AskResult],
    *,
    as_json: bool,
    opens: bool = False,
    verbose: bool = False,
) -> None:
    """Run a question with its progress on stderr, and print the answer.

    Ctrl-C ends it early: the best answer so far is printed before it goes on as Ctrl-C.
    """
    try:
        with progress_listener(silent=as_json, verbose=verbose) as listener:
            result = run(listener)
    except StoppedEarly as stopped:
        _show_result(workspace, stopped.asked, question, as_json=as_json)
        raise
    _show_result(workspace, result, question, as_json=as_json)
    if opens:
        open_cited(workspace.store, result.answer)


def _show_result(
    workspace: Workspace, result: AskResult, question: Question, *, as_json: bool
) -> None:
    if as_json:
        return say_json(answer_json(result))
    return show_answer(result, question, _titles(workspace))


def show_answer(result: AskResult, question: Question, titles: Mapping[str, str]) -> None:
    """Print the answer, its confidence, its citations, and where its steps can be seen."""
    answer = result.answer
    for line in answer_lines(answer, question):
        say(line)
    say("; ".join(part for part in (confidence_line(answer), answer.note) if part))
    if result.choice is not None:
        say(f"strategy: {plain_line(result.choice.why)}")
    for citation in answer.citations:
        say(f"  {citation_line(citation, titles)}")
    if answer.not_in_memory:
        for searched in answer.searched:
            say(f"  searched: {one_line(search_in_words(searched))}")
    rounds = counted(result.rounds, "round")
    say(f"trajectory {result.trajectory_id} ({rounds}, {result.seconds:.1f} s)")


def _titles(workspace: Workspace) -> dict[str, str]:
    with workspace.store.begin() as session:
        return {video.id: video.title for video in list_videos(session)}


def models_needed(toolbox: Toolbox) -> tuple[Name, ...]:
    """Name the models that a question needs, in order: without a language model a reranker too.

    They are loaded in the background, while the question is recorded and planned.
    """
    return ("text", "reranker") if toolbox.profile.reasoner == "local" else ("text",)


def _follow_batch(results: Iterator[BatchResult], bar: Meter) -> int:
    """Move the bar along; return the highest exit code of the errors."""
    code = 0
    try:
        for result in results:
            if result.error is not None:
                code = max(code, result.error.exit_code)
                bar.say(f"homer: question {result.id}: {result.error}")
            bar.step()
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; with --out the same command asks the rest") from stop
    return code


def _print_answers(results: Iterator[BatchResult]) -> Iterator[BatchResult]:
    for result in results:
        if result.line is not None:
            say_json(result.line)
        yield result


@contextmanager
def progress_listener(
    *, silent: bool = False, verbose: bool = False
) -> Iterator[RunListener | None]:
    """Open a listener that shows a run on stderr; None where nothing is to be shown.

    On a terminal a last line shows what it does, and the model's reply as it is written. The lines
    of all events stay only where ``verbose``.
    """
    if silent or not is_terminal():
        yield print_event if verbose and not silent else None
        return
    console = Console(stderr=True)
    with console.status("") as status:
        yield _TerminalListener(console, status, verbose=verbose)


def print_event(event: RunEvent) -> None:
    """Print an event as lines, if it says something new."""
    for line in event_lines(event):
        note(line)


class _TerminalListener:
    """Shows on the last line what a run does; ``verbose``: prints the lines of events above it."""

    def __init__(self, console: Console, status: Status, *, verbose: bool) -> None:
        self._console, self._status, self._verbose = console, status, verbose

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, PartialReply):
            self._show(reply_tail(event, self._console.width - ROOM))
            return
        for line in event_lines(event):
            if self._verbose:
                self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
            else:
                self._show(printable(line).strip()[: max(0, self._console.width - ROOM)])
        if self._verbose:
            self._status.update("")

    def _show(self, line: str) -> None:
        self._status.update(Text(line, style="dim"))
