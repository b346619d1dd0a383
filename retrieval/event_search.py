"""Segments of the event graph, found by label, summary and what was remembered of their clips."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from domain.memories import Edge, Segment
from domain.time import TimeSpan
from retrieval.lazy_lines import STILL
from retrieval.lexical import rarity
from retrieval.quantized import Coded, coded
from retrieval.terms import terms
from retrieval.video_index import Floats, Ints
from store.queries.search import CellRow, Matrix, Revisions, SegmentRevision
from store.queries.stamps import EventsKey


@dataclass(frozen=True, eq=False)
class EventIndex:
    """Every revision of every segment of a video, R of them.

    ``vectors`` is (R, D); ``words`` and ``clips`` are of each; ``since`` and ``until`` (R,) are
    the clips between which it holds.
    """

    video: str
    key: EventsKey
    rows: tuple[SegmentRevision, ...]
    vectors: Matrix
    words: tuple[frozenset[str], ...]
    clips: tuple[Ints, ...]
    since: Ints
    until: Ints

    def holding(self, last_clip: int) -> Ints:
        """Which revisions a view as of ``last_clip`` sees."""
        return np.flatnonzero((self.since <= last_clip) & (self.until > last_clip))


@dataclass(frozen=True, eq=False)
class SegmentInView:
    """A segment in view; ``spans`` are those of the video's clips."""

    index: EventIndex
    place: int
    last_clip: int
    spans: Mapping[int, CellRow]

    @property
    def id(self) -> int:
        """The segment's id."""
        return self.index.rows[self.place].segment

    @property
    def label(self) -> str:
        """The segment's label, as of the view."""
        return self.index.rows[self.place].label

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


def build_events(video: str, key: EventsKey, found: Revisions) -> EventIndex:
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


@dataclass(frozen=True, eq=False)
class EventsInView:
    """The S segments of one video that a view sees, in order of number.

    ``vectors`` is (S, D), ``holders`` the segments (ascending) that have each search term.
    ``clips`` (K,) are the clips in view of those segments that have any, one after the other;
    ``owners`` are these segments and ``starts`` where the clips of each begin. ``edges`` are those
    looked up so far, by segment.
    """

    index: EventIndex
    last_clip: int
    spans: Mapping[int, CellRow]
    found: tuple[SegmentInView, ...]
    vectors: Matrix
    holders: Mapping[str, Ints]
    clips: Ints
    owners: Ints
    starts: Ints
    edges: dict[int, Sequence[Edge]] = field(default_factory=dict)

    @property
    def video(self) -> str:
        """Whose segments they are."""
        return self.index.video

    @cached_property
    def coded(self) -> Coded:
        """The vectors for a first pass over very many."""
        return coded(self.vectors)

    def of(self, index: EventIndex, last_clip: int, spans: Mapping[int, CellRow]) -> bool:
        """Whether this is what a view sees of an index."""
        return self.index is index and self.spans is spans and self.last_clip == last_clip


def segments_in(index: EventIndex, last_clip: int, spans: Mapping[int, CellRow]) -> EventsInView:
    """The segments in view; ``spans`` are those of the video's clips."""
    places = index.holding(last_clip)
    clips = [one[one <= last_clip] for one in (index.clips[place] for place in places)]
    counts = np.array([len(one) for one in clips], dtype=np.int64)
    owners = np.flatnonzero(counts)
    return EventsInView(
        index=index,
        last_clip=last_clip,
        spans=spans,
        found=tuple(SegmentInView(index, int(place), last_clip, spans) for place in places),
        vectors=index.vectors[places],
        holders=_holders([index.words[place] for place in places]),
        clips=np.concatenate([np.zeros(0, dtype=np.int64), *clips]),
        owners=owners,
        starts=np.cumsum(counts[owners]) - counts[owners],
    )


def _holders(words: Sequence[frozenset[str]]) -> dict[str, Ints]:
    found: dict[str, list[int]] = {}
    for place, own in enumerate(words):
        for word in own:
            found.setdefault(word, []).append(place)
    return {word: np.array(places, dtype=np.int64) for word, places in found.items()}


def holding(views: Sequence[EventsInView], word: str) -> Ints:
    """The segments of some videos, laid out one video after the other, that have a search term."""
    offsets = np.cumsum([0, *(len(view.found) for view in views)])
    none = np.zeros(0, dtype=np.int64)
    held = (view.holders.get(word, none) + o for view, o in zip(views, offsets, strict=False))
    return np.concatenate([none, *held])


def word_scores(count: int, query: Sequence[str], held: Callable[[str], Ints]) -> Floats:
    """The share of the query's rarer words that each of so many segments has, in [0, 1], (S,).

    ``held`` tells which segments have a word.
    """
    scores, total = np.zeros(count), 0.0
    for word in sorted(set(query)):
        places = held(word)
        weight = rarity(count, len(places))
        scores[places] += weight
        total += weight
    return np.asarray(scores / (total or 1.0), dtype=np.float32)
