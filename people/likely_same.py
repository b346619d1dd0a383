"""Finds characters of other videos that may be the same person, by face and by voice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.errors import InputError
from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import CharacterRef, Correction, LikelySame, PersonOfVideo
from domain.words import marked
from models.specs import same_face, same_voice
from people.across_videos import join, person_links
from people.corrections import LAST_CLIP
from people.identities import mean_direction
from store.database import Store
from store.queries.characters import characters_in_view
from store.queries.identities import centres_of
from store.queries.people_in_view import PORTS, models_of_videos, nearest_identities

# Finds pairs of characters whose exemplars are alike enough to be one person; pure.

MIN_COSINE_SHARE = 1.0
"""Share of a model's same-person cosine from which a pair is suggested."""

Exemplars = Mapping[IdentityKind, Sequence[Sequence[float] | NDArray[np.float32]]]
"""The exemplar vectors of one person by kind, shape (D,) each."""


def similar_people(
    people: Mapping[int, Exemplars],
    thresholds: Mapping[IdentityKind, float],
    limit: int | None = None,
) -> list[LikelySame[int]]:
    """Return pairs of characters that may be the same person, most similar first.

    A pair that is alike by face and by voice is returned once, by the better of both. Characters
    without exemplars of a kind are not compared by it.

    Args:
        people: Number of the character -> its exemplars.
        thresholds: For each kind, the least cosine for the same person, as its model declares.
    """

    def rank(pair: LikelySame[int]) -> float:
        # Cosines of face and voice models differ in scale: each is divided by its own threshold.
        return pair.cosine / thresholds[pair.kind]

    pairs = [
        pair
        for kind in thresholds
        for pair in _of_kind(people, kind, MIN_COSINE_SHARE * thresholds[kind], limit)
    ]
    best: dict[tuple[int, int], LikelySame[int]] = {}
    for pair in sorted(pairs, key=rank, reverse=True):
        best.setdefault((pair.one, pair.other), pair)
    return sorted(best.values(), key=lambda a: (-rank(a), a.one, a.other))[:limit]


