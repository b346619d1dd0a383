"""Finds characters of other videos that may be the same person, by face and by voice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.errors import InputError
from domain.marked import marked
from domain.media import IdentityKind
from domain.memories import Scope
from domain.people import CharacterRef, Correction, LikelySame, PersonOfVideo
from models.thresholds import same_face, same_voice
from people.across_videos import join, person_links
from people.corrected import characters_in_view
from people.persons import PersonLinks
from people.similar import mean_look
from people.similar_across import LikelyRefs, Looks, mutual_best
from people.video_people import LAST_CLIP
from store.database import Store
from store.queries.characters import CharacterAt
from store.queries.identities import Centre, centres_of
from store.queries.nearest_identities import PORTS, models_of_videos, nearest_identities

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
    near = _videos_near(session, video, looks, models)
    theirs = _comparable(session, near, models)
    found = mutual_best(looks, theirs, thresholds_of(models))
    links = person_links(session)
    return [pair for pair in found if _is_open(links, pair)]


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


def _is_open(links: PersonLinks, pair: LikelyRefs) -> bool:
    ours, theirs = links.person_of(pair.one), links.person_of(pair.other)
    return ours != theirs and not links.are_two(ours, theirs)


def _videos_near(
    session: Session, video: str, looks: Mapping[CharacterRef, Looks], models: Mapping[str, str]
) -> list[str]:
    """Return the other videos with a face or voice that is as alike as one person's."""
    found = set[str]()
    for kind, threshold in thresholds_of(models).items():
        for vectors in _by_size(look[kind] for look in looks.values() if kind in look):
            near = nearest_identities(
                session, kind, vectors, video, models.get(PORTS[kind]), NEAREST, threshold
            )
            found |= {identity.video for identity in near}
    return sorted(found)


def _by_size(vectors: Iterable[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """Stack vectors of equal length."""
    groups: dict[int, list[NDArray[np.float32]]] = {}
    for vector in vectors:
        groups.setdefault(len(vector), []).append(vector)
    return [np.stack(group) for group in groups.values()]


def _comparable(
    session: Session, videos: Sequence[str], models: Mapping[str, str]
) -> dict[CharacterRef, Looks]:
    """Return the looks of the characters of these videos that the same models made."""
    others = models_of_videos(session, videos)
    return {
        ref: {
            kind: look
            for kind, look in looks.items()
            if others[ref.video].get(PORTS[kind]) == models.get(PORTS[kind])
        }
        for ref, (looks, _) in _looks_in(session, videos).items()
    }


def _looks_in(session: Session, videos: Sequence[str]) -> dict[CharacterRef, tuple[Looks, int]]:
    """Return the looks of every character of these videos, and how many exemplars they rest on."""
    scopes = [Scope(video=video, last_clip=LAST_CLIP) for video in videos]
    people = characters_in_view(session, scopes) if scopes else {}
    rows = [row for characters in people.values() for one in characters for row in one.members]
    centres = centres_of(session, rows)
    return {
        CharacterRef(video=video, number=one.character.number): _look(one, centres)
        for video, characters in people.items()
        for one in characters
    }


def _look(character: CharacterAt, centres: Mapping[int, Centre]) -> tuple[Looks, int]:
    known = [centres[row] for row in character.members if row in centres]
    by_kind: dict[IdentityKind, list[NDArray[np.float32]]] = {}
    for centre in known:
        vector = centre.exemplars * centre.vector
        by_kind.setdefault(IdentityKind(centre.kind), []).append(vector)
    looks = {kind: mean_look(vectors) for kind, vectors in by_kind.items()}
    return looks, sum(centre.exemplars for centre in known)
