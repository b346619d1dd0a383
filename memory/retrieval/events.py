"""Segments of the event graph, found by label, summary and what was remembered of their clips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np

from domain.events import Segment
from domain.time import TimeSpan
from memory.retrieval.index import STILL, Floats, Ints
from memory.retrieval.lexical import rarity
from memory.retrieval.words import terms
from store.queries.search import Matrix, Revision, Revisions

Key = tuple[datetime, int, int, int]
"""Changes whenever the segments of a video do."""


@dataclass(frozen=True, eq=False)
class EventIndex:
    """Every revision of every segment of a video, R of them.

    ``vectors`` is (R, D); ``words`` and ``clips`` are of each; ``since`` and ``until`` (R,) are
    the clips between which it holds.
    """

    video: str
    key: Key
    rows: tuple[Revision, ...]
    vectors: Matrix
    words: tuple[frozenset[str], ...]
    clips: tuple[Ints, ...]
    since: Ints
    until: Ints

    def holding(self, last_clip: int) -> Ints:
        """Which revisions a view as of ``last_clip`` sees."""
        return np.flatnonzero((self.since <= last_clip) & (self.until > last_clip))


@dataclass(frozen=True, eq=False)
class Found:
    """A segment in view; ``spans`` are those of the video's clips."""

    index: EventIndex
    place: int
    last_clip: int
    spans: Mapping[int, TimeSpan]

    @property
    def id(self) -> int:
        """The segment's id."""
        return self.index.rows[self.place].segment

    @property
    def label(self) -> str:
        """The segment's label, as of the view."""
        return self.index.rows[self.place].label

    @property
    def vector(self) -> Floats:
        """Label and summary embedded, shape (D,)."""
        return np.asarray(self.index.vectors[self.place], dtype=np.float32)

    @property
    def words(self) -> frozenset[str]:
        """The search terms of label and summary."""
        return self.index.words[self.place]

    @property
    def clips(self) -> Ints:
        """The segment's clips."""
        return self.index.clips[self.place]

    @cached_property
    def segment(self) -> Segment:
        """The segment as the view shows it."""
        row = self.index.rows[self.place]
        clips = tuple(c for c in row.clips if c <= self.last_clip and c in self.spans)
        times = [self.spans[clip] for clip in clips]
        span = TimeSpan.of(min(t.start_ms for t in times), max(t.end_ms for t in times))
        return Segment(
            id=row.segment,
            video=self.index.video,
            number=row.number,
            label=row.label,
            summary=row.summary,
            clips=clips,
            span=span,
            revision=row.revision,
        )


def build_events(video: str, key: Key, found: Revisions) -> EventIndex:
    """Arrange revisions for searching; those without clips are left out."""
    kept = [i for i, row in enumerate(found.rows) if row.clips]
    rows = [found.rows[i] for i in kept]
    return EventIndex(
        video=video,
        key=key,
        rows=tuple(rows),
        vectors=found.vectors[kept],
        words=tuple(frozenset(terms(f"{row.label} {row.summary}")) for row in rows),
        clips=tuple(np.array(row.clips, dtype=np.int64) for row in rows),
        since=np.array([row.from_clip for row in rows], dtype=np.int64),
        until=np.array([STILL if r.to_clip is None else r.to_clip for r in rows], dtype=np.int64),
    )


def segments_in(index: EventIndex, last_clip: int, spans: Mapping[int, TimeSpan]) -> list[Found]:
    """The segments in view, in order of number; ``spans`` are those of the video's clips."""
    return [Found(index, int(place), last_clip, spans) for place in index.holding(last_clip)]


def word_scores(found: Sequence[Found], query: Sequence[str]) -> Floats:
    """The share of the query's rarer words that each segment has, in [0, 1], shape (S,)."""
    words = [one.words for one in found]
    held = {word: sum(word in own for own in words) for word in sorted(set(query))}
    weight = {word: rarity(len(found), count) for word, count in held.items()}
    total = sum(weight.values()) or 1.0
    return np.array(
        [sum(w for word, w in weight.items() if word in own) / total for own in words],
        dtype=np.float32,
    )
