"""``homer ask``: one question, or a batch of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking import BESIDE, WordsFirst
from cli.console import note, say_json
from cli.importing import ready_to_ask
from cli.options import AsOf, Json, Profile, Videos, parse_as_of
from cli.progress import ProgressMeter, meter
from domain.garbage import garbage_collection_paused

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from domain.asking import Question
    from flows.workspace import Workspace
    from graphs.batch import BatchResult


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
        _refuse("say nothing but --profile and --json with --resume", video, option, as_of, out)
        return _resume(resume, profile, json)
    if batch is not None:
        _refuse("--video, --option and --as-of belong into a batch's lines", video, option, as_of)
        raise typer.Exit(_ask_batch(batch, out, concurrency, profile))
    from domain.errors import InputError

    if not question or not question.strip():
        raise InputError("the question is empty")
    return _ask_one(question, tuple(video or ()), tuple(option or ()), as_of, profile, json)


def _refuse(complaint: str, *given: object) -> None:
    if any(given):
        raise typer.BadParameter(complaint)


def _resume(name: str, profile: str | None, json: bool) -> None:
    """Goes on with a question; one that is answered shows its answer again."""
    with garbage_collection_paused():
        from cli.answers import shown
        from cli.live import teller
        from flows.workspace import open_trajectory_workspace
        from graphs.ask import resume

    with open_trajectory_workspace(name, profile) as (desk, row), ready_to_ask(desk.toolbox):
        if row.answer is not None and row.state == "done":
            note("this question is answered already")
        with shown(desk, row.question, json) as show:
            with teller(silent=json) as tell:
                asked = resume(desk.store, desk.toolbox, row.id, tell)
            show(asked)


def _ask_one(
    text: str,
    videos: tuple[str, ...],
    options: tuple[str, ...],
    as_of: str | None,
    profile: str | None,
    json: bool,
) -> None:
    with garbage_collection_paused():
        from cli.answers import shown
        from cli.live import teller
        from flows.workspace import open_workspace
        from graphs.ask import ask

    as_of_ms = parse_as_of(as_of)
    with open_workspace(profile) as desk:
        question = _question(desk, text, videos, options, as_of_ms)
        with ready_to_ask(desk.toolbox), shown(desk, question, json) as show:
            with teller(silent=json) as tell:
                asked = ask(desk.store, desk.toolbox, question, tell)
            show(asked)


def _question(
    desk: Workspace,
    text: str,
    videos: tuple[str, ...],
    options: tuple[str, ...],
    as_of_ms: int | None,
) -> Question:
    from domain.asking import Question, check_options

    choices = check_options(options)
    with desk.store.begin() as session:
        ids = _ids(session, videos)
    return Question(text=text.strip(), videos=ids, options=choices, as_of_ms=as_of_ms)


def _ids(session: Session, names: tuple[str, ...]) -> tuple[str, ...]:
    """The videos named; the only one of the library where none is."""
    from domain.errors import InputError
    from store.queries.videos import list_videos, named_or_only

    if found := named_or_only(session, names):
        return found
    titles = ", ".join(video.title for video in list_videos(session)[:5])
    if not titles:
        raise InputError("nothing has been watched yet: homer ingest FILE")
    raise InputError(f"which video? say --video with one of: {titles}")


def _ask_batch(batch: Path, out: Path | None, concurrency: int, profile: str | None) -> int:
    """Asks what ``out`` does not answer yet; returns the exit code."""
    from flows.workspace import open_workspace
    from graphs.batch import answered_ids, read_questions, run_batch, write_batch

    questions = read_questions(batch)
    done = (answered_ids(out) if out else set()) & {question.id for question in questions}
    if done:
        note(f"{out}: {len(done)} of {len(questions)} are answered already")
    with open_workspace(profile) as desk, ready_to_ask(desk.toolbox), meter() as bar:
        bar.start(batch.stem, len(questions), len(done))
        results = run_batch(desk.store, desk.toolbox, questions, done, concurrency)
        return _follow(write_batch(out, results) if out else _printed(results), bar)


def _follow(results: Iterator[BatchResult], bar: ProgressMeter) -> int:
    """Moves the bar along; the exit code is the worst of the errors."""
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


def _printed(results: Iterator[BatchResult]) -> Iterator[BatchResult]:
    for result in results:
        if result.line is not None:
            say_json(result.line)
        yield result


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command(cls=WordsFirst, context_settings=BESIDE, no_args_is_help=True)(ask)
