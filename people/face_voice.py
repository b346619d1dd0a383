"""Which face is which voice, by the whole video so far and by names: statements with their reasons.

What one clip shows by itself (a voice while only one face is in view) its writer states already.
Here two more kinds of evidence are added to that:

- Names: a face that a plate names and a voice that says that name are one person, where no other
  face and no other voice has it. Where a language model gave one of the names, that is no more
  than a statement of the model, which counts once.
- Company: people who are seen together are told apart over the whole video. A voice that is heard
  while Ann and Bob are in view, then while Ann and Carl are, and so on, is Ann's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from domain.media import Clip
from domain.people import Identity, IdentityStatement
from domain.time import TimeSpan
from people.characters import ACCEPT_SHARE, ACCEPT_SUPPORT, MODEL_SUPPORT, NameClaim
from people.clip_people import ClipPeople
from people.face_voice_evidence import MIN_SPEECH_MS, VISIBLE_GAP_MS, merge_close_spans
from perception.decode import intersect_spans
from store.queries import characters as stored
from store.queries.characters import CharacterAt
from store.queries.identities import SightingAt, voice_and_face_sightings, was_stated

SAME_NAME_REASON = "the only face and the only voice that are called"
"""How the reason of a statement by names begins."""

MIN_FACES = 2
"""Faces in a clip from which somebody is in company."""

MIN_CLIPS = 3
"""Clips in which a voice must be heard before company says whose it is: two may be by chance."""

MAX_CLIPS_BACK = 20
"""How many clips with a voice are looked back on: what it costs does not grow with the video."""

FaceSpans = Mapping[int, Sequence[TimeSpan]]
"""When each face is in view, by the number of its identity."""


def statements_by_name(
    session: Session, video_id: str, claims: Iterable[NameClaim], clip: int
) -> list[IdentityStatement]:
    """Return statements for names given in a clip that one face and one voice share."""
    names = list(dict.fromkeys(one.name for one in claims))
    if not names:
        return []
    characters = stored.characters_at(session, video_id, clip)
    found = [_statement_by_name(name, characters, clip) for name in names]
    pairs = {(one.face, one.voice): one for one in found if one is not None}
    return [
        one
        for (face, voice), one in pairs.items()
        if not one.by_model or not was_stated(session, video_id, face, voice, SAME_NAME_REASON)
    ]


def _statement_by_name(
    name: str, characters: Sequence[CharacterAt], clip: int
) -> IdentityStatement | None:
    named = [one for one in characters if any(same_name(name, other.text) for other in one.names)]
    faces = [one for one in named if one.character.faces]
    voices = [one for one in named if not one.character.faces]
    if len(faces) != 1 or len(voices) != 1:
        return None
    by_model = any(_is_named_by_model_only(name, one) for one in (faces[0], voices[0]))
    return IdentityStatement(
        face=faces[0].character.faces[0],
        voice=voices[0].character.voices[0],
        clip=clip,
        support=MODEL_SUPPORT if by_model else ACCEPT_SUPPORT,
        reason=f'{SAME_NAME_REASON} "{name}"',
        by_model=by_model,
    )


def _is_named_by_model_only(name: str, one: CharacterAt) -> bool:
    """Check whether nothing but a language model calls somebody by a name."""
    return all(other.source == "model" for other in one.names if same_name(name, other.text))


def same_name(one: str, other: str) -> bool:
    """Tell whether two names can be of one person: equal, or a first name and a full name."""
    parts, others = one.casefold().split(), other.casefold().split()
    short = 1 in (len(parts), len(others))
    return bool(parts) and (parts == others or (short and parts[:1] == others[:1]))


def statements_by_co_occurrence(
    session: Session, video_id: str, people: ClipPeople, clip: Clip
) -> list[IdentityStatement]:
    """Return statements for voices heard while several faces are visible."""
    if len(people.faces) < MIN_FACES:
        return []
    voices = sorted(set(people.voices.values()), key=lambda one: one.number)
    found = [_statement_of_voice(session, video_id, voice, clip) for voice in voices]
    return [one for one in found if one is not None]


def _statement_of_voice(
    session: Session, video_id: str, voice: Identity, clip: Clip
) -> IdentityStatement | None:
    clips, heard, seen = voice_and_face_sightings(
        session, video_id, voice.id, clip.index, MAX_CLIPS_BACK
    )
    if len(clips) < MIN_CLIPS:
        return None
    spans = merge_close_spans((_span(one) for one in heard), 0)
    faces = _spans_by_face(seen)
    best = match_face(spans, faces)
    if best is None:
        return None
    duration_ms = _co_visible_ms(intersect_spans(spans, [clip.span]), faces, best.face)
    if duration_ms < MIN_SPEECH_MS:
        return None
    return IdentityStatement(
        face=best.face,
        voice=voice.number,
        clip=clip.index,
        support=duration_ms / 1000,
        reason=best.reason,
    )


def _span(one: SightingAt) -> TimeSpan:
    return TimeSpan.of(one.start_ms, one.end_ms)


def _spans_by_face(sightings: Iterable[SightingAt]) -> FaceSpans:
    spans: dict[int, list[TimeSpan]] = {}
    for one in sightings:
        spans.setdefault(one.number, []).append(_span(one))
    return {face: merge_close_spans(found, VISIBLE_GAP_MS) for face, found in sorted(spans.items())}


@dataclass(frozen=True)
class MatchedFace:
    """The face that a voice is singled out for, and how long each was in view with the voice."""

    face: int
    with_voice_ms: int
    anyone_ms: int
    next_ms: int

    @property
    def reason(self) -> str:
        """The evidence in words."""
        return (
            f"in view during {self.with_voice_ms / 1000:.1f} of the {self.anyone_ms / 1000:.1f} s "
            f"of this voice with anyone in view, nobody else for more than "
            f"{self.next_ms / 1000:.1f} s"
        )


def match_face(voice_spans: Sequence[TimeSpan], face_spans: FaceSpans) -> MatchedFace | None:
    """Return the one face that a voice goes with, or None.

    It is in view for most of the time that the voice is heard with anyone in view; and of the time
    that only one of it and any other face is in view, most is its own, and enough to count.

    Args:
        voice_spans: when the voice is heard, in order, disjoint.
        face_spans: when each face is in view.
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
            voice_spans, merge_close_spans((s for one in face_spans.values() for s in one), 0)
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
    """Check whether the voice is heard with one face and without the other often enough."""
    both = intersect_spans(intersect_spans(voice_spans, candidate), other)
    only_candidate = _total_ms(intersect_spans(voice_spans, candidate)) - _total_ms(both)
    only_other = _total_ms(intersect_spans(voice_spans, other)) - _total_ms(both)
    return only_candidate >= 1000 * ACCEPT_SUPPORT and only_candidate >= ACCEPT_SHARE * (
        only_candidate + only_other
    )


def _co_visible_ms(voice_spans: Sequence[TimeSpan], face_spans: FaceSpans, face: int) -> int:
    """Return milliseconds of the voice with this face in view that is not alone."""
    others = merge_close_spans(
        (s for n, spans in face_spans.items() if n != face for s in spans), 0
    )
    return _total_ms(intersect_spans(intersect_spans(voice_spans, face_spans[face]), others))


def _total_ms(spans: Iterable[TimeSpan]) -> int:
    return sum(span.length_ms for span in spans)
