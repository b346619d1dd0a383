"""In which video of a view people were last seen, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from domain.memories import MemoryView, Scope
from domain.people import CharacterRef
from domain.search import Asks, Finding, Structure, StructurePart
from domain.texts import one_line
from domain.time import TimeSpan
from people.across_videos import person_links
from people.corrected import characters_in_view
from people.persons import Persons
from retrieval.people_in_query import ViewPeople, ViewPerson
from retrieval.result import Retrieval
from store.database import Store
from store.queries.identities import last_appearances
from store.queries.recaps import began_times
from store.queries.videos import video_titles

MOST_PERSONS = 3
"""The most people of one name that are answered for."""


class Whereabouts(NamedTuple):
    """Where a person was last seen, or heard if never seen.

    ``at``: the time of day; of a file, when it was added.
    """

    label: str
    scope: Scope
    title: str
    span: TimeSpan
    at: datetime
    seen: bool


Look = Callable[[MemoryView, TimeSpan], Retrieval]
"""Finds the images of a time of the only video of a view."""


def where_last_seen(
    store: Store, view: MemoryView, structure: Structure | None, people: ViewPeople, look: Look
) -> Retrieval | None:
    """Answer where the people that a question names were last seen, with images of that time.

    Everybody is looked for in all videos of the view that they are joined across. A thing of
    somebody's, or somebody beside them, is not the person.

    Returns:
        The latest first; None for any other question, or if nobody of that name is in view.
    """
    if structure is None or structure.asks is not Asks.WHEREABOUTS:
        return None
    with store.begin(snapshot=True) as session:
        places = _last_places(session, view.scopes, people.only_named_in(structure.subject))
    looks = [
        (place, _nearest(look(view.model_copy(update={"scopes": (place.scope,)}), place.span)))
        for place in places
    ]
    shown = [(place, images) for place, images in looks if images.evidence]
    if not shown:
        return None
    return shown[0][1].model_copy(
        update={
            "evidence": tuple(piece for _, images in shown for piece in images.evidence),
            "images": tuple(image for _, images in shown for image in images.images),
            "searched": "where somebody was last seen",
            "finding": _finding(structure, shown),
        }
    )


def _nearest(found: Retrieval) -> Retrieval:
    """Restrict the images of a time to those within it, which score best; else to the nearest."""
    best = max((image.score for image in found.images), default=0.0)
    images = tuple(image for image in found.images if image.score == best)
    refs = {image.ref for image in images}
    evidence = tuple(piece for piece in found.evidence if piece.ref in refs)
    return found.model_copy(update={"images": images, "evidence": evidence})


def _last_places(
    session: Session, scopes: Sequence[Scope], people: Sequence[ViewPerson]
) -> list[Whereabouts]:
    in_view = {scope.video: scope for scope in scopes}
    links = person_links(session)
    labels = {
        links.person_of(CharacterRef(video=one.video, number=one.character.number)): (
            one.character.label
        )
        for one in people
    }
    found = [_last_of(session, in_view, person, label) for person, label in labels.items()]
    known = [one for one in found if one is not None]
    return sorted(known, key=lambda one: one.at, reverse=True)[:MOST_PERSONS]


def _last_of(
    session: Session, in_view: Mapping[str, Scope], person: Persons, label: str
) -> Whereabouts | None:
    places = [ref for ref in person if ref.video in in_view]
    videos = sorted({ref.video for ref in places})
    people = characters_in_view(session, [in_view[video] for video in videos])
    began, titles = began_times(session, videos), video_titles(session)
    found = []
    for video in videos:
        scope = in_view[video]
        numbers = {ref.number for ref in places if ref.video == video}
        rows = [
            row
            for character in people[video]
            if character.character.number in numbers
            for row in character.members
        ]
        for last in last_appearances(session, rows, scope.last_clip).values():
            span = TimeSpan.of(last.start_ms, last.end_ms)
            at = began[video].moment(last.end_ms)
            found.append(Whereabouts(label, scope, titles[video], span, at, last.seen))
    return max(found, key=lambda one: (one.seen, one.at, one.span.end_ms), default=None)


def _finding(structure: Structure, found: Sequence[tuple[Whereabouts, Retrieval]]) -> Finding:
    parts = tuple(
        StructurePart(
            label=where.label,
            text=one_line(where.title),
            refs=tuple(one.ref for one in images.evidence),
            seen=(where.span,) if where.seen else (),
            heard=() if where.seen else (where.span,),
        )
        for where, images in found
    )
    return Finding(asks=structure.asks, subject=structure.subject, parts=parts)
