"""Matches the faces and voices of a clip to known identities, and updates their exemplars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.media import Group, IdentityKind, Percept, Sighting
from domain.people import Identity
from store.queries import identities as stored

# Matches groups of a clip to known identities, and chooses exemplars; pure.

Matrix = NDArray[np.float64]

NEAR_DUPLICATE = 0.98
"""Cosine from which two vectors are too alike for both to be exemplars."""


def normalise_rows(vectors: Any) -> Matrix:
    """Scale rows of ``vectors`` (N, D) to length 1; rows of zeros stay zeros."""
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1.0))


def mean_direction(vectors: Any) -> list[float]:
    """Return the mean direction of rows (N, D) as a list of D numbers, length 1."""
    return [float(value) for value in normalise_rows(np.mean(vectors, axis=0))[0]]


def group_vector(group: Group) -> Matrix:
    """Return the mean direction of a group's sightings, shape (D,), length 1."""
    mean = normalise_rows([sighting.vector for sighting in group.sightings]).mean(axis=0)
    return np.asarray(normalise_rows(mean)[0])


def co_occur(first: Group, second: Group) -> bool:
    """Tell whether two groups are visible (or audible) at the same time, if only for an instant."""
    return any(
        a.span.start_ms == b.span.start_ms or a.span.overlap_ms(b.span) > 0
        for a in first.sightings
        for b in second.sightings
    )


def match_identities(
    groups: Sequence[Group], centres: Sequence[Sequence[float]], threshold: float
) -> list[int | None]:
    """Assign groups to known identities, best cosine first.

    Args:
        centres: The mean of each identity's exemplars, (D,); not normalised, so that the dot
            product with a group's vector is the mean cosine over the exemplars.
        threshold: The least mean cosine; each model declares its own.

    Returns:
        For each group the index of its identity, or None for a new one. Two groups that are
        visible at the same time never share an identity.
    """
    assigned: list[int | None] = [None] * len(groups)
    if not groups or not centres:
        pairs = []
    else:
        vectors = np.stack([group_vector(group) for group in groups])
        scores = vectors @ np.asarray(centres, dtype=np.float64).T
        above_threshold = np.argwhere(scores >= threshold)
        # Rounded, so that the last bits of a matrix product do not order equal scores.
        scored = [(round(float(scores[g, i]), 9), int(g), int(i)) for g, i in above_threshold]
        pairs = sorted(scored, key=lambda pair: (-pair[0], pair[1], pair[2]))
    for _, group, identity in pairs:
        same_identity = [
            index
            for index, assigned_identity in enumerate(assigned)
            if assigned_identity == identity
        ]
        if assigned[group] is None and not any(
            co_occur(groups[group], groups[r]) for r in same_identity
        ):
            assigned[group] = identity
    return assigned


def choose_exemplars(
    qualities: Sequence[float],
    vectors: Sequence[Sequence[float]],
    max_exemplars: int,
    threshold: float,
) -> list[int]:
    """Choose exemplars by quality and diversity, deterministically.

    The one with the best quality first; then repeatedly that with the highest ``quality * (1 -
    cosine)`` to its closest chosen one. Vectors whose cosine to the mean of all is below
    ``threshold`` are outliers, and near duplicates of a chosen one are left out.

    Args:
        qualities: One for each candidate, at least 0.
        vectors: (N, D); earlier ones win ties.

    Returns:
        Indices of the candidates to keep, in the order they were chosen; at least one.
    """
    rows = normalise_rows(vectors)
    is_inlier = rows @ normalise_rows(rows.mean(axis=0))[0] >= threshold
    weights = np.asarray(qualities, dtype=np.float64) + 1e-9
    weights = np.where(is_inlier, weights, -1.0) if is_inlier.any() else weights
    chosen = [int(np.argmax(weights))]
    closest = rows @ rows[chosen[0]]
    while len(chosen) < max_exemplars:
        gain = np.round(weights * (1.0 - closest), 12)
        gain[(closest >= NEAR_DUPLICATE) | (weights < 0)] = -1.0
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        chosen.append(best)
        closest = np.maximum(closest, rows @ rows[best])
    return chosen


GroupKey = tuple[IdentityKind, int]

GROUP_LABELS = frozenset(
    {"all", "crowd", "everyone", "lyrics", "(lyrics)", "music", "noise", "other", "others"}
    | {"other people", "other person", "people", "someone", "sound", "stranger", "unidentified"}
    | {"unknown", "voice", "其他人"}
)
"""Speaker labels that do not stand for one person."""


@dataclass(frozen=True)
class MatchingSettings:
    """How one kind of identity is matched: the model's least cosine, and the most exemplars."""

    threshold: float
    max_exemplars: int


