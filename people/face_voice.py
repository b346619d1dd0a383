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
from people.characters import ACCEPT_SHARE, ACCEPT_SUPPORT, STATED, NameClaim
from people.clip_people import ClipPeople
from people.face_voice_evidence import LEAST_MS, VISIBLE_GAP_MS, stretches
from perception.decode import intersect_spans
from store.queries import characters as stored
from store.queries.characters import CharacterAt
from store.queries.identities import SightingAt, voice_and_face_sightings, was_stated

NAMESAKES = "the only face and the only voice that are called"
"""How the reason of a statement by names begins."""

COMPANY = 2
"""Faces in a clip from which somebody is in company."""

SCENES = 3
"""Clips in which a voice must be heard before company says whose it is: two may be by chance."""

LOOK_BACK = 20
"""How many clips with a voice are looked back on: what it costs does not grow with the video."""

Seen = Mapping[int, Sequence[TimeSpan]]
"""When each face is in view, by the number of its identity."""


def by_names(
    session: Session, video_id: str, calls: Iterable[NameClaim], clip: int
) -> list[IdentityStatement]:
    """Statements for the names that were given in a clip and that one face and one voice share."""
    names = list(dict.fromkeys(one.name for one in calls))
    if not names:
        return []
    everyone = stored.characters_at(session, video_id, clip)
    found = [_namesakes(name, everyone, clip) for name in names]
    pairs = {(one.face, one.voice): one for one in found if one is not None}
    return [
        one
        for (face, voice), one in pairs.items()
        if not one.by_model or not was_stated(session, video_id, face, voice, NAMESAKES)
    ]


def _namesakes(name: str, everyone: Sequence[CharacterAt], clip: int) -> IdentityStatement | None:
    named = [one for one in everyone if any(same_name(name, other.text) for other in one.names)]
    faces = [one for one in named if one.character.faces]
    voices = [one for one in named if not one.character.faces]
    if len(faces) != 1 or len(voices) != 1:
        return None
    by_model = any(_called_by_model(name, one) for one in (faces[0], voices[0]))
    return IdentityStatement(
        face=faces[0].character.faces[0],
        voice=voices[0].character.voices[0],
        clip=clip,
        support=STATED if by_model else ACCEPT_SUPPORT,
        reason=f'{NAMESAKES} "{name}"',
        by_model=by_model,
    )


def _called_by_model(name: str, one: CharacterAt) -> bool:
    """Whether nothing but a language model calls somebody by a name."""
    return all(other.source == "model" for other in one.names if same_name(name, other.text))


def same_name(one: str, other: str) -> bool:
    """Whether two names can be of one person: the same, or a first name and the whole."""
    parts, others = one.casefold().split(), other.casefold().split()
    short = 1 in (len(parts), len(others))
    return bool(parts) and (parts == others or (short and parts[:1] == others[:1]))


def by_company(
    session: Session, video_id: str, people: ClipPeople, clip: Clip
) -> list[IdentityStatement]:
    """Statements for the voices of a clip that are heard while several faces are in view."""
    if len(people.faces) < COMPANY:
        return []
    voices = sorted(set(people.voices.values()), key=lambda one: one.number)
    found = [_of_voice(session, video_id, voice, clip) for voice in voices]
    return [one for one in found if one is not None]


def _of_voice(
    session: Session, video_id: str, voice: Identity, clip: Clip
) -> IdentityStatement | None:
    clips, heard, seen = voice_and_face_sightings(
        session, video_id, voice.id, clip.index, LOOK_BACK
    )
    if len(clips) < SCENES:
        return None
    spans = stretches((_span(one) for one in heard), 0)
    faces = _by_face(seen)
    best = singled_out(spans, faces)
    if best is None:
        return None
    now = _in_company(intersect_spans(spans, [clip.span]), faces, best.face)
    if now < LEAST_MS:
        return None
    return IdentityStatement(
        face=best.face,
        voice=voice.number,
        clip=clip.index,
        support=now / 1000,
        reason=best.reason,
    )


def _span(one: SightingAt) -> TimeSpan:
    return TimeSpan.of(one.start_ms, one.end_ms)


def _by_face(seen: Iterable[SightingAt]) -> Seen:
    spans: dict[int, list[TimeSpan]] = {}
    for one in seen:
        spans.setdefault(one.number, []).append(_span(one))
    return {face: stretches(found, VISIBLE_GAP_MS) for face, found in sorted(spans.items())}


@dataclass(frozen=True)
class Singled:
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


def singled_out(heard: Sequence[TimeSpan], seen: Seen) -> Singled | None:
    """The one face that a voice goes with.

    It is in view for most of the time that the voice is heard with anyone in view; and of the time
    that only one of it and any other face is in view, most is its own, and enough to count.

    Args:
        heard: when the voice is heard, in order, disjoint.
        seen: when each face is in view.
    """
    times = {face: _ms(intersect_spans(heard, spans)) for face, spans in seen.items()}
    ranked = sorted(times, key=lambda face: (-times[face], face))
    if not ranked or not times[ranked[0]]:
        return None
    best, others = ranked[0], ranked[1:]
    anyone = _ms(intersect_spans(heard, stretches((s for one in seen.values() for s in one), 0)))
    leads = all(_leads(heard, seen[best], seen[other]) for other in others if times[other])
    if not leads or times[best] < ACCEPT_SHARE * anyone:
        return None
    return Singled(best, times[best], anyone, times[others[0]] if others else 0)


def _leads(heard: Sequence[TimeSpan], mine: Sequence[TimeSpan], other: Sequence[TimeSpan]) -> bool:
    """Whether the voice is heard with one face and without the other often enough."""
    both = intersect_spans(intersect_spans(heard, mine), other)
    without = _ms(intersect_spans(heard, mine)) - _ms(both)
    against = _ms(intersect_spans(heard, other)) - _ms(both)
    return without >= 1000 * ACCEPT_SUPPORT and without >= ACCEPT_SHARE * (without + against)


def _in_company(heard: Sequence[TimeSpan], seen: Seen, face: int) -> int:
    """Milliseconds of the voice with this face in view that is not alone."""
    others = stretches((s for n, spans in seen.items() if n != face for s in spans), 0)
    return _ms(intersect_spans(intersect_spans(heard, seen[face]), others))


def _ms(spans: Iterable[TimeSpan]) -> int:
    return sum(span.length_ms for span in spans)
