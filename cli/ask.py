"""``homer ask``: one question, or a batch of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import SEVERAL_WORDS, AsOf, Json, Profile, Videos, WordsCommand
from domain.errors import InputError


def ask(
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="What you want to know.")
    ] = None,
    video: Videos = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", help="A choice of a multiple-choice question; repeatable."),
    ] = None,
    as_of: AsOf = None,
    batch: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Many questions, as JSON lines.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where a batch's answers go; what it has is not redone."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Questions of a batch at a time.")
    ] = 4,
    resume: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Go on with a question that was broken off."),
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Ask a question and get an answer with the times that support it.

    A question that was killed goes on with --resume ID from its last finished step; no call to a
    model is paid for twice. 'homer trajectory' lists the ids.

    A line of a batch: {"id": "q1", "video": "talk", "question": "...", "options": ["yes", "no"],
    "as_of_s": 300}. The last two may be left out.

    \b
    Examples:
      homer ask "Who opens the talk?" --video talk
      homer ask "Where was it?" -v talk -o Paris -o Berlin --as-of 12:30
      homer ask --batch questions.jsonl --out answers.jsonl
      homer ask --resume 3f2a
    """
    if sum(given is not None for given in (question, batch, resume)) != 1:
        raise typer.BadParameter("give a question, or --batch FILE with many, or --resume ID")
    if resume is not None:
        _reject("say nothing but --profile and --json with --resume", video, option, as_of, out)
    elif batch is not None:
        _reject("--video, --option and --as-of belong into a batch's lines", video, option, as_of)
    elif not question or not question.strip():
        raise InputError("the question is empty")
    # LangGraph and SQLAlchemy take a second to import, which help and usage errors do without.
    from cli import answers

    if resume is not None:
        return answers.resume_one(resume, profile, json)
    if batch is not None:
        raise typer.Exit(answers.ask_batch(batch, out, concurrency, profile))
    return answers.ask_one(
        question or "", tuple(video or ()), tuple(option or ()), as_of, profile, json
    )


def _reject(complaint: str, *given: object) -> None:
    if any(given):
        raise typer.BadParameter(complaint)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=WordsCommand, context_settings=SEVERAL_WORDS, no_args_is_help=True)(ask)
