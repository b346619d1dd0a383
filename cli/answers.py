"""Answers in a terminal: progress while they are searched, and how they are shown.

A module of its own since what it imports is slow to: other commands do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text

from cli.commands import Profile, Strategy
from cli.console import is_terminal, meter, note, say_json, table
from domain.moments import Answered, Moment
from domain.trajectory import PartialReply, RunEvent, RunListener
from domain.words import counted, format_span, plain_line, printable, shortened
from flows.workspace import open_workspace
from graphs.concurrent import answered_ids, read_questions, run_batch, write_batch
from library.answers import confidence_line, event_lines, one_line, option_line, reply_tail
from library.rounds import SideBySide, search_in_words

ROOM = 24
"""Columns for the spinner, the call's purpose and the ends of a line."""
ALONE = 3
"""Pieces of evidence shown that only one strategy found."""


def answered_lines(one: Answered) -> Iterator[str]:
    """Yield an answer, its confidence, its citations, and where its steps can be seen."""
    if one.option is None:
        yield from map(one_line, one.answer.splitlines())
    else:
        yield option_line(one_line(one.answer), one.option, one.chosen)
    yield "; ".join(filter(None, (confidence_line(one), one.note)))
    if one.choice is not None:
        yield f"strategy: {plain_line(one.choice)}"
    yield from map(citation_line, one.citations)
    if one.not_in_memory:
        yield from (f"  searched: {one_line(search_in_words(each))}" for each in one.searched)
    yield f"trajectory {one.id} ({counted(one.rounds, 'round')}, {one.seconds:.1f} s)"


def citation_line(cited: Moment) -> str:
    """Return ``m:ss-m:ss``, what was said or seen, the video's title and the reference."""
    text, title = shortened(one_line(cited.text), 160), plain_line(cited.title)
    return f"  {format_span(cited.span)}  {text}  ({title}) [{plain_line(cited.ref)}]"


def compared_lines(found: SideBySide) -> Iterator[str]:
    """Yield the answers, and what one strategy alone found, with its video if there are several."""
    heads = ("strategy", "answer", "confidence", "cited", "rounds", "calls", "tokens", "seconds")
    rows = list[tuple[object, ...]]()
    for row in found.rows:
        answer = row.answer
        said = ("none", "", 0)
        if answer is not None:
            option = f"{answer.option}: " if answer.option else ""
            text = shortened(f"{option}{one_line(answer.text)}")
            said = (text, f"{answer.confidence:.2f}", len(answer.citations))
        took = (row.rounds, row.calls, row.tokens, f"{row.seconds:.1f}", row.trajectory)
        rows.append((row.strategy, *said, *took))
    yield from table((*heads, "trajectory"), rows)
    agree = "agree" if found.answers_agree else "differ"
    yield f"the answers {agree}; {counted(found.shared, 'moment')} found by all"
    for row in found.rows:
        for piece in row.alone[:ALONE]:
            title = f"  {plain_line(found.titles[piece.video])}" if len(found.titles) > 1 else ""
            text = shortened(one_line(piece.text))
            yield f"only {row.strategy}: {format_span(piece.span)}{title}  {text}"


def open_images(files: Sequence[Path]) -> None:
    """Open images with this machine's program for them; say where they are if there is none."""
    if not files:
        note("this answer cites no image")
    for file in files:
        if typer.launch(str(file)) != 0:
            return note(f"no program opened the images: they are in {file.parent}")
    return None


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


# ``homer batch``: the questions of a file.


def batch(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON lines, a question each.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for the answers; those in it stay."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Number of questions that are asked at a time.")
    ] = 4,
    strategy: Strategy = None,
    profile: Profile = None,
) -> None:
    """Answer the questions of a file, several at a time.

    A line of it: {"id": "q1", "video": "talk", "question": "...", "options": ["yes", "no"],
    "as_of_s": 300}. "options" and "as_of_s" are optional. With --out, the same command goes on
    where it was stopped.

    \b
    Examples:
      homer batch questions.jsonl
      homer batch questions.jsonl --out answers.jsonl
    """
    questions = read_questions(file)
    done = (answered_ids(out) if out else set()) & {question.id for question in questions}
    if done:
        note(f"{out}: {len(done)} of {len(questions)} are answered already")
    code = 0
    with open_workspace(profile) as workspace, meter() as bar:
        bar.start(file.stem, len(questions), len(done))
        results = run_batch(
            workspace.store, workspace.toolbox, questions, done, concurrency, strategy=strategy
        )
        try:
            for result in write_batch(out, results) if out else results:
                # With a file, answers are in it already.
                if out is None and result.line is not None:
                    say_json(result.line)
                if result.error is not None:
                    bar.say(f"homer: question {result.id}: {result.error}")
                    code = max(code, result.error.exit_code)
                bar.step()
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt("stopped; with --out the same command asks the rest") from stop
    raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    app.command(no_args_is_help=True)(batch)
