"""Pages over a long video: they read what they show, and not what else there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, event, insert, update

from domain.media import IdentityKind
from domain.time import TimeSpan, merge_close_spans
from library.memory import clip_spans, events, linked_events
from library.params import MAX_LIMIT
from library.people import likely_same_people, people_of_video
from people import likely_same
from people.corrections import keep_apart, undo
from store.database import Store
from store.queries.identities import add_identities, appearance_spans, seen_together
from store.tables.schema import ClipRow, EdgeRow, SegmentRevisionRow, SightingRow, UtteranceRow
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.big_library import CLIP_MS, fill_library, span_of
from tests.support.full_suite import examples, in_full
from tests.support.machine import VIDEO
from tests.support.memory import known_video

CLIPS = 1_200
WATCHED = 20 * (8 + 3) + 8 * 40
"""Rows of the transcript, the scenes and the people beside the player of a video."""


@pytest.fixture
def long(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A video of some hours, so long that no page shows all of it."""
    fill_library(store, CLIPS, videos=1)
    with app_over(store, monkeypatch, WordToolbox):
        yield store


@contextmanager
def rows_read() -> Iterator[Callable[[], int]]:
    counts: list[int] = []

    def count(*output: Any) -> None:
        counts.append(max(0, output[1].rowcount))

    event.listen(Engine, "after_cursor_execute", count)
    try:
        yield lambda: sum(counts)
    finally:
        event.remove(Engine, "after_cursor_execute", count)


@pytest.mark.parametrize(
    ("page", "query", "most"),
    [
        in_full(("ask", {}, 100)),
        ("library", {}, 100),
        in_full(("video", {}, 300 + 3 * 300 + 300 + 5 * 60 + WATCHED)),
        ("video", {"show": "Clips"}, 10 * (8 + 3) + 5 * 60 + 50 + 8 * 5 + WATCHED),
        ("people", {}, 12 * 150 + 10 * 60),
    ],
)
def test_pages_read_what_shows(long: Store, page: str, query: dict[str, object], most: int) -> None:
    """Of 1 200 clips, 9 600 memories, 4 800 sightings and 400 events; all 60 people have names."""
    with rows_read() as count:
        open_page(page, video=VIDEO, **query)
        assert 0 < count() < most


def test_the_last_events_are_on_the_last_page(long: Store) -> None:
    shown = words(open_page("video", video=VIDEO, events=2))
    assert "301 to 400 of 400" in shown
    assert "event 300" in shown
    assert "event 299" not in shown
    # A page that is not there is the last one.
    assert "301 to 400 of 400" in words(open_page("video", video=VIDEO, events=9))


def test_events_come_by_time_with_what_joins_those_that_are_shown(long: Store) -> None:
    found = events(long, VIDEO, 100, 50)
    assert found.total == 400
    assert [one.span for one in found.items] == [span_of(n) for n in range(100, 150)]
    edges = [(edge.source, edge.target) for one in found.items for edge in one.edges]
    numbers = [one.number for one in found.items]
    assert edges == [*pairwise(numbers)]
    # By itself an event has what lies beyond the page too.
    alone = linked_events(long, VIDEO, numbers[0])
    assert alone[numbers[0]] == found.items[0]
    assert len(alone) == 3


def test_an_event_of_another_video_or_of_none_does_not_open(long: Store) -> None:
    remember_party(long)
    other = events(long, PARTY).items[0].number
    assert linked_events(long, VIDEO, other) == {}
    assert linked_events(long, VIDEO, 999_999) == {}
    assert other in linked_events(long, PARTY, other)


def test_what_was_merged_or_ended_is_no_event_any_more(store: Store) -> None:
    remember_party(store)
    first, rain, music = events(store, PARTY).items
    with store.begin() as session:
        gone = SegmentRevisionRow.segment_id == rain.number
        session.execute(update(SegmentRevisionRow).where(gone).values(to_clip=3))
        session.execute(update(EdgeRow).values(to_clip=3))
    left = events(store, PARTY)
    assert [(one.ref, one.edges) for one in left.items] == [(first.ref, ()), (music.ref, ())]
    assert left.total == 2
    assert linked_events(store, PARTY, rain.number) == {}


def test_a_clip_that_is_not_there_is_passed_over(store: Store) -> None:
    remember_party(store)
    music = events(store, PARTY).items[-1]
    with store.begin() as session:
        session.execute(update(SegmentRevisionRow).values(clips=[3, 4, 77]))
        session.execute(delete(ClipRow).where(ClipRow.clip == 4))
    found = linked_events(store, PARTY, music.number)[music.number]
    assert found.span == TimeSpan.of(90_000, 120_000)
    assert clip_spans(store, PARTY, [5, 77, 3]) == [
        TimeSpan.of(90_000, 120_000),
        TimeSpan.of(150_000, 180_000),
    ]


