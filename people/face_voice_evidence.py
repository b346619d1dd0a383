"""Finds evidence within one clip that a face and a voice are one person; pure."""

from __future__ import annotations

from collections.abc import Sequence

from domain.media import Group, Percept
from domain.time import TimeSpan, merge_close_spans

VISIBLE_GAP_MS = 1_000
"""A face seen twice within this time counts as visible in between."""

MIN_SPEECH_MS = 1_000
"""Shorter speech with one face in view is no evidence."""


def visible_spans(group: Group) -> list[TimeSpan]:
    """Return the spans in which a group is visible (or audible), in order."""
    return merge_close_spans((sighting.span for sighting in group.sightings), VISIBLE_GAP_MS)


def spans_alone(groups: Sequence[Group]) -> dict[int, list[TimeSpan]]:
    """Return the spans in which each group is the only one visible, by the group's number."""
    visible_by_group = {group.number: visible_spans(group) for group in groups}
    return {
        number: _subtract(
            spans,
            [s for n, other_spans in visible_by_group.items() if n != number for s in other_spans],
        )
        for number, spans in visible_by_group.items()
    }


def _subtract(spans: Sequence[TimeSpan], removed: Sequence[TimeSpan]) -> list[TimeSpan]:
    remaining = list(spans)
    for cut in removed:
        remaining = [piece for span in remaining for piece in _subtract_one(span, cut)]
    return remaining


def _subtract_one(span: TimeSpan, cut: TimeSpan) -> list[TimeSpan]:
    if cut.end_ms < span.start_ms or cut.start_ms > span.end_ms:
        return [span]
    edges = [(span.start_ms, cut.start_ms), (cut.end_ms, span.end_ms)]
    return [TimeSpan.of(start, end) for start, end in edges if end > start]


def speaking_alone(percept: Percept) -> list[tuple[int, int, float]]:
    """Return (face, voice, seconds): how long a voice is heard with only that face visible.

    Faces and voices are given by the numbers of their groups.

    Overlapping speech counts for no voice.
    """
    faces, voices = spans_alone(percept.faces), spans_alone(percept.voices)
    pairs = []
    for face, face_spans in sorted(faces.items()):
        for voice, voice_spans in sorted(voices.items()):
            shared = sum(a.overlap_ms(b) for a in face_spans for b in voice_spans)
            if shared >= MIN_SPEECH_MS:
                pairs.append((face, voice, shared / 1000))
    return pairs