@dataclass(frozen=True)
class Recognised:
    """The identity of every group and named speaker of a clip."""

    groups: Mapping[GroupKey, Identity] = field(default_factory=dict)
    speakers: Mapping[str, Identity] = field(default_factory=dict)
    new: tuple[Identity, ...] = ()
    new_speakers: tuple[tuple[str, Identity], ...] = ()

    def only_known(self, percept: Percept) -> Percept:
        """Return ``percept`` without the groups that no identity is known of."""
        faces, voices = (
            tuple(one for one in groups if (one.kind, one.number) in self.groups)
            for groups in (percept.faces, percept.voices)
        )
        return percept.model_copy(update={"faces": faces, "voices": voices})

    def of_kind(self, kind: IdentityKind) -> dict[int, Identity]:
        """Return the identities of one kind, by group number."""
        return {number: identity for (k, number), identity in self.groups.items() if k == kind}

    def rows(self) -> dict[GroupKey, int]:
        """Return the identities' row ids by group."""
        return {key: identity.id for key, identity in self.groups.items()}


def recognise(
    session: Session,
    video_id: str,
    percept: Percept,
    matching: Mapping[IdentityKind, MatchingSettings],
) -> Recognised:
    """Match every group and named speaker of a clip to a known identity, or make a new one."""
    clip = percept.clip.index
    identities: dict[GroupKey, Identity] = {}
    new: list[Identity] = []
    for groups in filter(None, (percept.faces, percept.voices)):
        kind = groups[0].kind
        candidates = stored.known_identities(session, video_id, kind)
        matches = match_identities(
            groups, [candidate.centre for candidate in candidates], matching[kind].threshold
        )
        added = stored.add_identities(session, video_id, kind, matches.count(None), clip)
        unused = iter(added)
        identities |= {
            (kind, group.number): next(unused) if pick is None else candidates[pick].identity
            for group, pick in zip(groups, matches, strict=True)
        }
        new += added
    named = (one.speaker for one in percept.utterances if one.speaker and is_person(one.speaker))
    speakers, fresh_speakers = dict[str, Identity](), list[tuple[str, Identity]]()
    if names := list(dict.fromkeys(named)):
        known = stored.named_voices(session, video_id, names)
        unknown = [name for name in names if name not in known]
        added = stored.add_identities(session, video_id, IdentityKind.VOICE, len(unknown), clip)
        fresh_speakers = list(zip(unknown, added, strict=True))
        speakers = {**known, **dict(fresh_speakers)}
    earlier = [
        identity.id
        for identity in [*identities.values(), *speakers.values()]
        if identity.first_clip > clip
    ]
    if earlier:
        stored.move_first_clips_back(session, earlier, clip)
    return Recognised(identities, speakers, tuple(new), tuple(fresh_speakers))


def recognised_before(session: Session, video_id: str, percept: Percept) -> Recognised:
    """Return the identities of a clip that is stored, as they were recognised then.

    Groups of ``percept`` that were not perceived then, or were forgotten since, are left out.
    """
    sighted = stored.sighted_identities(session, video_id, percept.clip.index)
    identities = {}
    for group in (*percept.faces, *percept.voices):
        for seen in group.sightings:
            box, span = seen.box, seen.span
            place = (box.x0, box.y0, box.x1, box.y1) if box else ()
            key = (group.kind, span.start_ms, span.end_ms, place)
            if key in sighted:
                identities[group.kind, group.number] = sighted[key]
    names = {utterance.speaker for utterance in percept.utterances if utterance.speaker}
    return Recognised(identities, stored.named_voices(session, video_id, names))


def is_person(speaker: str) -> bool:
    """Tell whether a speaker's label stands for one person and not for a crowd or a noise."""
    label = speaker.strip().rstrip(":：").strip().lower()
    return any(letter.isalpha() for letter in label) and label not in GROUP_LABELS


def update_exemplars(
    session: Session,
    percept: Percept,
    recognised: Recognised,
    sighting_ids: Mapping[GroupKey, Sequence[int]],
    matching: Mapping[IdentityKind, MatchingSettings],
) -> None:
    """Choose the exemplars of every identity seen in the clip again."""
    new_sightings: dict[Identity, list[tuple[int, Sighting]]] = {}
    for group in (*percept.faces, *percept.voices):
        key = (group.kind, group.number)
        pairs = zip(sighting_ids[key], group.sightings, strict=True)
        new_sightings.setdefault(recognised.groups[key], []).extend(pairs)
    exemplars = stored.exemplars_of(session, [identity.id for identity in new_sightings])
    for identity, sightings in new_sightings.items():
        known = exemplars[identity.id]
        how = matching[identity.kind]
        qualities = [item.quality for item in known] + [item.quality for _, item in sightings]
        vectors = [item.vector for item in known] + [item.vector for _, item in sightings]
        chosen = set(choose_exemplars(qualities, vectors, how.max_exemplars, how.threshold))
        remove = [exemplar.id for index, exemplar in enumerate(known) if index not in chosen]
        additions = [
            sightings[index - len(known)] for index in sorted(chosen) if index >= len(known)
        ]
        add = [
            {
                "identity_id": identity.id,
                "sighting_id": sighting_id,
                "quality": sighting.quality,
                "vector": list(sighting.vector),
            }
            for sighting_id, sighting in additions
        ]
        stored.change_exemplars(session, remove, add)
