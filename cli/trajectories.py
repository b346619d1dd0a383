"""``homer trajectory``: what led to an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json
from domain.people import tags_in_words
from domain.trajectory import Event, Forked
from graphs.edits import fork_line
from graphs.forks import editable
from store.database import open_store
from store.home import Home
from store.queries.calls import embeddings_of
from store.queries.trajectories import (
    StoredTrajectory,
    events_of,
    find_trajectory,
    forks_of,
    list_trajectories,
    marks_of,
)
from store.queries.videos import find_videos
from views.answer_lines import answer_line, citation_line, event_lines
from views.usage import CallTotals, TrajectoryUsage, usage_in
from views.words import format_span, plain_line, shortened

Id = Annotated[
    str, typer.Argument(metavar="ID", help="Id of a trajectory, or the beginning of it.")
]


def trajectory(
    name: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="Id of a trajectory, or the beginning of it."),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option("--round", "-r", min=1, metavar="K", help="Show only this round."),
    ] = None,
    usage: Annotated[
        bool,
        typer.Option("--usage", help="Show calls, tokens, cost and time by purpose and by round."),
    ] = False,
    json: Json = False,
) -> None:
    """Show the rounds that led to an answer, or list the latest answers.

    --round K --json prints the plan, action, evidence and profile of a round. Edit them, and pass
    the file to 'homer fork ID --round K --edit FILE'.

    \b
    Examples:
      homer trajectory
      homer trajectory 3f2a --json
      homer trajectory 3f2a --usage
      homer trajectory 3f2a --round 2 --json > round.json
    """
    if name is None and (usage or at is not None):
        raise typer.BadParameter("--usage and --round need the ID of a trajectory")
    with open_store(Home.default()) as store, store.begin() as session:
        if name is None:
            listed = list_trajectories(session)
            return _show_list(listed, forks_of(session, [row.id for row in listed]), json)
        found = find_trajectory(session, name)
        events, marks = events_of(session, found.id), marks_of(session, found.id)
        cited = [one.video for one in found.answer.citations] if found.answer else []
        titles = {name: video.title for name, video in find_videos(session, cited).items()}
        used = usage_in(events, embeddings_of(session, found.id))
    if usage:
        return _show_usage(used, json)
    if at is not None:
        return _show_round(events, at, json)
    if json:
        rounds = [
            {**event.model_dump(mode="json"), "at": mark.at.isoformat(), "step": mark.step}
            for event, mark in zip(events, marks, strict=True)
        ]
        return say_json({**_as_json(found), "events": rounds})
    return _show(found, events, titles)


def _show(found: StoredTrajectory, events: Sequence[Event], titles: Mapping[str, str]) -> None:
    say(f"{found.id}  {found.state}  {found.profile}  {found.seconds:.1f} s")
    say(f"question: {plain_line(found.question.text)}")
    for event in events:
        for line in event_lines(event):
            say(line)
    if found.answer is None:
        say("no answer")
        return say(f"resume it with: homer ask --resume {found.id}")
    say(f"answer: {answer_line(found.answer, found.question)}")
    for citation in found.answer.citations:
        say(f"  {citation_line(citation, titles)}")
    return None


def _show_round(events: Sequence[Event], number: int, as_json: bool) -> None:
    shown = editable(events, number)
    if as_json:
        return say_json(shown.model_dump(mode="json"))
    for event in events:
        if event.round == number:
            for line in event_lines(event):
                say(line)
    for evidence in shown.evidence or ():
        say(
            f"    {evidence.score:.2f}  {format_span(evidence.span)}  "
            f"[{evidence.ref}] {shortened(tags_in_words(evidence.full_text))}"
        )
    return None


def _show_usage(used: TrajectoryUsage, as_json: bool) -> None:
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
    fork_lines = {name: fork_line(fork) for name, fork in forks.items()}
    if as_json:
        return say_json([{**_as_json(row), "fork": fork_lines.get(row.id)} for row in found])
    if not found:
        return note('nothing has been asked yet: homer ask "..." --video VIDEO')
    rows = [
        (
            t.id,
            t.state,
            shortened(t.question.text, 50),
            shortened(tags_in_words(t.answer.text) if t.answer else "", 40),
        )
        for t in found
    ]
    heads = ("id", "state", "question", "answer")
    if not fork_lines:
        return say_table(heads, rows)
    notes = [shortened(plain_line(fork_lines.get(t.id, "")), 90) for t in found]
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


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(trajectory)
