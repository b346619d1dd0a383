"""Rows by the ten thousand go in and come out at once."""

from __future__ import annotations

import pytest

from domain.media import ClipState
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from library.memory import show_video
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.memories import add_memories, memories_of_clips, tags_of
from tests.support.memory import known_video, span

COUNT = 70_000
"""Rows of ten values: more values than the 65,535 parameters of a statement."""


@pytest.mark.full
def test_more_lines_than_a_statement_takes_parameters(store: Store) -> None:
    video = known_video(store, 1)
    draft = MemoryDraft(
        kind=MemoryKind.EPISODIC,
        text="Nothing happens.",
        span=span(0, 1),
        source=MemorySource.CAPTION,
    )
    vector = [0.5, -0.5]
    with store.begin() as session:
        ids = add_memories(session, video, 0, [draft] * COUNT, [vector] * COUNT)
        mark_clip(session, video, 0, ClipState.DONE)
    assert len(set(ids)) == COUNT
    with store.begin() as session:
        found = memories_of_clips(session, video, range(80_000), 0)
        assert tags_of(session, ids) == {}
    assert [one.memory.id for one in found] == ids
    assert found[-1].vector.tolist() == vector
    assert len(show_video(store, video).clips[0].lines) == COUNT