def test_a_timeline_has_no_more_appearances_than_can_be_told_apart(long: Store) -> None:
    for one in people_of_video(long, VIDEO, limit=MAX_LIMIT).items:
        assert 0 < len(one.seen_spans) <= 400
        gaps = [b.start_ms - a.end_ms for a, b in pairwise(one.seen_spans)]
        assert min(gaps) > CLIPS * CLIP_MS // 400


def test_who_was_said_apart_is_not_suggested(long: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # The guests are made of random numbers: few are as alike as a model asks for.
    monkeypatch.setattr(likely_same, "MIN_COSINE_SHARE", 0.5)
    every = [
        (one.one.number, one.other.number) for one in likely_same_people(long, VIDEO, limit=20)
    ]
    assert len(set(every)) == 20
    assert likely_same_people(long, VIDEO, limit=1)[0].one.number == every[0][0]
    keep_apart(long, VIDEO, *map(str, every[0]))
    again = likely_same_people(long, VIDEO, limit=20)
    assert [(one.one.number, one.other.number) for one in again[:19]] == every[1:]
    assert again[0].one.number == every[1][0]
    undo(long, VIDEO)
    (first,) = likely_same_people(long, VIDEO, limit=1)
    assert (first.one.number, first.other.number) == every[0]


TIMES = st.lists(st.tuples(st.integers(20, 40), st.integers(0, 4)), max_size=12)


@given(seen=TIMES, said=TIMES, gap_s=st.integers(0, 5))
@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(15, 60)
)
def test_stretches_are_those_of_the_plain_way(
    store: Store, seen: list[tuple[int, int]], said: list[tuple[int, int]], gap_s: int
) -> None:
    """The database joins what is close in time as a loop over all of it does."""
    video = f"{abs(hash((tuple(seen), tuple(said), gap_s))):016x}"[:16]
    known_video(store, 3, video)
    with store.begin() as session:
        (one, other) = add_identities(session, video, IdentityKind.FACE, 2, 0)
        for table, times in ((SightingRow, seen), (UtteranceRow, said)):
            rows = [_row(table, video, one.id, at, length) for at, length in times]
            if rows:
                session.execute(insert(table), rows)
        found = appearance_spans(session, video, [one.id, other.id], gap_s * 1_000, 2**31 - 1)
        session.rollback()
    expected = merge_close_spans({**_by_clip(said), **_by_clip(seen)}.values(), gap_s * 1_000)
    assert [TimeSpan.of(s.start_ms, s.end_ms) for s in found] == expected


def _row(table: Any, video: str, identity: int, at_s: int, length_s: int) -> dict[str, Any]:
    when = {"start_ms": at_s * 1_000, "end_ms": (at_s + length_s) * 1_000}
    mine = {"video_id": video, "clip": at_s // 30, "identity_id": identity, **when}
    if table is SightingRow:
        return mine | {"score": 1.0, "quality": 1.0, "box": None, "blob": None}
    return mine | {"origin": "speech", "text": "", "language": "en", "confidence": 1.0}


def _by_clip(times: list[tuple[int, int]]) -> dict[int, TimeSpan]:
    found: dict[int, TimeSpan] = {}
    for at, length in times:
        span = TimeSpan.of(at * 1_000, (at + length) * 1_000)
        found[at // 30] = found[at // 30].union(span) if at // 30 in found else span
    return found


def test_in_one_frame_is_reported_pair_by_pair(store: Store) -> None:
    known_video(store, 3, VIDEO)
    with store.begin() as session:
        a, b, c = (one.id for one in add_identities(session, VIDEO, IdentityKind.FACE, 3, 0))
        boxed = {"box": [0, 0, 1, 1]}
        met = ((a, 1), (b, 1), (b, 2), (c, 4))
        rows = [_row(SightingRow, VIDEO, who, at, 1) | boxed for who, at in met]
        # Heard, not seen: a voice has no box.
        rows.append(_row(SightingRow, VIDEO, c, 1, 1))
        session.execute(insert(SightingRow), rows)
        pairs = [((a,), (b,)), ((a,), (c,)), ((c, a), (b,)), ((b,), ()), ((c,), (b,))]
        assert seen_together(session, pairs) == [True, False, True, False, False]
        assert seen_together(session, []) == []
