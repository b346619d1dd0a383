"""Indexes and views made from plain stories, for tests of searching without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from domain.memories import MemoryView, Scope
from people.matching import normalise_rows
from retrieval.event_search import EventsInView, build_events, segments_in
from retrieval.ranking import PreparedQuestion, QuestionVectors, relevance
from retrieval.relevance import Relevance
from retrieval.video_index import VideoIndex, build_index
from retrieval.view_index import ViewIndex, panorama
from store.queries.search import CellRow, Lines, Matrix, Revisions, SegmentRevision, StoredLine
from tests.support.remembered import CLIP_MS, SIZE, WordEmbedder

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
Story = Sequence[Sequence[str]]


def index_of(
    story: Story,
    video: str = "v",
    first: int = 0,
    gone: Mapping[int, int] | None = None,
    speakers: Mapping[str, str] | None = None,
) -> VideoIndex:
    """An index of clips of lines, one second a line.

    Ids count from 1 in the first clip, from ``1000 * first + 1`` in a later one. ``gone`` maps
    ids to the clip that supersedes them. A line of which ``speakers`` has the text is said.
    """
    rows: list[StoredLine] = []
    number = 1000 * first
    for clip, texts in enumerate(story, start=first):
        for i, text in enumerate(texts):
            number += 1
            said = (speakers or {}).get(text)
            start = clip * CLIP_MS + 1000 * i
            source = "said" if said else "caption"
            until = (gone or {}).get(number)
            rows.append(
                StoredLine(number, clip, start, start + 900, "episodic", text, source, said, until)
            )
    cells = [
        CellRow(clip, clip * CLIP_MS, (clip + 1) * CLIP_MS)
        for clip in range(first, first + len(story))
    ]
    texts = [row.text for row in rows]
    vectors = WordEmbedder().embed(texts) if texts else np.zeros((0, SIZE), dtype=np.float32)
    through = first + len(story) - 1
    return build_index(video, (SINCE, 0, SINCE, 0), through, Lines(rows, vectors), cells, CLIP_MS)


def view_at(last_clip: int, *indexes: VideoIndex) -> ViewIndex:
    """What is seen of these videos as of ``last_clip`` of each."""
    scopes = tuple(Scope(video=one.video, last_clip=last_clip) for one in indexes)
    return panorama(MemoryView(scopes=scopes), indexes)


def view_of(story: Story, speakers: Mapping[str, str] | None = None) -> ViewIndex:
    """All of one story."""
    return view_at(10**6, index_of(story, speakers=speakers))


def vectors_of(asked: PreparedQuestion, view: ViewIndex) -> QuestionVectors:
    """The vectors of a question, from its words."""
    embed = WordEmbedder().embed
    count = 0 if asked.timed(view) else len(asked.options)
    texts = [asked.bare, *asked.statements()[:count], *asked.options[:count], asked.somebody]
    rows = embed(texts)
    return QuestionVectors(rows[0], rows[1 : 1 + count], rows[1 + count : -1], rows[-1])


def field_of(view: ViewIndex, asked: PreparedQuestion) -> Relevance:
    """How relevant every cell is."""
    return relevance(view, asked, vectors_of(asked, view))


def units(count: int, size: int, seed: int) -> Matrix:
    """Vectors of length 1 in any direction, of shape (count, size)."""
    return normalise_rows(np.random.default_rng(seed).standard_normal((count, size))).astype(
        np.float32
    )


def events_of(vectors: Matrix, clips: int = 1, video: str = "v") -> EventsInView:
    """An event of so many clips for each vector, all of them known since the first clip."""
    rows = [
        SegmentRevision(n, n, 0, "Tea", "", tuple(range(clips * n, clips * (n + 1))), 0, None)
        for n in range(len(vectors))
    ]
    spans = {n: CellRow(n, CLIP_MS * n, CLIP_MS * (n + 1)) for n in range(clips * len(vectors))}
    built = build_events(video, (SINCE, 0, 0, len(rows), 0), Revisions(rows, vectors))
    return segments_in(built, len(spans), spans)
