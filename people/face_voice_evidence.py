"""Finds evidence within one clip for which face is which voice; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.media import Group, Percept
from domain.time import TimeSpan

VISIBLE_GAP_MS = 1_000
"""A face seen twice within this time was there in between."""

MIN_SPEECH_MS = 1_000
"""Less speech than this with one face in view says nothing."""


def merge_close_spans(spans: Iterable[TimeSpan], gap_ms: int) -> list[TimeSpan]:
    """Merge spans that are at most ``gap_ms`` apart; in order."""
    merged: list[TimeSpan] = []
    for span in sorted(spans, key=lambda one: (one.start_ms, one.end_ms)):
        if merged and span.start_ms - merged[-1].end_ms <= gap_ms:
            merged[-1] = merged[-1].union(span)
        else:
            merged.append(span)
    return merged


def visible_spans(group: Group) -> list[TimeSpan]:
    """Return when a group is visible (or audible), in order."""
    return merge_close_spans((one.span for one in group.sightings), VISIBLE_GAP_MS)


def spans_alone(groups: Sequence[Group]) -> dict[int, list[TimeSpan]]:
    """Return when each group is the only one visible, by the group's number."""
    visible_by_group = {group.number: visible_spans(group) for group in groups}
    return {
        number: _subtract(
            spans, [s for n, other in visible_by_group.items() if n != number for s in other]
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
    """Return face and voice groups with the seconds of the voice while only that face is visible.

    One voice speaking over another at the same time counts for neither.
    """
    faces, voices = spans_alone(percept.faces), spans_alone(percept.voices)
    found = []
    for face, seen in sorted(faces.items()):
        for voice, heard in sorted(voices.items()):
            shared = sum(a.overlap_ms(b) for a in seen for b in heard)
            if shared >= MIN_SPEECH_MS:
                found.append((face, voice, shared / 1000))
    return found
