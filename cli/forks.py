"""``homer replay``, ``fork`` and ``diff``: run a trajectory again, as it was or changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from cli.answers import run_and_show
from cli.console import note, say, say_json
from cli.options import Json, Profile, Verbose
from cli.trajectories import Id
from domain.asking import Answer, Question
from domain.base import first_problem
from domain.errors import Diverged, InputError
from domain.people import tags_in_words
from domain.trajectory import ForkEdit, canonical_event
from flows.workspace import open_trajectory_workspace
from graphs.ask import fork as run_fork
from graphs.replay import Replayed
from graphs.replay import replay as run_replay
from store.database import open_store
from store.home import Home
from views.answer_lines import answer_line, one_line
from views.comparison import ComparedRound, Difference, compare_trajectories
from views.trajectory import load_history
from views.words import counted, format_span, plain_line, shortened


def replay(name: Id, json: Json = False) -> None:
    """Replay an answer from its record, and compare every event.

    Replies of models and results of searches are read from the record: no model is called and
    nothing is written. If an event differs, it is shown, and the exit code is 6.

    \b
    Examples:
      homer replay 3f2a
      homer replay 3f2a --json
    """
    with open_store(Home.default()) as store:
        result = run_replay(store, name)
    divergence = result.divergence
    if json:
        say_json(_replay_json(result))
    elif divergence is not None:
        say(f"event {divergence.at} is the first that differs")
        for side, event in (("recorded", divergence.recorded), ("replayed", divergence.replayed)):
            say(f"{side}: {plain_line(canonical_event(event)) if event else 'none'}")
        if divergence.why:
            say(f"because {plain_line(divergence.why)}")
    else:
        end = "" if result.ended else ", up to where it was interrupted"
        say(
            f"replay matches exactly ({counted(result.events, 'event')}){end}; "
            f"{counted(result.calls, 'model call')} and {counted(result.searches, 'search')} "
            "from the record, none made"
        )
    if divergence is not None:
        raise Diverged(f"the replay of {result.trajectory} parts at event {divergence.at}")


def _replay_json(result: Replayed) -> dict[str, object]:
    divergence = result.divergence
    return {
        "trajectory": result.trajectory,
        "same": result.whole,
        "events": result.events,
        "calls": result.calls,
        "searches": result.searches,
        "ended": result.ended,
        "divergence": divergence
        and {
            "event": divergence.at,
            "recorded": divergence.recorded and divergence.recorded.model_dump(mode="json"),
            "replayed": divergence.replayed and divergence.replayed.model_dump(mode="json"),
            "why": divergence.why,
        },
    }


def fork(
    name: Id,
    at: Annotated[
        int, typer.Option("--round", "-r", min=1, metavar="K", help="The round to continue from.")
    ],
    edit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON file with the changed plan, action, evidence or profile."
        ),
    ] = None,
    profile: Profile = None,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Continue an answer from one of its rounds, with something changed.

    The new trajectory copies the rounds before K, and calls models from round K on. To change the
    plan, the action or the evidence, edit what 'homer trajectory ID --round K --json' prints.
    Without --edit and --profile, round K is decided again.

    \b
    Examples:
      homer fork 3f2a --round 2
      homer fork 3f2a --round 2 --profile gemini
      homer trajectory 3f2a --round 2 --json > round.json
      homer fork 3f2a --round 2 --edit round.json
    """
    change = read_edit(edit, profile)
    with open_trajectory_workspace(name, change.profile) as (workspace, row):
        if not json:
            note(f"a fork of {row.id} at round {at}")
        store, toolbox = workspace.store, workspace.toolbox
        run_and_show(
            workspace,
            row.question,
            lambda listener: run_fork(store, toolbox, row.id, at, change, listener),
            as_json=json,
            verbose=verbose,
        )


def read_edit(path: Path | None, profile: str | None) -> ForkEdit:
    """Read the edit in a file; ``profile``, where it is given, replaces that of the file.

    Raises:
        InputError: the file cannot be read, or is no edit; the message says where it is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8") if path else "{}"
        made = ForkEdit.model_validate_json(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except ValidationError as error:
        raise InputError(f"{path} is no edit: {first_problem(error, 'the file')}") from error
    return made.model_copy(update={"profile": profile}) if profile else made


def diff(
    one: Annotated[str, typer.Argument(metavar="A", help="Id of a trajectory.")],
    other: Annotated[str, typer.Argument(metavar="B", help="Id of another one.")],
    json: Json = False,
) -> None:
    """Compare two trajectories: their actions, evidence and answers.

    \b
    Examples:
      homer diff 3f2a 81bc
      homer diff 3f2a 81bc --json
    """
    with open_store(Home.default()) as store:
        a, b = load_history(store, one), load_history(store, other)
    found = compare_trajectories(a, b)
    if json:
        return say_json({"same": found.same, **found.model_dump(mode="json")})
    return _show_difference(found, a.question, b.question)


def _show_difference(found: Difference, a: Question, b: Question) -> None:
    if not found.same_question:
        say(f"different questions: {plain_line(a.text)} | {plain_line(b.text)}")
    for what, parting in (("actions", found.action), ("evidence", found.evidence)):
        if parting is None:
            say(f"{what}: the same in every round")
            continue
        say(f"{what}: differ from round {parting.round} on")
        say(f"  A: {_round_line(parting.a, what)}")
        say(f"  B: {_round_line(parting.b, what)}")
    say(f"found by both: {counted(found.both, 'moment')}")
    for side, only in (("A", found.only_a), ("B", found.only_b)):
        for evidence in only:
            text = shortened(tags_in_words(evidence.text), 90)
            say(f"  only {side}: {format_span(evidence.span)}  [{evidence.ref}] {text}")
    if found.same_answer:
        return say(f"both answer: {_answer_line(found.answer_a, a)}")
    say(f"A answers: {_answer_line(found.answer_a, a)}")
    return say(f"B answers: {_answer_line(found.answer_b, b)}")


def _round_line(step: ComparedRound | None, what: str) -> str:
    if step is None:
        return "had ended"
    if what == "evidence":
        return " ".join(f"[{ref}]" for ref in step.seen) or "nothing"
    action = step.action
    if action is None:
        return f"{step.subtask}: nothing"
    done = action.answer if action.kind == "answer" else f"{action.mode} {action.query!r}"
    return f"{step.subtask}: {action.kind} {one_line(done)}"


def _answer_line(answer: Answer | None, question: Question) -> str:
    return answer_line(answer, question) if answer else "nothing"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (replay, fork, diff):
        app.command(no_args_is_help=True)(command)
