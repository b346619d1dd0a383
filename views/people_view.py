"""Read models of the people page: appearances, crops, and pairs that may be one person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.media import IdentityKind, Video
from domain.time import TimeSpan
from people.corrections import KnownPerson, known_people
from people.face_voice_evidence import merge_close_spans
from people.likely_same import thresholds_of
from people.overlay import Overlay, are_distinct, overlay_of
from people.similar import Exemplars, SimilarPair, similar_people
from people.video_people import VideoPeople, people_of_video
from store.database import Store
from store.queries.characters import CharacterAt
from store.queries.corrections import Appearances, appearances_of, corrections_of
from store.queries.identities import (
    AppearanceSpan,
    Centre,
    appearance_spans,
    best_crops,
    identity_centres,
    seen_together,
)
from store.queries.nearest_identities import models_of_videos

GAP_MS = 5_000
"""Appearances closer than this many milliseconds are shown as one."""

SLOTS = 400
"""The most appearances shown over a video's length: more could not be told apart."""

LOOKED_AT = 200
"""The most pairs that are checked, the most similar first, until enough are found."""


class PersonEntry(Frozen):
    """A person in the list of all: the number, and the name or else the tag."""

    number: int
    label: str


class PersonCard(Frozen):
    """A person with the times they are seen and heard, and the best crop of each face by tag."""

    person: KnownPerson
    seen: tuple[TimeSpan, ...]
    heard: tuple[TimeSpan, ...]
    crops: Mapping[str, str]

    @property
    def crop(self) -> str | None:
        """Return the first crop."""
        return next(iter(self.crops.values()), None)


class PeopleView(Frozen):
    """A video, all its people by number, some of them in full, and the chosen one."""

    video: Video
    people: tuple[PersonEntry, ...]
    figures: tuple[PersonCard, ...]
    chosen: PersonCard | None = None


class PersonLane(Frozen):
    """When a person is seen and heard."""

    number: int
    label: str
    seen: tuple[TimeSpan, ...]
    heard: tuple[TimeSpan, ...]


class CardPair(Frozen):
    """Two characters that may be one person."""

    found: SimilarPair
    one: PersonCard
    other: PersonCard


