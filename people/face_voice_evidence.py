"""What a clip itself shows about which face is which voice; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.media import Group, Percept
from domain.time import TimeSpan

VISIBLE_GAP_MS = 1_000
"""A face seen twice within this time was there in between."""

LEAST_MS = 1_000
"""Less speech than this with one face in view says nothing."""


def stretches(spans: Iterable[TimeSpan], gap_ms: int) -> list[TimeSpan]:
    """Merge spans that are at most ``gap_ms`` apart; in order."""
    merged: list[TimeSpan] = []
    for span in sorted(spans, key=lambda one: (one.start_ms, one.end_ms)):
        if merged and span.start_ms - merged[-1].end_ms <= gap_ms:
            merged[-1] = merged[-1].union(span)
        else:
            merged.append(span)
    return merged


def visible(group: Group) -> list[TimeSpan]:
    """When a group is to be seen (or heard), in order."""
    return stretches((one.span for one in group.sightings), VISIBLE_GAP_MS)


def alone(groups: Sequence[Group]) -> dict[int, list[TimeSpan]]:
    """When each group is the only one to be seen, by the group's number."""
    shown = {group.number: visible(group) for group in groups}
    return {
        number: _without(spans, [s for n, other in shown.items() if n != number for s in other])
        for number, spans in shown.items()
    }


def _without(spans: Sequence[TimeSpan], taken: Sequence[TimeSpan]) -> list[TimeSpan]:
    left = list(spans)
    for cut in taken:
        left = [piece for span in left for piece in _cut(span, cut)]
    return left


def _cut(span: TimeSpan, cut: TimeSpan) -> list[TimeSpan]:
    if cut.end_ms < span.start_ms or cut.start_ms > span.end_ms:
        return [span]
    edges = [(span.start_ms, cut.start_ms), (cut.end_ms, span.end_ms)]
    return [TimeSpan.of(start, end) for start, end in edges if end > start]


def speaking_alone(percept: Percept) -> list[tuple[int, int, float]]:
    """Face and voice groups with the seconds the voice spoke while only that face was in view.

    One voice speaking over another at the same time counts for neither.
    """
    faces, voices = alone(percept.faces), alone(percept.voices)
    found = []
    for face, seen in sorted(faces.items()):
        for voice, heard in sorted(voices.items()):
            shared = sum(a.overlap_ms(b) for a in seen for b in heard)
            if shared >= LEAST_MS:
                found.append((face, voice, shared / 1000))
    return found
