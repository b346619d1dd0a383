"""``homer compare``: several ways to answer, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from cli.answers import models_needed, progress_listener
from cli.console import note, say, say_json, say_table
from cli.options import (
    SEVERAL_WORDS,
    AsOf,
    Choices,
    Json,
    Profile,
    Videos,
    WordsCommand,
    parse_as_of,
)
from domain.asking import Question
from domain.errors import HomerError
from domain.words import counted, format_span, plain_line, shortened
from flows.workspace import Workspace, open_workspace
from graphs.runner import Runner
from library.answers import one_line
from library.asking import make_question
from library.comparison import SideBySide, side_by_side
from library.params import split_names
from library.rounds import load_history
from library.videos import all_titles
from models.preload import preloading
from strategies.registry import check_strategy, strategy_names

SHOWN = 3
"""Pieces of evidence shown that only one strategy found."""


def compare(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")],
    video: Videos = None,
    option: Choices = None,
    as_of: AsOf = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="NAME,...",
            help="Only these, see 'homer strategies'. Repeatable. Default: all.",
        ),
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Answer a question by several strategies, and compare them.

    A row for each strategy: its answer, confidence, number of citations, rounds, model calls,
    tokens and seconds; then what only one of them found. Each answer is a trajectory of its own.

    \b
    Examples:
      homer compare "Who opens the talk?" --video talk
      homer compare "Where was it?" -v talk -o Paris -o Berlin --strategy homer,NAME
    """
    as_of_ms = parse_as_of(as_of)
    wanted = split_names(strategy) or strategy_names()
    names = tuple(dict.fromkeys(map(check_strategy, wanted)))
    with open_workspace(profile) as workspace:
        asked = make_question(workspace.store, question, video or (), option or (), as_of_ms)
        with preloading(workspace.toolbox, models_needed(workspace.toolbox)):
            found = _ask_each(workspace, asked, names, silent=json)
        titles = all_titles(workspace.store) if len(asked.videos) > 1 else {}
    say_json(found.model_dump(mode="json")) if json else _show(found, titles)


def _ask_each(
    workspace: Workspace, question: Question, names: tuple[str, ...], *, silent: bool
) -> SideBySide:
    """Ask every strategy; one that fails does not stop the others.

    Raises:
        HomerError: all of them failed; the first error.
    """
    histories, failures = [], list[HomerError]()
    with Runner(workspace.store, workspace.toolbox) as runner:
        for number, name in enumerate(names, start=1):
            if not silent:
                note(f"{name} ({number} of {len(names)})")
            try:
                with progress_listener(silent=silent) as listener:
                    result = runner.ask(question, listener, strategy=name)
            except HomerError as error:
                failures.append(error)
                note(f"homer: {name}: {error}")
                continue
            histories.append(load_history(workspace.store, result.trajectory_id))
    if not histories:
        raise failures[0]
    return side_by_side(histories)


def _show(found: SideBySide, titles: Mapping[str, str]) -> None:
    """Print the answers and what one strategy alone found, with its video if it has a title."""
    heads = ("strategy", "answer", "confidence", "cited", "rounds", "calls", "tokens", "seconds")
    rows = list[tuple[object, ...]]()
    for row in found.rows:
        answer = row.answer
        option = f"{answer.option}: " if answer and answer.option else ""
        rows.append(
            (
                row.strategy,
                shortened(f"{option}{one_line(answer.text)}") if answer else "none",
                f"{answer.confidence:.2f}" if answer else "",
                len(answer.citations) if answer else 0,
                *(row.rounds, row.calls, row.tokens, f"{row.seconds:.1f}", row.trajectory),
            )
        )
    say_table((*heads, "trajectory"), rows)
    agree = "agree" if found.answers_agree else "differ"
    say(f"the answers {agree}; {counted(found.shared, 'moment')} found by all")
    for row in found.rows:
        for piece in row.alone[:SHOWN]:
            title = f"  {plain_line(titles[piece.video])}" if piece.video in titles else ""
            text = shortened(one_line(piece.text))
            say(f"only {row.strategy}: {format_span(piece.span)}{title}  {text}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=WordsCommand, context_settings=SEVERAL_WORDS, no_args_is_help=True)(compare)
