"""The people of a video as pages show them: when they appear, what they look like, who is alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.base import Frozen
from domain.media import IdentityKind, Video
from domain.time import TimeSpan
from memory.corrections import Cast, KnownPerson, cast_of, known_people
from memory.evidence import stretches
from memory.likeness import Alike, Looks, alike
from store.database import Store
from store.queries.appearances import (
    Stretch,
    crops_of,
    exemplar_vectors,
    seen_together,
    stretches_of,
)
from store.queries.characters import CharacterAt

GAP_MS = 5_000
"""Appearances this close are shown as one."""

LOOKED_AT = 200
"""Pairs that are looked at, the most alike first, until enough are found."""


class Figure(Frozen):
    """A person with when they are seen and heard, and the best crop of each face by tag."""

    person: KnownPerson
    seen: tuple[TimeSpan, ...]
    heard: tuple[TimeSpan, ...]
    crops: Mapping[str, str]

    @property
    def crop(self) -> str | None:
        """The first crop."""
        return next(iter(self.crops.values()), None)


class Stage(Frozen):
    """A video and its people, by number."""

    video: Video
    figures: tuple[Figure, ...]

    def figure(self, number: int | None) -> Figure | None:
        """The person of that number."""
        return next((one for one in self.figures if one.person.number == number), None)


def stage(store: Store, video: str) -> Stage:
    """The people of a video as they are now.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        cast = cast_of(session, video)
        known = known_people(session, cast)
        met: dict[int, list[Stretch]] = {}
        for one in stretches_of(session, cast.video.id):
            met.setdefault(one.identity, []).append(one)
        rows = [row for one in cast.people for row in one.members]
        crops = crops_of(session, rows)
    pairs = zip(cast.people, known, strict=True)
    figures = tuple(_figure(cast, one, person, met, crops) for one, person in pairs)
    return Stage(video=cast.video, figures=figures)


def _figure(
    cast: Cast,
    one: CharacterAt,
    person: KnownPerson,
    met: Mapping[int, Sequence[Stretch]],
    crops: Mapping[int, str],
) -> Figure:
    def when(kind: IdentityKind) -> tuple[TimeSpan, ...]:
        rows = [row for row in one.members if cast.origins[row].kind == kind]
        spans = [TimeSpan.of(s.start_ms, s.end_ms) for row in rows for s in met.get(row, ())]
        return tuple(stretches(spans, GAP_MS))

    shown = {cast.origins[row].tag: crops[row] for row in one.members if row in crops}
    return Figure(
        person=person, seen=when(IdentityKind.FACE), heard=when(IdentityKind.VOICE), crops=shown
    )


def same_person(store: Store, video: str, limit: int = 10) -> list[Alike]:
    """Pairs of characters that may be one person, the most alike first.

    Those that are in one frame together are not among them.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        cast = cast_of(session, video)
        vectors = exemplar_vectors(session, cast.video.id)
        members = {one.character.number: one.members for one in cast.people}
        found: list[Alike] = []
        for pair in alike({n: _looks(rows, vectors) for n, rows in members.items()})[:LOOKED_AT]:
            if not seen_together(session, members[pair.one], members[pair.other]):
                found.append(pair)
            if len(found) == limit:
                break
    return found


def _looks(rows: Sequence[int], vectors: Mapping[int, tuple[str, list[Sequence[float]]]]) -> Looks:
    looks: dict[IdentityKind, list[Sequence[float]]] = {}
    for row in rows:
        if row in vectors:
            kind, own = vectors[row]
            looks.setdefault(IdentityKind(kind), []).extend(own)
    return looks
