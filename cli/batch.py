"""``homer batch``: the questions of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say_json
from cli.options import Profile, Strategy
from cli.progress import answer_progress, meter
from flows.workspace import open_workspace
from graphs.batch import answered_ids, read_questions, run_batch, write_batch


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
        step = answer_progress(bar)
        try:
            for result in write_batch(out, results) if out else results:
                if out is None and result.line is not None:
                    say_json(result.line)
                code = max(code, result.error.exit_code if result.error else 0)
                step(result)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt("stopped; with --out the same command asks the rest") from stop
    raise typer.Exit(code)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(batch)
