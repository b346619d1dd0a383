"""An index that is kept between questions is at all times the one that would be read anew.

Clips come one by one, fail and come late, close what was remembered; questions are asked as of any
moment in between, also of two videos that make room for each other, and by processes that take
what another one kept in the database.
"""

from __future__ import annotations

import itertools
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from sqlalchemy import insert, select

from domain.media import ClipState
from domain.memories import MemoryView, Scope
from retrieval import index_store
from retrieval.index_cache import IndexCache
from retrieval.video_index import VideoIndex
from retrieval.view_index import panorama
from store.database import Store
from store.queries.clips import MAX_ATTEMPTS, mark_clip, memory_view
from store.queries.memories import supersede
from store.tables.schema import ClipRow, MemoryRow
from tests.support.remembered import CLIP_MS, Said, WordEmbedder, watch

WORDS = st.lists(st.sampled_from(["soup", "tent", "train", "piano"]), min_size=1, max_size=3).map(
    " ".join
)
_numbers = itertools.count(1)


class Searching(RuleBasedStateMachine):
    """See the module."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.kept = IndexCache(store, CLIP_MS, most_lines=6)
        self.videos = [f"{next(_numbers):016x}" for _ in range(2)]
        self.clips = dict.fromkeys(self.videos, 1)
        self.failed: list[tuple[str, int]] = []
        for video in self.videos:
            watch(store, video, [[Said(f"start of {video}")]])

    def video(self, second: bool) -> str:
        return self.videos[second]

    @rule(second=st.booleans(), lines=st.lists(WORDS, max_size=2), close=st.booleans())
    def a_clip_comes(self, second: bool, lines: list[str], close: bool) -> None:
        video = self.video(second)
        n = self.clips[video]
        watch(self.store, video, [[Said(words, k) for k, words in enumerate(lines)]], first=n)
        self.clips[video] += 1
        if close:
            self.an_old_line_is_closed(video, n)

    def an_old_line_is_closed(self, video: str, n: int) -> None:
        with self.store.begin() as session:
            of_video = select(MemoryRow.id).where(MemoryRow.video_id == video, MemoryRow.clip < n)
            old = session.scalars(of_video.order_by(MemoryRow.id)).first()
            if old is not None:
                supersede(session, video, [old], n)

    @rule(second=st.booleans())
    def a_clip_fails_for_good(self, second: bool) -> None:
        video = self.video(second)
        n = self.clips[video]
        row = {"video_id": video, "clip": n, "start_ms": n * CLIP_MS, "end_ms": (n + 1) * CLIP_MS}
        how = {"state": "failed", "attempts": MAX_ATTEMPTS, "gaps": [], "text": ""}
        with self.store.begin() as session:
            session.execute(insert(ClipRow), [row | how])
        self.clips[video] += 1
        self.failed.append((video, n))

    @precondition(lambda self: self.failed)
    @rule(data=st.data(), words=WORDS)
    def a_clip_comes_late(self, data: st.DataObject, words: str) -> None:
        video, n = data.draw(st.sampled_from(self.failed))
        self.failed.remove((video, n))
        line = {
            "video_id": video,
            "clip": n,
            "kind": "episodic",
            "text": words,
            "start_ms": n * CLIP_MS,
            "end_ms": n * CLIP_MS + 1000,
            "source": "said",
            "embedding": WordEmbedder().embed([words])[0].tolist(),
        }
        with self.store.begin() as session:
            session.execute(insert(MemoryRow), [line])
            mark_clip(session, video, n, ClipState.DONE, text=words)

    @rule(second=st.booleans(), share=st.floats(0, 1), query=WORDS)
    def somebody_asks(self, second: bool, share: float, query: str) -> None:
        video = self.video(second)
        as_of = round(share * self.clips[video] * CLIP_MS)
        with self.store.begin() as session:
            view = memory_view(session, [video], as_of)
        (scope,) = view.scopes
        held, other = self.kept.lines(scope), IndexCache(self.store, CLIP_MS).lines(scope)
        with patch.object(index_store, "cached_index_keys", return_value={}):
            fresh = IndexCache(self.store, CLIP_MS).lines(scope)
        for index in (held, other):
            self.are_the_same(view, index, fresh, query)

    def are_the_same(
        self, view: MemoryView, held: VideoIndex, fresh: VideoIndex, query: str
    ) -> None:
        (scope,) = view.scopes
        one, other = panorama(view, [held]), panorama(view, [fresh])
        assert (one.cell_count, one.line_count) == (other.cell_count, other.line_count)
        if one.cell_count:
            assert one.ids.tolist() == other.ids.tolist()
            assert one.hidden.tolist() == other.hidden.tolist()
            vector = WordEmbedder().embed([query])
            assert all(map(np.array_equal, one.cosines(vector), other.cosines(vector)))
            for word in query.split():
                assert posted(held, word, scope) == posted(fresh, word, scope)


def posted(index: VideoIndex, word: str, scope: Scope) -> list[tuple[int, float]]:
    """In which clips in view a word is, and how often."""
    found = index.postings.get(word)
    cells = index.visible(scope.last_clip)
    pairs = [] if found is None else zip(found.cells, found.counts, strict=True)
    return [(int(index.clips[cell]), float(count)) for cell, count in pairs if cell < cells]


def test_a_kept_index_is_the_one_that_would_be_read_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_store, "LEAST", 1)
    run_state_machine_as_test(
        cast("Any", lambda: Searching(store)),
        settings=settings(
            max_examples=8,
            stateful_step_count=14,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
