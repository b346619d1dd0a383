"""``homer trajectory`` and ``homer replay``: what led to an answer, and doing it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json
from views.words import plain_line, shortened

if TYPE_CHECKING:
    from domain.trajectory import Event, Forked
    from graphs.replay import Divergence, Replayed
    from store.queries.trajectories import StoredTrajectory
    from views.usage import CallTotals, TrajectoryUsage

Id = Annotated[
    str, typer.Argument(metavar="ID", help="An answer's trajectory, by the beginning of its id.")
]


def trajectory(
    name: Annotated[
        str | None, typer.Argument(metavar="ID", help="An answer's trajectory; none lists them.")
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            "--round", "-r", min=1, metavar="K", help="Only this round; with --json, to edit it."
        ),
    ] = None,
    usage: Annotated[
        bool, typer.Option("--usage", help="What its model calls took, by purpose and by round.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the rounds that led to an answer; without an id, list the latest answers.

    With --round K --json the round's plan, action, evidence and profile are printed: what
    'homer fork ID --round K --edit FILE' takes, changed.

    \b
    Examples:
      homer trajectory
      homer trajectory 3f2a --json
      homer trajectory 3f2a --usage
      homer trajectory 3f2a --round 2 --json > round.json
    """
    from store.database import open_store
    from store.home import Home
    from store.queries.trajectories import (
        events_of,
        find_trajectory,
        forks_of,
        list_trajectories,
        marks_of,
    )

    if name is None and (usage or at is not None):
        raise typer.BadParameter("--usage and --round need the ID of a trajectory")
    with open_store(Home.default()) as store, store.begin() as session:
        if name is None:
            listed = list_trajectories(session)
            return _show_list(listed, forks_of(session, [one.id for one in listed]), json)
        found = find_trajectory(session, name)
        events, marks = events_of(session, found.id), marks_of(session, found.id)
    if usage:
        return _show_usage(events, json)
    if at is not None:
        return _show_round(events, at, json)
    if json:
        rounds = [
            {**event.model_dump(mode="json"), "at": mark.at.isoformat(), "step": mark.step}
            for event, mark in zip(events, marks, strict=True)
        ]
        return say_json({**_as_json(found), "events": rounds})
    return _show(found, events)


def _show(found: StoredTrajectory, events: Sequence[Event]) -> None:
    from views.answer_lines import answer_line, citation_line, event_lines

    say(f"{found.id}  {found.state}  {found.profile}  {found.seconds:.1f} s")
    say(f"question: {plain_line(found.question.text)}")
    for event in events:
        for line in event_lines(event):
            say(line)
    if found.answer is None:
        say("no answer")
        return say(f"go on with:  homer ask --resume {found.id}")
    say(f"answer: {answer_line(found.answer, found.question)}")
    for citation in found.answer.citations:
        say(f"  {citation_line(citation, {})}")
    return None


def _show_round(events: Sequence[Event], number: int, as_json: bool) -> None:
    from graphs.forks import editable
    from views.answer_lines import event_lines

    shown = editable(events, number)
    if as_json:
        return say_json(shown.model_dump(mode="json"))
    for event in events:
        if event.round == number:
            for line in event_lines(event):
                say(line)
    for evidence in shown.evidence or ():
        say(
            f"    {evidence.score:.2f}  {evidence.span}  "
            f"[{evidence.ref}] {shortened(evidence.text)}"
        )
    return None


def _show_usage(events: Sequence[Event], as_json: bool) -> None:
    from views.usage import usage_in

    used = usage_in(events)
    if as_json:
        return say_json(used.model_dump(mode="json"))
    say_table(("purpose", *_HEADS), _usage_rows(used.by_purpose, used))
    say()
    rounds = {str(number) if number else "before": s for number, s in used.by_round.items()}
    say_table(("round", *_HEADS), _usage_rows(rounds, used))
    say()
    return say(f"{used.tokens_in_a_round:.0f} input tokens a round, over {used.rounds} rounds")


