"""``homer fork`` and ``homer diff``: what if a round had gone otherwise, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json
from cli.options import Json, Profile
from cli.trajectories import Id
from views.words import plain_line, shortened

if TYPE_CHECKING:
    from domain.asking import Answer, Question
    from domain.trajectory import ForkEdit
    from views.comparison import ComparedRound, Difference


def fork(
    name: Id,
    at: Annotated[
        int, typer.Option("--round", "-r", min=1, metavar="K", help="The round to go on from.")
    ],
    edit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON with another plan, action, evidence or profile."),
    ] = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Go on from a round of a trajectory as a new one, with something changed.

    The new trajectory takes over what came before the round; models are called from there on only.
    'homer trajectory ID --round K --json' prints what can be edited: change the file and give it
    back. What is left out or as it was is not changed. Without --edit and --profile the round is
    decided once more.

    \b
    Examples:
      homer fork 3f2a --round 2
      homer fork 3f2a --round 2 --profile gemini
      homer trajectory 3f2a --round 2 --json > round.json; edit it; then
      homer fork 3f2a --round 2 --edit round.json
    """
    from cli.answers import shown
    from cli.live import teller
    from flows.workspace import open_trajectory_workspace
    from graphs.ask import fork as run_fork

    change = read_edit(edit, profile)
    with open_trajectory_workspace(name, change.profile) as (desk, row):
        if not json:
            note(f"a fork of {row.id} at round {at}")
        with shown(desk, row.question, json) as show:
            with teller(silent=json) as tell:
                asked = run_fork(desk.store, desk.toolbox, row.id, at, change, tell)
            show(asked)


def read_edit(path: Path | None, profile: str | None) -> ForkEdit:
    """The edit in a file; ``profile`` is changed where it is given.

    Raises:
        InputError: the file cannot be read, or is no edit; says where it is wrong.
    """
    from pydantic import ValidationError

    from domain.errors import InputError
    from domain.trajectory import ForkEdit

    try:
        text = path.read_text(encoding="utf-8") if path else "{}"
        made = ForkEdit.model_validate_json(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{path} is no edit: {where}: {first['msg']}") from error
    return made.model_copy(update={"profile": profile}) if profile else made


def diff(
    one: Annotated[str, typer.Argument(metavar="A", help="A trajectory.")],
    other: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    json: Json = False,
) -> None:
    """Show where two trajectories part: in what they did, what they saw, and what they answered.

    \b
    Examples:
      homer diff 3f2a 81bc
      homer diff 3f2a 81bc --json
    """
    from store.database import open_store
    from store.home import Home
    from views.comparison import compare_trajectories
    from views.trajectory import load_history

    with open_store(Home.default()) as store:
        a, b = load_history(store, one), load_history(store, other)
    found = compare_trajectories(a, b)
    if json:
        return say_json({"same": found.same, **found.model_dump(mode="json")})
    return _show(found, a.question, b.question)


def _show(found: Difference, a: Question, b: Question) -> None:
    if not found.same_question:
        say(f"other questions: {plain_line(a.text)} | {plain_line(b.text)}")
    for what, parting in (("actions", found.action), ("evidence", found.evidence)):
        if parting is None:
            say(f"{what}: the same in every round")
            continue
        say(f"{what}: part at round {parting.round}")
        say(f"  A: {_step(parting.a, what)}")
        say(f"  B: {_step(parting.b, what)}")
    say(f"seen by both: {found.both}")
    for side, only in (("A", found.only_a), ("B", found.only_b)):
        for evidence in only:
            say(f"  only {side}: {evidence.span}  [{evidence.ref}] {shortened(evidence.text, 90)}")
    if found.same_answer:
        return say(f"both answer: {_said(found.answer_a, a)}")
    say(f"A answers: {_said(found.answer_a, a)}")
    return say(f"B answers: {_said(found.answer_b, b)}")


def _step(step: ComparedRound | None, what: str) -> str:
    """A step as far as it is of interest."""
    if step is None:
        return "had ended"
    if what == "evidence":
        return " ".join(f"[{ref}]" for ref in step.seen) or "nothing"
    action = step.action
    if action is None:
        return f"{step.subtask}: nothing"
    done = (
        plain_line(action.answer) if action.kind == "answer" else f"{action.mode} {action.query!r}"
    )
    return f"{step.subtask}: {action.kind} {plain_line(done)}"


def _said(answer: Answer | None, question: Question) -> str:
    from views.answer_lines import answer_line

    return answer_line(answer, question) if answer else "nothing"


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command(no_args_is_help=True)(fork)
    app.command(no_args_is_help=True)(diff)
