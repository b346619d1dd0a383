"""``homer search`` and ``homer trajectory``: one retrieval, and the rounds of one answer."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import clean, note, say, say_json, say_table
from cli.options import AsOf, Json, Profile, Videos, parse_as_of

if TYPE_CHECKING:
    from memory.retrieval.result import Retrieval
    from store.queries.trajectories import StoredTrajectory


class SearchMode(StrEnum):
    """The modes that need no focus."""

    EVENT = "event"
    VIDEO = "video"
    KEYFRAME = "keyframe"


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    video: Videos = None,
    mode: Annotated[
        SearchMode, typer.Option("--mode", "-m", help="What is looked for.")
    ] = SearchMode.VIDEO,
    as_of: AsOf = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Search the memory once, with scores and times; without --video in all of it.

    Modes: event (what went on), video (what was said, read and seen), keyframe (images).

    Examples:  homer search "the budget" -v talk   homer search "a red car" --mode keyframe
    """
    from domain.asking import Mode
    from domain.errors import InputError
    from flows.desk import open_desk
    from memory.retrieval.retrievers import Retrievers
    from store.queries.clips import view_of
    from store.queries.videos import find_video, list_videos

    if not query.strip():
        raise InputError("the query is empty")
    as_of_ms = parse_as_of(as_of)
    with open_desk(profile) as desk:
        with desk.store.begin() as session:
            titles = {v.id: v.title for v in list_videos(session)}
            names = [find_video(session, name).id for name in video or ()] or list(titles)
            if not names:
                raise InputError("nothing has been watched yet: homer ingest FILE")
            view = view_of(session, names, as_of_ms)
        found = Retrievers(desk.store, desk.toolbox, desk.settings).search(view, Mode(mode), query)
    say_json(found.model_dump(mode="json")) if json else _show(found, titles)


def _show(found: Retrieval, titles: dict[str, str]) -> None:
    if found.focus is not None:
        say(f"segment {found.focus.span}  {clean(found.focus.label)}")
    if found.nothing_close:
        note("nothing close; what was nearest:")
    rows = (
        (f"{e.score:.2f}", str(e.span), clean(titles.get(e.video, e.video)), e.ref, _short(e.text))
        for e in found.evidence
    )
    say_table(("score", "time", "video", "ref", "what"), rows)
    for neighbour in found.neighbours:
        say(f"near it: {neighbour.span}  {clean(neighbour.label)}")


def _short(text: str, width: int = 120) -> str:
    line = clean(text)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."


def trajectory(
    name: Annotated[
        str | None, typer.Argument(metavar="ID", help="An answer's trajectory; none lists them.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the rounds that led to an answer; without an id, list the latest answers.

    Examples:  homer trajectory   homer trajectory 3f2a --json
    """
    from store.database import open_store
    from store.home import Home
    from store.queries.trajectories import events_of, find_trajectory, list_trajectories

    with open_store(Home.default()) as store, store.begin() as session:
        if name is None:
            return _show_list(list_trajectories(session), json)
        found = find_trajectory(session, name)
        events = events_of(session, found.id)
    if json:
        rounds = [event.model_dump(mode="json") for event in events]
        return say_json({**_as_json(found), "events": rounds})
    from cli.answers import lines_of

    say(f"{found.id}  {found.state}  {found.profile}  {found.seconds:.1f} s")
    say(f"question: {clean(found.question.text)}")
    for event in events:
        for line in lines_of(event):
            say(line)
    return _show_end(found)


def _show_end(found: StoredTrajectory) -> None:
    from cli.answers import answer_line, citation_line

    if found.answer is None:
        return say("no answer")
    say(f"answer: {answer_line(found.answer, found.question)}")
    for citation in found.answer.citations:
        say(f"  {citation_line(citation, {})}")
    return None


def _show_list(found: list[StoredTrajectory], as_json: bool) -> None:
    if as_json:
        return say_json([_as_json(one) for one in found])
    if not found:
        return note('nothing has been asked yet: homer ask "..." --video VIDEO')
    rows = (
        (t.id, t.state, _short(t.question.text, 50), _short(t.answer.text if t.answer else "", 40))
        for t in found
    )
    return say_table(("id", "state", "question", "answer"), rows)


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
    """Adds the commands of this module."""
    app.command(no_args_is_help=True)(search)
    app.command()(trajectory)
