"""Reads of a search from the store: in order, exact, as of a clip, with vectors unchanged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from sqlalchemy import insert, select, text, update

from domain.asking import Mode, Question
from domain.errors import NotFound
from domain.media import ClipState
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from flows.removal import delete_video_rows
from memory.writers.clip_page import subsample
from people.across_videos import rename
from retrieval import candidates
from retrieval.retrievers import Retrievers
from store.database import Store, open_store
from store.queries.characters import add_name, people_as_of
from store.queries.clips import end_of_memory, mark_clip, memory_view
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.memories import supersede
from store.queries.outline import contents_of
from store.queries.search import edges_of_segment
from store.tables.schema import CharacterMemberRow, ClipRow, EdgeRow, MemoryRow
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.ranking import rank
from tests.support.remembered import (
    CLIP_MS,
    Event,
    Said,
    WordEmbedder,
    add_event_graph,
    identity_of,
    name,
    patch_with_edge,
    watch,
)

V = "0123456789abcdef"
W = "fedcba9876543210"


def scope(last_clip: int, video: str = V) -> Scope:
    return Scope(video=video, last_clip=last_clip)


@pytest.fixture
def watched(store: Store) -> Store:
    watch(
        store,
        V,
        [
            [Said("second", 9), Said("first", 1, until=2)],
            [],
            [Said("third", 3, speaker="Ann", source="said")],
            [Said("<face_0> and <face_1> meet", who=("<face_0>", "<face_1>"), source="seen")],
        ],
    )
    watch(store, W, [[Said("another video")]])
    return store


def test_people_are_known_as_of_a_clip(watched: Store) -> None:
    name(watched, V, 0, "Ada", "<face_0>", since=1)
    with watched.begin() as session:
        whose = identity_of(session, V, "<face_0>")
        add_name(session, V, whose, "Ada L.", "caption", 3)
        add_name(session, V, whose, "Eda", "said", 3)
        assert people_as_of(session, scope(0)) == []
        assert [one.name for one in people_as_of(session, scope(2))] == ["Ada"]
        assert [one.name for one in people_as_of(session, scope(3))] == ["Ada L."]
        assert people_as_of(session, scope(3))[0].faces == (0,)
        session.execute(update(CharacterMemberRow).values(to_clip=3))
        assert (people_as_of(session, scope(3)), len(people_as_of(session, scope(2)))) == ([], 1)


def test_edges_are_valid_between_their_clips_and_cite_no_later_ones(watched: Store) -> None:
    events = [Event(n, f"event {n}", "", (n,), since=1) for n in range(3)]
    ids = add_event_graph(watched, V, events, [(0, 1, "before", 1), (2, 0, "causes", 3)])
    with watched.begin() as session:
        session.execute(update(EdgeRow).where(EdgeRow.relation == "before").values(to_clip=3))
        session.execute(update(EdgeRow).values(evidence=[0, 3]))
        assert [e.relation for e in edges_of_segment(session, scope(2), ids[0])] == ["before"]
        assert edges_of_segment(session, scope(2), ids[0])[0].evidence == (0,)
        assert [e.relation for e in edges_of_segment(session, scope(3), ids[0])] == ["causes"]
        assert [e.relation for e in edges_of_segment(session, scope(3), ids[2])] == ["causes"]
        assert edges_of_segment(session, scope(0), ids[0]) == []


def test_the_contents_of_a_video_are_some_of_its_events_from_the_first_on(store: Store) -> None:
    watch(store, V, [[Said("a line")] for _ in range(11)])
    add_event_graph(store, V, [Event(n, f"event {n}", "", (n,), n) for n in range(11)], [])
    with store.begin() as session:
        for most in (1, 3, 4, 10, 11, 50):
            told = [one.label for one in contents_of(session, V, 9, most)]
            assert told == [f"event {n}" for n in subsample(range(10), most)]
        assert contents_of(session, V, 9, 1)[0].span.length_ms == CLIP_MS
        assert end_of_memory(session, V, 9) == 10 * CLIP_MS
        assert end_of_memory(session, V) == 11 * CLIP_MS


def test_a_new_edge_is_seen_by_the_next_search(watched: Store) -> None:
    searching = Retrievers(watched, WordToolbox(), Settings())
    view = MemoryView(scopes=(scope(3),))
    ids = add_event_graph(
        watched, V, [Event(0, "one", "soup", (0,), 1), Event(1, "two", "tent", (1,), 1)]
    )
    assert searching.search(view, Mode.EVENT, "soup").neighbours == ()
    patch_with_edge(watched, V, ids[0], ids[1], at_clip=3)
    (beside,) = searching.search(view, Mode.EVENT, "soup").neighbours
    assert beside.label == "two"


# A search sees what was committed before it, never part of a clip; nothing is cached.


WORDS = st.lists(st.sampled_from(["soup", "tent", "train", "piano"]), min_size=1, max_size=3).map(
    " ".join
)
_numbers = itertools.count(1)


def retrievers(store: Store) -> Retrievers:
    return Retrievers(store, WordToolbox(), Settings())


def view_of(store: Store, *videos: str, as_of_ms: int | None = None) -> MemoryView:
    with store.begin() as session:
        return memory_view(session, videos, as_of_ms)


def found(search: Retrievers, store: Store, query: str) -> list[str]:
    ranking = rank(search, view_of(store, PARTY), Question(text=query, videos=(PARTY,)))
    return [one.text for one in ranking.evidence]


@pytest.fixture
def runner(store: Store) -> Iterator[Store]:
    """The same library by other connections, as another process has it."""
    with open_store(store.home, store.psycopg_url) as other:
        yield other


def test_another_process_sees_a_clip_right_after_its_commit(store: Store, runner: Store) -> None:
    remember_party(store)
    search = retrievers(runner)
    before = found(search, runner, "a lighthouse in the fog")
    with store.begin() as session:
        row = {"video_id": PARTY, "clip": 6, "start_ms": 6 * CLIP_MS, "end_ms": 7 * CLIP_MS}
        session.execute(
            insert(ClipRow), [row | {"state": "done", "attempts": 0, "gaps": [], "text": ""}]
        )
        for number, words in enumerate(("a lighthouse", "a lighthouse in the fog")):
            session.execute(insert(MemoryRow), [line(PARTY, 6, words, number)])
            session.flush()
            assert found(search, runner, "a lighthouse in the fog") == before
    assert found(search, runner, "a lighthouse in the fog")[0] == "a lighthouse in the fog"
    assert found(search, runner, "a lighthouse in the fog") == found(
        retrievers(store), store, "a lighthouse in the fog"
    )


def test_correction_and_a_deletion_are_seen_by_the_next_search(store: Store, runner: Store) -> None:
    remember_party(store)
    search = retrievers(runner)
    question = Question(text="Why did we move the party inside?", videos=(PARTY,))
    view = view_of(runner, PARTY)
    assert rank(search, view, question).evidence[0].text.startswith("Bob: We moved the party")
    rename(store, PARTY, "2", "Grace")
    assert rank(search, view, question).evidence[0].text.startswith("Grace: We moved the party")
    delete_video_rows(store, PARTY)
    with pytest.raises(NotFound, match="homer videos"):
        rank(search, view, question)


def line(video: str, clip: int, words: str, second: int = 0) -> dict[str, object]:
    start = clip * CLIP_MS + 1000 * second
    return {
        "video_id": video,
        "clip": clip,
        "kind": "episodic",
        "text": words,
        "start_ms": start,
        "end_ms": start + 1000,
        "source": "said",
        "embedding": WordEmbedder().embed([words])[0].tolist(),
    }


class Searching(RuleBasedStateMachine):
    """Clips come, fail, come late and close lines; a long-lived search answers as a fresh one."""

    def __init__(self, store: Store, other: Store) -> None:
        super().__init__()
        self.store, self.other = store, other
        self.search = retrievers(store)
        self.videos = [f"{next(_numbers):016x}" for _ in range(2)]
        self.clips = dict.fromkeys(self.videos, 1)
        self.failed: list[tuple[str, int]] = []
        for video in self.videos:
            watch(store, video, [[Said(f"start of {video}")]])

    @rule(second=st.booleans(), lines=st.lists(WORDS, max_size=2), close=st.booleans())
    def a_clip_comes(self, second: bool, lines: list[str], close: bool) -> None:
        video = self.videos[second]
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
        video = self.videos[second]
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
        with self.store.begin() as session:
            session.execute(insert(MemoryRow), [line(video, n, words)])
            mark_clip(session, video, n, ClipState.DONE, text=words)

    @rule(both=st.booleans(), share=st.floats(0, 1), query=WORDS)
    def somebody_asks(self, both: bool, share: float, query: str) -> None:
        videos = self.videos if both else self.videos[:1]
        as_of = round(share * self.clips[videos[0]] * CLIP_MS)
        view = view_of(self.store, *videos, as_of_ms=None if both else as_of)
        question = Question(text=query, videos=tuple(videos))
        ranked = rank(self.search, view, question)
        assert ranked == rank(retrievers(self.other), view, question)
        lasts = {scope.video: scope.last_clip for scope in view.scopes}
        assert all(one.clip is None or one.clip <= lasts[one.video] for one in ranked.evidence)


def test_a_search_as_of_a_clip_equals_one_made_at_that_clip(store: Store, runner: Store) -> None:
    run_state_machine_as_test(
        cast("Any", lambda: Searching(store, runner)),
        settings=settings(
            max_examples=8,
            stateful_step_count=14,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# Views of which not all clips are looked into

THINGS = ("cup", "lamp", "guitar", "ladder", "pumpkin", "carpet", "bicycle", "mirror", "kettle")
DOES = ("washes", "paints", "carries", "repairs", "sells", "hides", "weighs", "photographs")


@pytest.fixture
def made_up(store: Store) -> Store:
    """Two videos of many clips of chatter, with deeds in some of them."""
    pairs = list(itertools.product(DOES, THINGS))
    for half, video in enumerate(("a" * 16, "b" * 16)):
        clips = [[Said("We walk on"), Said("A phone rings", 3)] for _ in range(300)]
        for number, (does, thing) in enumerate(pairs[half::2]):
            clips[7 * number + 3].append(Said(f"Ann {does} the {thing}", 6))
        watch(store, video, clips)
    with store.begin() as session:
        session.execute(text("ANALYZE"))
    return store


def test_candidates_of_a_large_view_include_the_best_evidence_of_all_lines(
    made_up: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_of(made_up, "a" * 16, "b" * 16)
    search = retrievers(made_up)
    questions = [
        Question(text=f"Who {does} the {thing}?", videos=view.videos, options=options)
        for does, thing in itertools.product(DOES[:4], THINGS[:3])
        for options in ((), ("Ann does it", f"It is the {THINGS[-1]}"))
    ]
    whole = [rank(search, view, one) for one in questions]
    monkeypatch.setattr(candidates, "SMALL", 50)
    for question, exact in zip(questions, whole, strict=True):
        ranked = rank(search, view, question)
        assert ranked.evidence[0].ref == exact.evidence[0].ref
        assert ranked.nothing_close == exact.nothing_close


@pytest.mark.full
@pytest.mark.parametrize("small", [50, 2_500])
def test_clips_of_the_event_are_candidates_in_views_of_any_size(
    made_up: Store, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(candidates, "SMALL", small)
    view = view_of(made_up, "a" * 16, as_of_ms=100 * CLIP_MS)
    result = retrievers(made_up).search(view, Mode.VIDEO, "Ann washes the cup")
    assert result.evidence[0].text == "Ann washes the cup"
    assert all(one.clip is not None and one.clip < 100 for one in result.evidence)


@pytest.mark.full
def test_clips_of_the_focus_are_candidates(made_up: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "SMALL", 50)
    video, clips = "a" * 16, (280, 281)
    ids = add_event_graph(made_up, video, [Event(0, "a walk", "They walk on.", clips, since=281)])
    view = view_of(made_up, video)
    result = retrievers(made_up).search(view, Mode.VIDEO, "Ann washes the cup", focus=ids[0])
    assert result.evidence
    assert {one.clip for one in result.evidence} <= set(clips)
