"""A search sees what was committed before it, never part of a clip; nothing is cached."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from sqlalchemy import insert, select, text

from domain.asking import Mode, Question
from domain.errors import NotFound
from domain.media import ClipState
from domain.memories import MemoryView
from domain.settings import Settings
from flows.delete import delete_video_rows
from people.across_videos import rename
from retrieval import candidates
from retrieval.retrievers import Retrievers
from store.database import Store, open_store
from store.queries.clips import mark_clip, memory_view
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.memories import supersede
from store.tables.schema import ClipRow, MemoryRow
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.ranking import rank
from tests.support.remembered import CLIP_MS, Event, Said, WordEmbedder, add_event_graph, watch

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
