"""Recognises the faces and voices of a clip among those known, and keeps exemplars of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from domain.media import Group, IdentityKind, Percept, Sighting
from domain.people import Identity
from people.matching import choose_exemplars, match_identities
from store.queries import identities as stored

GroupKey = tuple[IdentityKind, int]

GROUP_LABELS = frozenset(
    {"all", "crowd", "everyone", "lyrics", "(lyrics)", "music", "noise", "other", "others"}
    | {"other people", "other person", "people", "someone", "sound", "stranger", "unidentified"}
    | {"unknown", "voice", "其他人"}
)
"""Labels that sources give to nobody in particular; they stand for no one person."""


@dataclass(frozen=True)
class MatchingSettings:
    """How one kind of identity is recognised: the model's threshold, and how many exemplars."""

    threshold: float
    max_exemplars: int


@dataclass(frozen=True)
class Recognised:
    """The identity of every group and named speaker of a clip."""

    groups: Mapping[GroupKey, Identity] = field(default_factory=dict)
    speakers: Mapping[str, Identity] = field(default_factory=dict)
    new: tuple[Identity, ...] = ()
    new_speakers: tuple[tuple[str, Identity], ...] = ()

    def of_kind(self, kind: IdentityKind) -> dict[int, Identity]:
        """Return the identities of one kind, by group number."""
        return {number: one for (k, number), one in self.groups.items() if k == kind}

    def rows(self) -> dict[GroupKey, int]:
        """Row ids by group."""
        return {key: one.id for key, one in self.groups.items()}


def recognise(
    session: Session,
    video_id: str,
    percept: Percept,
    matching: Mapping[IdentityKind, MatchingSettings],
) -> Recognised:
    """Match every group of a clip to a known identity or make a new one.

    Args:
        session: An open transaction.
        video_id: The video.
        percept: The clip's percept.
        matching: How faces and voices are matched; needed for kinds the percept has.

    Returns:
        Who is who, with the identities that are new.
    """
    clip = percept.clip.index
    found: dict[GroupKey, Identity] = {}
    new: list[Identity] = []
    for groups in (percept.faces, percept.voices):
        known, fresh = _recognise_kind(session, video_id, clip, groups, matching)
        found |= known
        new += fresh
    speakers, fresh_speakers = _recognise_speakers(session, video_id, percept)
    earlier = [one.id for one in [*found.values(), *speakers.values()] if one.first_clip > clip]
    if earlier:
        stored.move_first_clips_back(session, earlier, clip)
    return Recognised(found, speakers, tuple(new), tuple(fresh_speakers))


def _recognise_kind(
    session: Session,
    video_id: str,
    clip: int,
    groups: Sequence[Group],
    matching: Mapping[IdentityKind, MatchingSettings],
) -> tuple[dict[GroupKey, Identity], list[Identity]]:
    if not groups:
        return {}, []
    kind = groups[0].kind
    known = stored.known_identities(session, video_id, kind)
    matches = match_identities(groups, [one.centre for one in known], matching[kind].threshold)
    fresh = stored.add_identities(session, video_id, kind, matches.count(None), clip)
    unused = iter(fresh)
    found = {
        (kind, group.number): next(unused) if pick is None else known[pick].identity
        for group, pick in zip(groups, matches, strict=True)
    }
    return found, fresh


def is_person(speaker: str) -> bool:
    """Check whether a speaker's label stands for one person and not for a crowd or a noise."""
    plain = speaker.strip().rstrip(":：").strip().lower()
    return any(letter.isalpha() for letter in plain) and plain not in GROUP_LABELS


def _recognise_speakers(
    session: Session, video_id: str, percept: Percept
) -> tuple[dict[str, Identity], list[tuple[str, Identity]]]:
    said = [one.speaker for one in percept.utterances if one.speaker and is_person(one.speaker)]
    names = list(dict.fromkeys(said))
    if not names:
        return {}, []
    known = stored.named_voices(session, video_id, names)
    unknown = [name for name in names if name not in known]
    clip = percept.clip.index
    added = stored.add_identities(session, video_id, IdentityKind.VOICE, len(unknown), clip)
    fresh = list(zip(unknown, added, strict=True))
    return known | dict(fresh), fresh


def update_exemplars(
    session: Session,
    percept: Percept,
    recognised: Recognised,
    sighting_ids: Mapping[GroupKey, Sequence[int]],
    matching: Mapping[IdentityKind, MatchingSettings],
) -> None:
    """Choose anew the exemplars of every identity seen in the clip."""
    seen: dict[Identity, list[tuple[int, Sighting]]] = {}
    for group in (*percept.faces, *percept.voices):
        key = (group.kind, group.number)
        pairs = zip(sighting_ids[key], group.sightings, strict=True)
        seen.setdefault(recognised.groups[key], []).extend(pairs)
    kept = stored.exemplars_of(session, [one.id for one in seen])
    for identity, sightings in seen.items():
        _update_exemplars(session, identity, kept[identity.id], sightings, matching[identity.kind])


def _update_exemplars(
    session: Session,
    identity: Identity,
    kept: Sequence[stored.StoredExemplar],
    seen: Sequence[tuple[int, Sighting]],
    matching: MatchingSettings,
) -> None:
    qualities = [one.quality for one in kept] + [one.quality for _, one in seen]
    vectors = [one.vector for one in kept] + [one.vector for _, one in seen]
    chosen = set(choose_exemplars(qualities, vectors, matching.max_exemplars, matching.threshold))
    remove = [one.id for place, one in enumerate(kept) if place not in chosen]
    fresh = [seen[place - len(kept)] for place in sorted(chosen) if place >= len(kept)]
    add = [
        {
            "identity_id": identity.id,
            "sighting_id": sighting_id,
            "quality": one.quality,
            "vector": list(one.vector),
        }
        for sighting_id, one in fresh
    ]
    stored.change_exemplars(session, remove, add)