def mean_look(vectors: Sequence[Sequence[float] | NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the mean direction of vectors (N, D), shape (D,), length 1."""
    return np.asarray(mean_direction(vectors), dtype=np.float32)


def _of_kind(
    people: Mapping[int, Exemplars], kind: IdentityKind, min_cosine: float, limit: int | None
) -> Iterator[LikelySame[int]]:
    vectors_by_number = {
        number: looks[kind] for number, looks in sorted(people.items()) if looks.get(kind)
    }
    # Vectors of different length come from different models and cannot be compared.
    for size in sorted({len(vectors[0]) for vectors in vectors_by_number.values()}):
        numbers = [n for n, vectors in vectors_by_number.items() if len(vectors[0]) == size]
        rows = np.stack([mean_look(vectors_by_number[n]) for n in numbers])
        cosines = np.clip(rows @ rows.T, -1.0, 1.0)
        close = np.argwhere(np.triu(cosines >= min_cosine, k=1))
        # The best pairs overall are among the best pairs of each kind.
        best = np.argsort(-cosines[tuple(close.T)], kind="stable")[:limit]
        for i, j in close[best]:
            cosine = float(cosines[i, j])
            yield LikelySame[int](one=numbers[i], other=numbers[j], kind=kind, cosine=cosine)


# Pairs characters of one video with those of others whose faces or voices are alike; pure.

Looks = Mapping[IdentityKind, NDArray[np.float32]]
"""The mean direction of one character's exemplars by kind, shape (D,), length 1."""


LikelyRefs = LikelySame[CharacterRef]
"""Two characters of different videos that may be one person."""


def mutual_best(
    ours: Mapping[CharacterRef, Looks],
    theirs: Mapping[CharacterRef, Looks],
    thresholds: Mapping[IdentityKind, float],
) -> list[LikelyRefs]:
    """Return the pairs of which each is the other's best match, most alike first.

    A pair that is alike by face and by voice is returned once, by the better of both.

    Args:
        ours: The characters of one video.
        theirs: Those of others, made by the same models.
        thresholds: For each kind, the least cosine for the same person, as its model declares.
    """

    def rank(pair: LikelyRefs) -> float:
        # Cosines of face and voice models differ in scale: each is divided by its own threshold.
        return pair.cosine / thresholds[pair.kind]

    found = [pair for kind in thresholds for pair in _across(ours, theirs, kind, thresholds[kind])]
    best: dict[tuple[CharacterRef, CharacterRef], LikelyRefs] = {}
    for pair in sorted(found, key=rank, reverse=True):
        best.setdefault((pair.one, pair.other), pair)
    pairs = sorted(
        best.values(),
        key=lambda pair: (
            -rank(pair),
            pair.one.video,
            pair.one.number,
            pair.other.video,
            pair.other.number,
        ),
    )
    told = list[LikelyRefs]()
    for pair in pairs:
        # It is sure where it is far above the threshold, and alike in all that both have.
        one, other = ours[pair.one], theirs[pair.other]
        both = [kind for kind in thresholds if kind in one and kind in other]
        alike = all(
            float(one[kind] @ other[kind]) >= thresholds[kind]
            for kind in both
            if len(one[kind]) == len(other[kind])
        )
        sure = alike and pair.cosine >= sure_cosine(thresholds[pair.kind])
        told.append(pair.model_copy(update={"sure": sure}))
    return told


def sure_cosine(threshold: float) -> float:
    """Return the cosine from which a pair is sure: halfway between the threshold and 1."""
    return (1 + threshold) / 2


def _across(
    ours: Mapping[CharacterRef, Looks],
    theirs: Mapping[CharacterRef, Looks],
    kind: IdentityKind,
    threshold: float,
) -> Iterator[LikelyRefs]:
    sizes = {len(looks[kind]) for looks in ours.values() if kind in looks}
    for size in sorted(sizes):
        rows, columns = (
            [ref for ref, looks in side.items() if kind in looks and len(looks[kind]) == size]
            for side in (ours, theirs)
        )
        if columns:
            cosines = (
                np.stack([ours[ref][kind] for ref in rows])
                @ np.stack([theirs[ref][kind] for ref in columns]).T
            )
            for row, column in _best_of_both(np.clip(cosines, -1, 1), columns, threshold):
                cosine = min(float(cosines[row, column]), 1.0)
                yield LikelyRefs(one=rows[row], other=columns[column], kind=kind, cosine=cosine)


def _best_of_both(
    cosines: NDArray[np.float32], columns: list[CharacterRef], threshold: float
) -> Iterator[tuple[int, int]]:
    """Yield rows and columns that are each other's best, among the columns of one video."""
    by_video: dict[str, list[int]] = {}
    for column, ref in enumerate(columns):
        by_video.setdefault(ref.video, []).append(column)
    best_rows = cosines.argmax(axis=0)
    for of_video in by_video.values():
        best_columns = cosines[:, of_video].argmax(axis=1)
        for row, place in enumerate(best_columns):
            column = of_video[place]
            if best_rows[column] == row and cosines[row, column] >= threshold:
                yield row, column


NEAREST = 100
"""Exemplars that are looked at for each face or voice: its own video may have many of them."""
MOST_COMPARED = 200
"""The most characters of a video that are compared, those with most exemplars first."""


def thresholds_of(models: Mapping[str, str]) -> dict[IdentityKind, float]:
    """Return the least cosines for one person of the models on record for a video."""
    return {
        IdentityKind.FACE: same_face(models.get(PORTS[IdentityKind.FACE], "")),
        IdentityKind.VOICE: same_voice(models.get(PORTS[IdentityKind.VOICE], "")),
    }


def likely_in_other_videos(session: Session, video: str) -> list[LikelyRefs]:
    """Return characters of a video with those of others that may be the same, most alike first.

    Each is the other's best match in its video, by models of the same name, above the model's
    threshold. Pairs that are joined, or that a user said are two people, are left out.
    """
    models = models_of_videos(session, [video])[video]
    ours = _looks_in(session, [video])
    most = sorted(ours, key=lambda ref: -ours[ref][1])[:MOST_COMPARED]
    looks = {ref: ours[ref][0] for ref in most}
    # The other videos with a face or voice that is as alike as one person's.
    videos = set[str]()
    for kind, threshold in thresholds_of(models).items():
        groups: dict[int, list[NDArray[np.float32]]] = {}
        for vector in (look[kind] for look in looks.values() if kind in look):
            groups.setdefault(len(vector), []).append(vector)
        for vectors in [np.stack(group) for group in groups.values()]:
            alike = nearest_identities(
                session, kind, vectors, video, models.get(PORTS[kind]), NEAREST, threshold
            )
            videos |= set(alike.values())
    near = sorted(videos)
    # The looks of the characters of these videos that the same models made.
    others = models_of_videos(session, near)
    theirs = {
        ref: {
            kind: look
            for kind, look in looks.items()
            if others[ref.video].get(PORTS[kind]) == models.get(PORTS[kind])
        }
        for ref, (looks, _) in _looks_in(session, near).items()
    }
    found = mutual_best(looks, theirs, thresholds_of(models))
    links = person_links(session)
    # Of those that nobody has decided on yet.
    persons = ((pair, links.person_of(pair.one), links.person_of(pair.other)) for pair in found)
    return [pair for pair, a, b in persons if a != b and not links.are_two(a, b)]


def join_sure(store: Store, video: str) -> list[Correction]:
    """Join the characters of a video with those of others that are surely the same person.

    Each pair is a correction of its own, which can be undone.
    """
    with store.begin(snapshot=True) as session:
        sure = [pair for pair in likely_in_other_videos(session, video) if pair.sure]
    done = []
    for pair in sure:
        # An earlier pair may have joined them already, or others of them are kept apart.
        with suppress(InputError):
            done.append(accept(store, pair))
    return done


def accept(store: Store, pair: LikelyRefs | LikelySame[PersonOfVideo]) -> Correction:
    """Join a pair that was suggested; its correction says how alike they are.

    Raises:
        NotFound: one of them is there no more.
        InputError: they are joined already, or a user said that they are two people.
    """
    one, other = pair.one, pair.other
    looks = marked(f"they look alike ({pair.cosine:.2f})")
    sounds = marked(f"they sound alike ({pair.cosine:.2f})")
    why = looks if pair.kind is IdentityKind.FACE else sounds
    return join(store, one.video, str(one.number), other.video, str(other.number), why)


def _looks_in(session: Session, videos: Sequence[str]) -> dict[CharacterRef, tuple[Looks, int]]:
    """Return the looks of every character of these videos, and how many exemplars they rest on."""
    scopes = [Scope(video=video, last_clip=LAST_CLIP) for video in videos]
    people = characters_in_view(session, scopes) if scopes else {}
    rows = [row for characters in people.values() for one in characters for row in one.members]
    centres = centres_of(session, rows)
    return {
        CharacterRef(video=video, number=one.character.number): _look(
            [centres[row] for row in one.members if row in centres]
        )
        for video, characters in people.items()
        for one in characters
    }


def _look(known: Sequence[tuple[IdentityKind, int, NDArray[np.float32]]]) -> tuple[Looks, int]:
    by_kind: dict[IdentityKind, list[NDArray[np.float32]]] = {}
    for kind, _, vector in known:
        by_kind.setdefault(kind, []).append(vector)
    looks = {kind: mean_look(vectors) for kind, vectors in by_kind.items()}
    return looks, sum(exemplars for _, exemplars, _ in known)