_HEADS = ("calls", "failed", "tokens in", "tokens out", "US dollars", "seconds")


def _usage_rows(named: Mapping[str, CallTotals], used: TrajectoryUsage) -> list[tuple[object, ...]]:
    return [
        (
            name,
            *(spent.calls, spent.failed, spent.tokens_in, spent.tokens_out),
            f"{spent.cost_usd:.4f}",
            f"{spent.ms / 1000:.1f}",
        )
        for name, spent in [*named.items(), ("all", used.total)]
    ]


def _show_list(found: list[StoredTrajectory], forks: Mapping[str, Forked], as_json: bool) -> None:
    from graphs.edits import fork_line

    told = {name: fork_line(fork) for name, fork in forks.items()}
    if as_json:
        return say_json([{**_as_json(one), "fork": told.get(one.id)} for one in found])
    if not found:
        return note('nothing has been asked yet: homer ask "..." --video VIDEO')
    rows = [
        (
            t.id,
            t.state,
            shortened(t.question.text, 50),
            shortened(t.answer.text if t.answer else "", 40),
        )
        for t in found
    ]
    heads = ("id", "state", "question", "answer")
    if not told:
        return say_table(heads, rows)
    notes = [shortened(plain_line(told.get(t.id, "")), 90) for t in found]
    return say_table((*heads, "fork"), [(*r, n) for r, n in zip(rows, notes, strict=True)])


def _as_json(found: StoredTrajectory) -> dict[str, object]:
    return {
        "trajectory": found.id,
        "state": found.state,
        "machine": found.machine,
        "profile": found.profile,
        "question": found.question.model_dump(mode="json"),
        "answer": found.answer.model_dump(mode="json") if found.answer else None,
        "tokens": found.tokens,
        "seconds": found.seconds,
        "started_at": found.started_at.isoformat(),
    }


def replay(name: Id, json: Json = False) -> None:
    """Run an answer's trajectory again from its record, and see that the same comes of it.

    Model calls, searches and rankings come from the record: no model is called or loaded, and
    nothing is written. Exit code 6: it went another way, and the first difference is shown.

    \b
    Examples:
      homer replay 3f2a
      homer replay 3f2a --json
    """
    from domain.errors import Diverged
    from graphs.replay import replay as run_again
    from store.database import open_store
    from store.home import Home

    with open_store(Home.default()) as store:
        made = run_again(store, name)
    parted = made.divergence
    if json:
        say_json(_replay_json(made))
    elif parted is not None:
        _show_parting(parted)
    else:
        end = "" if made.ended else ", up to where it was broken off"
        say(
            f"{made.trajectory}: {made.events} events, the same byte for byte{end}; "
            f"{made.calls} model calls and {made.searches} searches from the record, none made"
        )
    if parted is not None:
        raise Diverged(f"the replay of {made.trajectory} parts at event {parted.at}")


def _replay_json(made: Replayed) -> dict[str, object]:
    parted = made.divergence
    return {
        "trajectory": made.trajectory,
        "same": made.whole,
        "events": made.events,
        "calls": made.calls,
        "searches": made.searches,
        "ended": made.ended,
        "divergence": parted
        and {
            "event": parted.at,
            "recorded": parted.recorded and parted.recorded.model_dump(mode="json"),
            "replayed": parted.replayed and parted.replayed.model_dump(mode="json"),
            "why": parted.why,
        },
    }


def _show_parting(parted: Divergence) -> None:
    from domain.trajectory import canonical_event

    say(f"event {parted.at} is the first that differs")
    for side, event in (("recorded", parted.recorded), ("replayed", parted.replayed)):
        say(f"{side}: {plain_line(canonical_event(event)) if event else 'none'}")
    if parted.why:
        say(f"because {plain_line(parted.why)}")


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    app.command()(trajectory)
    app.command(no_args_is_help=True)(replay)