def load_people_view(
    store: Store, video: str, offset: int = 0, limit: int | None = None, chosen: int | None = None
) -> PeopleView:
    """Return the people of a video as they are now: all by name, ``limit`` of them in full.

    Args:
        video: id, unambiguous beginning of one, or title.
        offset: the first that is returned in full.
        limit: how many are; None: all from there on.
        chosen: the number of one more.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        cast = people_of_video(session, video)
        page = cast.characters[offset:][:limit]
        chosen_people = [person for person in cast.characters if person.character.number == chosen]
        cards = _cards(session, cast, [*page, *chosen_people])
    names = [
        PersonEntry(number=entry.character.number, label=entry.character.label)
        for entry in cast.characters
    ]
    return PeopleView(
        video=cast.video,
        people=tuple(names),
        figures=tuple(cards[person.character.number] for person in page),
        chosen=cards[chosen] if chosen is not None and chosen_people else None,
    )


def _cards(
    session: Session, cast: VideoPeople, people: Sequence[CharacterAt]
) -> dict[int, PersonCard]:
    """Return the cards of these people, by number."""
    people = list({person.id: person for person in people}.values())
    rows = [row for person in people for row in person.members]
    gap = max(GAP_MS, cast.video.duration_ms // SLOTS)
    by_identity = _by_identity(session, cast, rows, gap)
    crops, known = best_crops(session, rows), known_people(session, cast, people)
    return {
        character.character.number: PersonCard(
            person=person,
            seen=_when(cast, character, by_identity, IdentityKind.FACE, gap),
            heard=_when(cast, character, by_identity, IdentityKind.VOICE, gap),
            crops={cast.origins[row].tag: crops[row] for row in character.members if row in crops},
        )
        for character, person in zip(people, known, strict=True)
    }


def load_lanes(store: Store, video: str, limit: int) -> tuple[tuple[PersonLane, ...], int]:
    """Return when the people who appear most are seen and heard; and how many people there are.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        cast = people_of_video(session, video)
        counts = appearances_of(session, cast.video.id, list(cast.origins))
        most = sorted(cast.characters, key=lambda person: -_appearances(person, counts))[:limit]
        rows = [row for person in most for row in person.members]
        gap = max(GAP_MS, cast.video.duration_ms // SLOTS)
        by_identity = _by_identity(session, cast, rows, gap)
    lanes = [
        PersonLane(
            number=person.character.number,
            label=person.character.label,
            seen=_when(cast, person, by_identity, IdentityKind.FACE, gap),
            heard=_when(cast, person, by_identity, IdentityKind.VOICE, gap),
        )
        for person in most
    ]
    return tuple(lanes), len(cast.characters)


def _appearances(person: CharacterAt, counts: Mapping[int, Appearances]) -> int:
    return sum(counts[row].times for row in person.members if row in counts)


def _by_identity(
    session: Session, cast: VideoPeople, rows: Sequence[int], gap_ms: int
) -> dict[int, list[AppearanceSpan]]:
    by_identity: dict[int, list[AppearanceSpan]] = {}
    for stretch in appearance_spans(session, cast.video.id, rows, gap_ms):
        by_identity.setdefault(stretch.identity, []).append(stretch)
    return by_identity


def _when(
    cast: VideoPeople,
    person: CharacterAt,
    by_identity: Mapping[int, Sequence[AppearanceSpan]],
    kind: IdentityKind,
    gap_ms: int,
) -> tuple[TimeSpan, ...]:
    rows = [row for row in person.members if cast.origins[row].kind == kind]
    spans = [
        TimeSpan.of(stretch.start_ms, stretch.end_ms)
        for row in rows
        for stretch in by_identity.get(row, ())
    ]
    return tuple(merge_close_spans(spans, gap_ms))


def likely_same_people(store: Store, video: str, limit: int = 10) -> list[CardPair]:
    """Return pairs of characters that may be one person, the most similar first.

    Their cosine reaches the model's threshold for one person. Pairs that are in one frame
    together, or that a user said are two people, are excluded.

    Raises:
        NotFound: there is no video of that name.
        Ambiguous: there are several.
    """
    with store.begin(snapshot=True) as session:
        cast = people_of_video(session, video)
        centres = identity_centres(session, cast.video.id)
        people = {person.character.number: person for person in cast.characters}
        vectors = {number: _looks(person.members, centres) for number, person in people.items()}
        truth = overlay_of(corrections_of(session, cast.video.id)) or Overlay()
        models = models_of_videos(session, [cast.video.id])[cast.video.id]
        thresholds = thresholds_of(models)
        candidates = similar_people(
            vectors, thresholds, LOOKED_AT + sum(map(len, truth.distinct.values()))
        )
        tags = {person.character.number: cast.tags(person) for person in cast.characters}
        undecided = (
            pair for pair in candidates if not are_distinct(truth, tags[pair.one], tags[pair.other])
        )
        pairs = list(_apart(session, people, list(islice(undecided, LOOKED_AT)), limit))
        both = [people[number] for pair in pairs for number in (pair.one, pair.other)]
        cards = _cards(session, cast, both)
    return [CardPair(found=pair, one=cards[pair.one], other=cards[pair.other]) for pair in pairs]


def _apart(
    session: Session, people: Mapping[int, CharacterAt], pairs: Sequence[SimilarPair], limit: int
) -> Iterator[SimilarPair]:
    """Yield the first ``limit`` pairs that are never in one frame, queried in batches."""
    left = limit
    for start in range(0, len(pairs), 2 * limit):
        batch = pairs[start : start + 2 * limit]
        members = [(people[pair.one].members, people[pair.other].members) for pair in batch]
        together = seen_together(session, members)
        met = zip(batch, together, strict=True)
        never_together = [pair for pair, is_together in met if not is_together][:left]
        yield from never_together
        left -= len(never_together)
        if not left:
            return


def _looks(rows: Sequence[int], centres: Mapping[int, Centre]) -> Exemplars:
    """Return the vectors of a person: each identity counts as often as it has exemplars."""
    looks: dict[IdentityKind, list[NDArray[np.float32]]] = {}
    for centre in (centres[row] for row in rows if row in centres):
        vector = centre.exemplars * centre.vector
        looks.setdefault(IdentityKind(centre.kind), []).append(vector)
    return looks
