"""``homer ask``: one question, or a batch of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import (
    SEVERAL_WORDS,
    AsOf,
    Choices,
    Json,
    Profile,
    Strategy,
    Verbose,
    Videos,
    WordsCommand,
)
from domain.errors import InputError


def ask(
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="The question, in quotes.")
    ] = None,
    video: Videos = None,
    option: Choices = None,
    as_of: AsOf = None,
    batch: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ask the questions of a JSON lines file.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File for the answers of a batch. Answers in it are kept."
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Number of questions of a batch that run at a time.")
    ] = 4,
    resume: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Resume an interrupted question."),
    ] = None,
    opens: Annotated[
        bool, typer.Option("--open", help="Open the images that the answer cites.")
    ] = False,
    strategy: Strategy = None,
    profile: Profile = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Answer a question, with the times in the video that support the answer.

    Without --video the question is about all videos of the library.

    --resume continues an interrupted question after its last finished step, and repeats no
    recorded model call. 'homer trajectory' lists the ids.

    A line of a batch: {"id": "q1", "video": "talk", "question": "...", "options": ["yes", "no"],
    "as_of_s": 300}. "options" and "as_of_s" are optional.

    \b
    Examples:
      homer ask "Who opens the talk?" --video talk
      homer ask "Who mentions the budget?"
      homer ask "Where was it?" -v talk -o Paris -o Berlin --as-of 12:30
      homer ask "Who opens the talk?" -v talk --strategy NAME
      homer ask "Who opens the talk?" -v talk --strategy auto
      homer ask --batch questions.jsonl --out answers.jsonl
      homer ask --resume 3f2a
    """
    if sum(given is not None for given in (question, batch, resume)) != 1:
        raise typer.BadParameter("give a question, or --batch FILE with many, or --resume ID")
    if resume is not None:
        given = (video, option, as_of, out, strategy)
        _reject("only --profile, --json, --verbose and --open go with --resume", *given)
    elif batch is not None:
        _reject("--open is for one question", opens)
        _reject("--video, --option and --as-of belong into a batch's lines", video, option, as_of)
    elif not question or not question.strip():
        raise InputError("the question is empty")
    # LangGraph and SQLAlchemy take a second to import, which help and usage errors do without.
    from cli import answers

    if resume is not None:
        return answers.resume_one(resume, profile, json, opens, verbose=verbose)
    if batch is not None:
        raise typer.Exit(answers.ask_batch(batch, out, concurrency, profile, strategy))
    return answers.ask_one(
        question or "",
        tuple(video or ()),
        tuple(option or ()),
        as_of,
        profile,
        json,
        opens,
        strategy,
        verbose=verbose,
    )


def _reject(complaint: str, *given: object) -> None:
    if any(given):
        raise typer.BadParameter(complaint)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=WordsCommand, context_settings=SEVERAL_WORDS, no_args_is_help=True)(ask)
