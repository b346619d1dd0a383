"""Pages over a long video: they read what they show, and not what else there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, event, insert, select, update

from domain.asking import Aim, Mode, Question
from domain.media import IdentityKind
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.settings import Settings
from domain.time import TimeSpan, merge_close_spans
from graphs.runner import Runner
from library.memory import clip_spans, events, linked_events
from library.params import MAX_LIMIT
from library.people import likely_same_people, people_of_video
from people import likely_same
from people.corrections import keep_apart, undo
from retrieval import candidates as selection
from retrieval.quotes_and_citations import cite
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries import candidates as stored_selection
from store.queries import search
from store.queries.identities import add_identities, appearance_spans, seen_together
from store.tables.schema import (
    ClipRow,
    EdgeRow,
    MemoryRow,
    SegmentRevisionRow,
    SightingRow,
    UtteranceRow,
)
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.big_library import CLIP_MS, fill_library, span_of
from tests.support.full_suite import examples, in_full
from tests.support.machine import VIDEO
from tests.support.memory import known_video
from tests.support.remembered import Event, Said, Tools, add_event_graph, name, watch
from tests.support.statements import statements

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
        in_full(("ask", {}, 9 * 60)),
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
    assert (alone[numbers[0]], len(alone)) == (found.items[0], 3)


def test_an_event_of_another_video_or_of_none_does_not_open(long: Store) -> None:
    remember_party(long)
    other = events(long, PARTY).items[0].number
    assert (linked_events(long, VIDEO, other), linked_events(long, VIDEO, 999_999)) == ({}, {})
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
    assert (left.total, linked_events(store, PARTY, rain.number)) == (2, {})


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
    assert found == ({one.id: [*expected]} if expected else {})


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


# Searching a large library: the likeliest videos are chosen first, then searched.


VIDEOS = 9
CHOSEN = 3
FIRST_MENTION = Aim(text="When is the lamp of the kitchen first mentioned?", moments=3)


def video(number: int) -> str:
    return f"{number:016x}"


@pytest.fixture
def retrievers(store: Store, monkeypatch: pytest.MonkeyPatch) -> Retrievers:
    """Search a library that counts as large, of which three videos are chosen."""
    monkeypatch.setattr(selection, "MOST_VIDEOS", CHOSEN)
    monkeypatch.setattr(selection, "MOST_CLIPS", 2 * CHOSEN)
    monkeypatch.setattr(search, "WIDE", CHOSEN)
    monkeypatch.setattr(selection, "VIDEOS_BY_QUESTION", 2 * CHOSEN)
    monkeypatch.setattr(stored_selection, "FREQUENT", CHOSEN)
    ask = Settings().ask.model_copy(update={"video_clips": VIDEOS})
    return Retrievers(store, Tools(), Settings(ask=ask))


def fill(store: Store, special: Sequence[Said], number: int = VIDEOS - 1) -> None:
    """Add videos of somebody in the kitchen, one with other lines besides."""
    for other in range(VIDEOS):
        lines = [Said(f"<face_0> at the lamp of the kitchen {100 + other}", 2, who=("<face_0>",))]
        watch(store, video(other), [lines, list(special) if other == number else []])


def view(last_clip: int = 1, videos: int = VIDEOS) -> MemoryView:
    return MemoryView(
        scopes=tuple(Scope(video=video(n), last_clip=last_clip) for n in range(videos))
    )


def videos_of(found: Retrieval) -> set[str]:
    return {one.video for one in found.evidence}


def test_the_video_with_the_nearest_line_is_searched(store: Store, retrievers: Retrievers) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    found = retrievers.search(view(), Mode.VIDEO, "Which zebra crosses the river?")
    assert found.evidence[0].text == "A zebra crosses the river"
    assert not found.nothing_close
    assert len(videos_of(found)) <= CHOSEN
    assert f"in the likeliest {CHOSEN} of {VIDEOS} videos" in found.searched


def test_a_rare_word_finds_its_video_however_far(store: Store, retrievers: Retrievers) -> None:
    said = "Umbrella, says somebody who talks of taxes, weather, trains, soup and of football"
    fill(store, [Said(said, 4)])
    found = retrievers.search(view(), Mode.VIDEO, "the lamp of the kitchen and an umbrella")
    assert said in [one.text for one in found.evidence]


def test_a_person_is_sought_where_lines_name_them(store: Store, retrievers: Retrievers) -> None:
    fill(store, [])
    name(store, video(4), 0, "Ottilie", "<face_0>")
    query = "What does Ottilie do at the lamp of the kitchen 102, or of the kitchen 103 or 106?"
    assert videos_of(retrievers.search(view(), Mode.VIDEO, query)) == {video(4)}


def test_nothing_later_than_view_is_chosen_or_found(store: Store, retrievers: Retrievers) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    found = retrievers.search(view(0), Mode.VIDEO, "Which zebra crosses the river?")
    assert found.nothing_close
    assert all("zebra" not in one.text for one in found.evidence)


def test_video_in_focus_is_searched_whatever_is_asked(store: Store, retrievers: Retrievers) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    last = video(VIDEOS - 1)
    ids = add_event_graph(store, last, [Event(0, "A crossing", "An animal crosses.", (1,), 1)], [])
    found = retrievers.search(view(), Mode.VIDEO, "the lamp of the kitchen", focus=ids[0])
    assert videos_of(found) == {last}


@pytest.mark.usefixtures("retrievers")
def test_an_answer_says_that_only_some_videos_were_searched(store: Store) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    question = Question(text="Which zebra crosses the river?", videos=view().videos)
    with Runner(store, WordToolbox()) as runner:
        made = runner.ask(question)
    assert "only the likeliest were searched" in made.answer.note
    assert made.answer.citations[0].video == video(VIDEOS - 1)


def test_events_of_other_videos_are_not_denied(store: Store, retrievers: Retrievers) -> None:
    fill(store, [])
    add_event_graph(store, video(4), [Event(0, "A crossing", "A zebra crosses.", (1,), 1)], [])
    found = retrievers.search(view(), Mode.EVENT, "Which zebra crosses the river?")
    assert found.searched.startswith("no event is in these videos")


def test_first_mention_is_not_told_from_some_videos(store: Store, retrievers: Retrievers) -> None:
    fill(store, [])
    found = retrievers.search(view(), Mode.VIDEO, "the lamp", aim=FIRST_MENTION)
    assert "likeliest" in found.searched
    assert found.selected
    assert not any(quote.kind == "structure" for quote in found.quotes)


def test_videos_without_clips_make_no_library_large(
    store: Store, retrievers: Retrievers, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, [])
    monkeypatch.setattr(selection, "MOST_CLIPS", CHOSEN)
    monkeypatch.setattr(selection, "VIDEOS_BY_QUESTION", 1)
    empty = tuple(Scope(video=video(n), last_clip=-1) for n in range(CHOSEN, VIDEOS))
    few = MemoryView(scopes=(*view(videos=CHOSEN).scopes, *empty))
    found = retrievers.search(few, Mode.VIDEO, "Which zebra crosses the river?")
    assert "likeliest" not in found.searched


@pytest.mark.parametrize("mode", [Mode.EVENT, Mode.VIDEO, Mode.KEYFRAME])
def test_nothing_is_found_without_vectors_to_compare_and_words_that_match(
    store: Store, retrievers: Retrievers, mode: Mode
) -> None:
    fill(store, [])
    with store.begin() as session:
        session.execute(update(MemoryRow).values(embedding=[1.0, 0.0]))
    found = retrievers.search(view(), mode, "Which zebra crosses the river?")
    assert found.nothing_close


def test_only_lines_in_view_make_it_frequent(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_selection, "FREQUENT", CHOSEN)
    watch(store, video(0), [[Said("A zebra crosses the river")], [Said("A zebra")] * CHOSEN])
    with store.begin() as session:
        early, late = (view(last, videos=1).scopes for last in (0, 1))
        chosen = stored_selection.videos_with_words(session, early, [["zebra"]])
        assert chosen == {0: [video(0)]}
        assert stored_selection.videos_with_words(session, late, [["zebra"]]) == {}


def test_citing_reads_the_videos_of_its_refs_only(store: Store) -> None:
    fill(store, [Said("A zebra crosses the river", 4)])
    last = view().model_copy(update={"scopes": view().scopes[-1:]})
    with store.begin() as session:
        (line,) = session.scalars(select(MemoryRow.id).where(MemoryRow.text.contains("zebra")))
        found = {}
        for seen in (last, view()):
            with statements(session) as sent:
                resolved = cite(session, seen, [f"m{line}", "m999"])
            found[len(sent)] = resolved
    (resolved,) = found.values()
    assert [one.video for one in resolved.citations] == [video(VIDEOS - 1)]
    assert resolved.unknown == ("m999",)
