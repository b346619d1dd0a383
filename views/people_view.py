"""The people of a video as pages show them: when they appear, what they look like, who is alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.media import IdentityKind, Video
from domain.time import TimeSpan
from models.thresholds import same_face, same_voice
from people.corrections import KnownPerson, VideoPeople, cast_of, known_people
from people.face_voice_evidence import stretches
from people.overlay import Truth, are_apart, truth_of
from people.similar import Looks, SimilarPair, alike
from store.database import Store
from store.queries.appearances import (
    Centre,
    Stretch,
    centres_of,
    crops_of,
    seen_together,
    stretches_of,
)
from store.queries.characters import CharacterAt
from store.queries.corrections import corrections_of
from store.queries.videos import video_state

GAP_MS = 5_000
"""Appearances this close are shown as one."""

SLOTS = 400
"""A length of a video has at most so many appearances: more could not be told apart."""

LOOKED_AT = 200
"""Pairs that are looked at, the most alike first, until enough are found."""


class Listed(Frozen):
    """A person among all: the number, and the name or else the tag."""

    number: int
    label: str


class PersonCard(Frozen):
    """A person with when they are seen and heard, and the best crop of each face by tag."""

    person: KnownPerson
    seen: tuple[TimeSpan, ...]
    heard: tuple[TimeSpan, ...]
    crops: Mapping[str, str]

    @property
    def crop(self) -> str | None:
        """The first crop."""
        return next(iter(self.crops.values()), None)


class PeopleView(Frozen):
    """A video, all its people by number, some of them in full, and the one that is chosen."""

    video: Video
    people: tuple[Listed, ...]
    figures: tuple[PersonCard, ...]
    chosen: PersonCard | None = None


class Pair(Frozen):
    """Two who may be one person."""

    found: SimilarPair
    one: PersonCard
    other: PersonCard


def stage(
    store: Store, video: str, offset: int = 0, limit: int | None = None, chosen: int | None = None
) -> PeopleView:
    """The people of a video as they are now: all by name, ``limit`` of them in full.

    Args:
        store: the store.
        video: id, unambiguous beginning of one, or title.
        offset: the first that is told of in full.
        limit: how many are; None: all from there on.
        chosen: the number of one more.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        cast = cast_of(session, video)
        page = cast.people[offset:][:limit]
        one = [each for each in cast.people if each.character.number == chosen]
        figures = _figures(session, cast, [*page, *one])
    names = [Listed(number=c.character.number, label=c.character.label) for c in cast.people]
    return PeopleView(
        video=cast.video,
        people=tuple(names),
        figures=tuple(figures[each.character.number] for each in page),
        chosen=figures[chosen] if chosen is not None and one else None,
    )


def _figures(
    session: Session, cast: VideoPeople, people: Sequence[CharacterAt]
) -> dict[int, PersonCard]:
    """These people in full, by number."""
    people = list({one.id: one for one in people}.values())
    rows = [row for one in people for row in one.members]
    gap = max(GAP_MS, cast.video.duration_ms // SLOTS)
    met: dict[int, list[Stretch]] = {}
    for found in stretches_of(session, cast.video.id, rows, gap):
        met.setdefault(found.identity, []).append(found)
    crops, known = crops_of(session, rows), known_people(session, cast, people)
    return {
        one.character.number: PersonCard(
            person=person,
            seen=_when(cast, one, met, IdentityKind.FACE, gap),
            heard=_when(cast, one, met, IdentityKind.VOICE, gap),
            crops={cast.origins[row].tag: crops[row] for row in one.members if row in crops},
        )
        for one, person in zip(people, known, strict=True)
    }


def _when(
    cast: VideoPeople,
    one: CharacterAt,
    met: Mapping[int, Sequence[Stretch]],
    kind: IdentityKind,
    gap_ms: int,
) -> tuple[TimeSpan, ...]:
    rows = [row for row in one.members if cast.origins[row].kind == kind]
    spans = [TimeSpan.of(s.start_ms, s.end_ms) for row in rows for s in met.get(row, ())]
    return tuple(stretches(spans, gap_ms))


def same_person(store: Store, video: str, limit: int = 10) -> list[Pair]:
    """Pairs of characters that may be one person, the most alike first.

    They are at or near the cosine at which the model takes two for one (`likeness.NEAR`). Those
    that are in one frame together, or were said to be two people, are not among them.

    Raises:
        NotFound: no video goes by that name.
        Ambiguous: several do.
    """
    with store.begin(snapshot=True) as session:
        cast = cast_of(session, video)
        centres = centres_of(session, cast.video.id)
        people = {one.character.number: one for one in cast.people}
        looks = {number: _looks(one.members, centres) for number, one in people.items()}
        truth = truth_of(corrections_of(session, cast.video.id)) or Truth()
        same = _thresholds(session, cast.video.id)
        close = alike(looks, same, LOOKED_AT + sum(map(len, truth.apart.values())))
        found = list(_apart(session, people, _undecided(cast, truth, close), limit))
        both = [people[number] for one in found for number in (one.one, one.other)]
        figures = _figures(session, cast, both)
    return [Pair(found=one, one=figures[one.one], other=figures[one.other]) for one in found]


def _thresholds(session: Session, video: str) -> dict[IdentityKind, float]:
    """The cosines at which the models that watched a video take two for one."""
    state = video_state(session, video)
    models = state.models if state else {}
    return {
        IdentityKind.FACE: same_face(models.get("faces", "")),
        IdentityKind.VOICE: same_voice(models.get("speaker", "")),
    }


def _undecided(cast: VideoPeople, truth: Truth, pairs: Sequence[SimilarPair]) -> list[SimilarPair]:
    """The first pairs that nobody said are two people."""
    tags = {one.character.number: cast.tags(one) for one in cast.people}
    left = (one for one in pairs if not are_apart(truth, tags[one.one], tags[one.other]))
    return list(islice(left, LOOKED_AT))


def _apart(
    session: Session, people: Mapping[int, CharacterAt], pairs: Sequence[SimilarPair], limit: int
) -> Iterator[SimilarPair]:
    """The first ``limit`` pairs that are never in one frame; looked up some at a time."""
    left = limit
    for start in range(0, len(pairs), 2 * limit):
        some = pairs[start : start + 2 * limit]
        members = [(people[one.one].members, people[one.other].members) for one in some]
        met = seen_together(session, members)
        fine = [one for one, together in zip(some, met, strict=True) if not together][:left]
        yield from fine
        left -= len(fine)
        if not left:
            return


def _looks(rows: Sequence[int], centres: Mapping[int, Centre]) -> Looks:
    """What a person is like: each identity counts as often as it has exemplars."""
    looks: dict[IdentityKind, list[Sequence[float]]] = {}
    for centre in (centres[row] for row in rows if row in centres):
        vector = (centre.exemplars * centre.vector).tolist()
        looks.setdefault(IdentityKind(centre.kind), []).append(vector)
    return looks
