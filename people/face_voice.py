"""Derives face-voice identity statements from the whole video so far and from names.

The clip writer states what one clip shows by itself (a voice while only one face is in view).
This module adds two kinds of evidence:

- Names: a face with a name plate and a voice that introduces itself by the same name are one
  person, if no other face or voice has that name. Where a language model gave one of the names,
  this counts as one statement of the model.
- Co-occurrence: a voice that is heard while Ann and Bob are in view, then while Ann and Carl are,
  and so on, is Ann's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.media import Clip
from domain.people import Identity, IdentityStatement
from domain.time import TimeSpan, merge_close_spans
from people.characters import (
    ACCEPT_SHARE,
    ACCEPT_SUPPORT,
    MIN_SPEECH_MS,
    MODEL_SUPPORT,
    VISIBLE_GAP_MS,
    ClipPeople,
    NameClaim,
)
from perception.decode import intersect_spans
from store.queries import characters as stored
from store.queries.characters import CharacterAt
from store.queries.clips import was_on_screen
from store.queries.identities import SightingAt, voice_and_face_sightings, was_stated

SAME_NAME_REASON = "the only face and the only voice that are called"
"""Beginning of the reason of statements by name."""

MIN_FACES = 2
"""Fewest faces in a clip for co-occurrence evidence."""

MIN_CLIPS = 3
"""Clips in which a voice must be heard for co-occurrence evidence: two may be chance."""

MAX_CLIPS_BACK = 20
"""Most clips with a voice that are considered, which bounds the cost in long videos."""

FaceSpans = Mapping[int, Sequence[TimeSpan]]
"""When each face is in view, by the number of its identity."""


def statements_by_name(
    session: Session, video_id: str, claims: Iterable[NameClaim], clip: int
) -> list[IdentityStatement]:
    """Return statements for names given in a clip that one face and one voice share."""
    names = list(dict.fromkeys(claim.name for claim in claims))
    if not names:
        return []
    characters = stored.characters_at(session, video_id, clip, learned=True)
    statements = [_statement_by_name(name, characters, clip) for name in names]
    pairs = {
        (statement.face, statement.voice): statement
        for statement in statements
        if statement is not None
    }
    return [
        statement
        for (face, voice), statement in pairs.items()
        if not statement.by_model
        or not was_stated(session, video_id, face, voice, SAME_NAME_REASON)
    ]


def _statement_by_name(
    name: str, characters: Sequence[CharacterAt], clip: int
) -> IdentityStatement | None:
    named = [
        character
        for character in characters
        if any(same_name(name, known_name.name) for known_name in character.names)
    ]
    faces = [character for character in named if character.character.faces]
    voices = [character for character in named if not character.character.faces]
    if len(faces) != 1 or len(voices) != 1:
        return None
    by_model = any(
        all(
            known_name.source == "model"
            for known_name in character.names
            if same_name(name, known_name.name)
        )
        for character in (faces[0], voices[0])
    )
    return IdentityStatement(
        face=faces[0].character.faces[0],
        voice=voices[0].character.voices[0],
        clip=clip,
        support=MODEL_SUPPORT if by_model else ACCEPT_SUPPORT,
        reason=f'{SAME_NAME_REASON} "{name}"',
        by_model=by_model,
    )


def same_name(one: str, other: str) -> bool:
    """Tell whether two names can be of one person: equal, or a first name and a full name."""
    parts, others = one.casefold().split(), other.casefold().split()
    is_single_word = 1 in (len(parts), len(others))
    return bool(parts) and (parts == others or (is_single_word and parts[:1] == others[:1]))


def confirmed_claims(
    session: Session, video_id: str, claims: Iterable[NameClaim], people: ClipPeople, clip: int
) -> list[NameClaim]:
    """Return the claims without names on screen that contradict a known one for the first time.

    Somebody else's name, as in a list of guests, is seldom shown again with the same person.
    """
    confirmed: list[NameClaim] = []
    for claim in claims:
        rows = [one.id for one in people.members(claim.tag)] if claim.source == "read" else []
        known = [
            name.name
            for character in stored.learned_with(session, video_id, rows, clip)
            for name in character.names
            if name.source != "model"
        ]
        contradicts = known and not any(same_name(claim.name, name) for name in known)
        if not contradicts or was_on_screen(session, video_id, claim.name, clip):
            confirmed.append(claim)
    return confirmed


def statements_by_co_occurrence(
    session: Session, video_id: str, people: ClipPeople, clip: Clip
) -> list[IdentityStatement]:
    """Return statements for voices heard while several faces are visible."""
    if len(people.faces) < MIN_FACES:
        return []
    voices = sorted(set(people.voices.values()), key=lambda identity: identity.number)
    statements = [_statement_of_voice(session, video_id, voice, clip) for voice in voices]
    return [statement for statement in statements if statement is not None]


def _statement_of_voice(
    session: Session, video_id: str, voice: Identity, clip: Clip
) -> IdentityStatement | None:
    clips, voice_sightings, face_sightings = voice_and_face_sightings(
        session, video_id, voice.id, clip.index, MAX_CLIPS_BACK
    )
    if len(clips) < MIN_CLIPS:
        return None
    spans = merge_close_spans((_span(sighting) for sighting in voice_sightings), 0)
    by_face: dict[int, list[TimeSpan]] = {}
    for sighting in face_sightings:
        by_face.setdefault(sighting.number, []).append(_span(sighting))
    faces = {
        face: merge_close_spans(face_spans, VISIBLE_GAP_MS)
        for face, face_spans in sorted(by_face.items())
    }
    best = match_face(spans, faces)
    if best is None:
        return None
    # The milliseconds of the voice during which this face and others are in view.
    voice_spans = intersect_spans(spans, [clip.span])
    face = best.face
    others = merge_close_spans((s for n, spans in faces.items() if n != face for s in spans), 0)
    duration_ms = _total_ms(intersect_spans(intersect_spans(voice_spans, faces[face]), others))
    if duration_ms < MIN_SPEECH_MS:
        return None
    return IdentityStatement(
        face=best.face,
        voice=voice.number,
        clip=clip.index,
        support=duration_ms / 1000,
        reason=best.reason,
    )


def _span(sighting: SightingAt) -> TimeSpan:
    return TimeSpan.of(sighting.start_ms, sighting.end_ms)


@dataclass(frozen=True)
class MatchedFace:
    """The face that a voice is matched to, with times in milliseconds.

    Attributes:
        face: Number of the face.
        with_voice_ms: How long the face is in view while the voice is heard.
        anyone_ms: How long any face is in view while the voice is heard.
        next_ms: As ``with_voice_ms``, of the next best face.
    """

    face: int
    with_voice_ms: int
    anyone_ms: int
    next_ms: int

    @property
    def reason(self) -> str:
        return (
            f"in view during {self.with_voice_ms / 1000:.1f} of the {self.anyone_ms / 1000:.1f} s "
            f"of this voice with anyone in view, nobody else for more than "
            f"{self.next_ms / 1000:.1f} s"
        )


def match_face(voice_spans: Sequence[TimeSpan], face_spans: FaceSpans) -> MatchedFace | None:
    """Return the one face that a voice belongs to, or None.

    It is in view for at least ``ACCEPT_SHARE`` of the time that the voice is heard with any face in
    view; and it is clearly preferred to each other face that is in view with the voice.

    Args:
        voice_spans: When the voice is heard, in order, disjoint.
        face_spans: When each face is in view.
    """
    times = {
        face: _total_ms(intersect_spans(voice_spans, spans)) for face, spans in face_spans.items()
    }
    ranked = sorted(times, key=lambda face: (-times[face], face))
    if not ranked or not times[ranked[0]]:
        return None
    best, others = ranked[0], ranked[1:]
    anyone_ms = _total_ms(
        intersect_spans(
            voice_spans, merge_close_spans((s for spans in face_spans.values() for s in spans), 0)
        )
    )
    is_clear = all(
        _is_preferred(voice_spans, face_spans[best], face_spans[other])
        for other in others
        if times[other]
    )
    if not is_clear or times[best] < ACCEPT_SHARE * anyone_ms:
        return None
    return MatchedFace(best, times[best], anyone_ms, times[others[0]] if others else 0)


def _is_preferred(
    voice_spans: Sequence[TimeSpan], candidate: Sequence[TimeSpan], other: Sequence[TimeSpan]
) -> bool:
    """Tell whether the voice is heard long enough with only the candidate of two faces in view.

    That is at least ``ACCEPT_SUPPORT`` seconds, and ``ACCEPT_SHARE`` of the time with one of both.
    """
    both = intersect_spans(intersect_spans(voice_spans, candidate), other)
    only_candidate = _total_ms(intersect_spans(voice_spans, candidate)) - _total_ms(both)
    only_other = _total_ms(intersect_spans(voice_spans, other)) - _total_ms(both)
    return only_candidate >= 1000 * ACCEPT_SUPPORT and only_candidate >= ACCEPT_SHARE * (
        only_candidate + only_other
    )


def _total_ms(spans: Iterable[TimeSpan]) -> int:
    return sum(span.length_ms for span in spans)
