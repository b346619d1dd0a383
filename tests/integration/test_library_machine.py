"""The library as a whole, under any sequence of adding, watching, failing, weaving and deleting.

A plain model beside it says what must be there. What a view showed stays as it was, and videos
know nothing of each other: watched alone in another database, each dumps the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from domain.errors import NotFound
from domain.media import ClipState, Video
from domain.settings import MemorySettings, Settings
from flows.removal import delete_video_rows
from library.memory import dump_lines, show_video
from library.videos import all_videos, check_video
from memory.event_graph import GraphFault
from store.database import Store, open_store
from store.home import Home
from store.queries.clips import mark_clip, memory_view, next_clips
from store.queries.conditions import MAX_ATTEMPTS
from store.queries.events import patches_of
from store.queries.videos import DONE, FAILED, WATCHING, add_video, set_video_state
from tests.support.event_graphs import update_event_graph
from tests.support.full_suite import examples
from tests.support.memory import (
    Perceived,
    Tools,
    clip,
    face,
    local_writers,
    percept,
    remember,
    said,
    voice,
)

SMALL = Settings(memory=MemorySettings(patch_every=2))
TOOLS: Any = Tools()
NAMES = ("aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb")
MOST = 4
WORDS = (
    "My name is Ada.",
    "The soup needs more salt and pepper.",
    "The train to the mountains was late because the bridge was closed.",
)
Step = Callable[[Store], object]


@dataclass
class Model:
    """What a video must be: the state of each clip, its failures, and how it came about."""

    clips: int
    state: str = WATCHING
    states: dict[int, ClipState] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    seen: dict[int, Any] = field(default_factory=dict)

    def settled(self, n: int) -> bool:
        given_up = self.attempts.get(n, 0) >= MAX_ATTEMPTS or self.state != WATCHING
        failed = self.states.get(n) == ClipState.FAILED
        return self.states.get(n) == ClipState.DONE or (failed and given_up)

    def last(self, as_of_ms: int | None) -> int:
        last = -1
        for n in range(self.clips):
            if not self.settled(n) or (as_of_ms is not None and 30_000 * (n + 1) > as_of_ms):
                break
            last = n
        return last

    def left(self) -> list[int]:
        return [
            n
            for n in range(self.clips)
            if self.states.get(n) is None
            or (self.states[n] == ClipState.FAILED and self.attempts[n] < MAX_ATTEMPTS)
        ]

    def forget_from(self, n: int) -> None:
        self.seen = {last: shown for last, shown in self.seen.items() if last < n}


class Library(RuleBasedStateMachine):
    """See the module."""

    def __init__(self, store: Store, twin: Store) -> None:
        super().__init__()
        self.store, self.twin = store, twin
        self.model: dict[str, Model] = {}

    def do(self, name: str, step: Step) -> object:
        """Take a step, and note it down for the twin."""
        done = step(self.store)
        self.model[name].steps.append(step)
        return done

    @rule(name=st.sampled_from(NAMES), clips=st.integers(1, MOST))
    def add(self, name: str, clips: int) -> None:
        video = Video(id=name, title=name[:3], path=None, duration_ms=30_000 * clips)

        def step(store: Store) -> bool:
            with store.begin() as session:
                return add_video(session, video, [clip(n) for n in range(clips)], {})

        if name in self.model:
            assert step(self.store) is False
        else:
            self.model[name] = Model(clips)
            assert self.do(name, step) is True

    @rule(
        name=st.sampled_from(NAMES),
        n=st.integers(0, MOST),
        who=st.lists(st.integers(0, 2), max_size=2, unique=True),
        speaker=st.none() | st.integers(0, 1),
        words=st.sampled_from(WORDS),
    )
    def watch(self, name: str, n: int, who: list[int], speaker: int | None, words: str) -> None:
        start = 30 * n
        one = Perceived(
            percept(
                n,
                faces=tuple(face(k, one, (start, start + 25)) for k, one in enumerate(who)),
                voices=() if speaker is None else (voice(0, speaker, (start, start + 6)),),
                utterances=(said(start, words, voice=None if speaker is None else 0, seconds=6),),
            )
        )

        def step(store: Store) -> ClipState:
            return remember(store, name, one, local_writers(), TOOLS, SMALL)

        known = self.model.get(name)
        if known is None or n >= known.clips:
            with pytest.raises(NotFound):
                step(self.store)
            return
        assert self.do(name, step) == ClipState.DONE
        if known.states.get(n) != ClipState.DONE:
            known.states[n] = ClipState.DONE
            known.forget_from(n)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        known = self.model[name]
        left = [n for n in range(known.clips) if known.states.get(n) != ClipState.DONE]
        n = data.draw(st.sampled_from([*left, known.clips]))

        def step(store: Store) -> None:
            with store.begin() as session:
                mark_clip(session, name, n, ClipState.FAILED, "the model was away")

        if n == known.clips:
            with pytest.raises(NotFound):
                step(self.store)
            return
        self.do(name, step)
        known.states[n] = ClipState.FAILED
        known.attempts[n] = known.attempts.get(n, 0) + 1

    @precondition(lambda self: self.model)
    @rule(data=st.data(), state=st.sampled_from([WATCHING, DONE, FAILED]))
    def settle(self, data: st.DataObject, state: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))

        def step(store: Store) -> None:
            with store.begin() as session:
                set_video_state(session, name, state)

        self.do(name, step)
        self.model[name].state = state

    @precondition(lambda self: self.model)
    @rule(data=st.data(), final=st.booleans())
    def update_event_graph(self, data: st.DataObject, final: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        before = self.patches(name)

        def step(store: Store) -> int:
            return update_event_graph(store, name, local_writers(), TOOLS, SMALL, is_final=final)

        if self.do(name, step):
            fresh = [one for one in self.patches(name) if one not in before]
            self.model[name].forget_from(min(at for at, _ in fresh))
        assert step(self.store) == 0

    def patches(self, name: str) -> list[tuple[int, str]]:
        with self.store.begin() as session:
            return [(one.at_clip, repr(one)) for one in patches_of(session, name)]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        delete_video_rows(self.store, name)
        del self.model[name]
        with pytest.raises(NotFound):
            show_video(self.store, name)

    @invariant()
    def the_list_counts_what_is_there(self) -> None:
        listed = {one.id: (one.clips, one.done, one.failed) for one in all_videos(self.store).items}
        assert listed == {name: counts(known) for name, known in self.model.items()}

    @invariant()
    def views_end_where_they_must_and_what_is_left_is_known(self) -> None:
        for name, known in self.model.items():
            for as_of in (None, 0, 29_999, 30_000, 60_000, 10**9):
                with self.store.begin() as session:
                    (scope,) = memory_view(session, [name], as_of).scopes
                    left = [one.index for one in next_clips(session, name)]
                assert (scope.last_clip, left) == (known.last(as_of), known.left())

    @invariant()
    def what_was_seen_stays_as_it_was(self) -> None:
        for name, known in self.model.items():
            for n in range(-1, known.clips):
                shown = show_video(self.store, name, as_of=30_000 * (n + 1))
                output = [one.lines for one in shown.clips]
                all_of_it = (output, shown.people, shown.segments, shown.edges, shown.pending)
                assert known.seen.setdefault(shown.last_clip, all_of_it) == all_of_it

    @invariant()
    def every_graph_is_whole(self) -> None:
        for name in self.model:
            found = {one.fault for one in check_video(self.store, name).findings}
            assert found <= {GraphFault.CYCLE, GraphFault.CONTRADICTION}

    def teardown(self) -> None:
        try:
            for name, known in self.model.items():
                for step in known.steps:
                    step(self.twin)
                assert list(dump_lines(self.twin, name)) == list(dump_lines(self.store, name))
        finally:
            for store in (self.store, self.twin):
                for entry in all_videos(store).items:
                    delete_video_rows(store, entry.id)


def counts(known: Model) -> tuple[int, int, int]:
    states = list(known.states.values())
    return known.clips, states.count(ClipState.DONE), states.count(ClipState.FAILED)


def test_any_sequence_of_steps_leaves_the_library_as_it_must_be(
    store: Store, home: Home, make_database: Callable[[], str]
) -> None:
    with open_store(home, make_database()) as twin:
        run_state_machine_as_test(
            cast("Any", lambda: Library(store, twin)),
            settings=settings(
                max_examples=examples(1, 15),
                stateful_step_count=10,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
