"""Segments of the event graph, found by label, summary and what was remembered of their clips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from domain.events import Segment
from domain.time import TimeSpan
from memory.retrieval.index import Floats
from memory.retrieval.lexical import rarity
from memory.retrieval.words import terms
from store.queries.search import Matrix, Revision, Revisions


@dataclass(frozen=True, eq=False)
class EventIndex:
    """Every revision of every segment of a video; ``vectors`` (R, D), ``words`` of each."""

    video: str
    key: tuple[datetime, int, int, int]
    rows: tuple[Revision, ...]
    vectors: Matrix
    words: tuple[frozenset[str], ...]

    def holding(self, last_clip: int) -> list[int]:
        """Which revisions a view as of ``last_clip`` sees."""
        return [
            i
            for i, row in enumerate(self.rows)
            if row.from_clip <= last_clip and (row.to_clip is None or row.to_clip > last_clip)
        ]


@dataclass(frozen=True, eq=False)
class Found:
    """A segment in view: its domain model, vector (D,) and words."""

    segment: Segment
    vector: Floats
    words: frozenset[str]


def build_events(video: str, key: tuple[datetime, int, int, int], found: Revisions) -> EventIndex:
    """Arrange revisions for searching."""
    words = tuple(frozenset(terms(f"{row.label} {row.summary}")) for row in found.rows)
    return EventIndex(video, key, tuple(found.rows), found.vectors, words)


def segments_in(index: EventIndex, last_clip: int, spans: Mapping[int, TimeSpan]) -> list[Found]:
    """The segments in view, in order of number; ``spans`` are those of the video's clips."""
    return [
        Found(segment, index.vectors[i], index.words[i])
        for i in index.holding(last_clip)
        if (segment := _segment(index.video, index.rows[i], last_clip, spans)) is not None
    ]


def _segment(
    video: str, row: Revision, last_clip: int, spans: Mapping[int, TimeSpan]
) -> Segment | None:
    clips = tuple(clip for clip in row.clips if clip <= last_clip and clip in spans)
    if not clips:
        return None
    times = [spans[clip] for clip in clips]
    span = TimeSpan.of(min(t.start_ms for t in times), max(t.end_ms for t in times))
    return Segment(
        id=row.segment,
        video=video,
        number=row.number,
        label=row.label,
        summary=row.summary,
        clips=clips,
        span=span,
        revision=row.revision,
    )


def word_scores(found: list[Found], query: list[str]) -> Floats:
    """The share of the query's rarer words that each segment has, in [0, 1], shape (S,)."""
    held = {word: sum(word in one.words for one in found) for word in sorted(set(query))}
    weight = {word: rarity(len(found), count) for word, count in held.items()}
    total = sum(weight.values()) or 1.0
    return np.array(
        [sum(w for word, w in weight.items() if word in one.words) / total for one in found],
        dtype=np.float32,
    )
