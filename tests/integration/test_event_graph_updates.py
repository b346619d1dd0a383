"""Windows, patches and revisions on a real Postgres, with writers good and bad."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from domain.errors import ModelError
from domain.media import ClipState
from flows.removal import delete_video_rows
from library.memory import dump_lines, show_video
from library.videos import check_video
from memory.event_graph import GraphFault, OpenGraph, apply_change, change_from_patch
from memory.patches import WrittenEdge, WrittenPatch, WrittenSegment
from memory.writers.port import EventWindow, EventWriter, Writers
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.events import PatchAt, patches_of
from tests.support import memory
from tests.support.event_graphs import stored_graph, update_event_graph
from tests.support.full_suite import examples
from tests.support.patch_strategies import SEEDS, Seed

SENTENCES = (
    "We pack the red tent and the blue sleeping bags for the mountain trip",
    "The soup needs more salt and pepper before the guests arrive for dinner",
    "My laptop shows an error when the database server restarts overnight",
)


def watched(store: Store, clips: int, upto: int | None = None) -> str:
    """A video whose topic changes every four clips."""
    video = memory.known_video(store, clips)
    for n in range(clips if upto is None else upto):
        talk_about(store, video, n)
    return video


def done_video(store: Store, clips: int) -> str:
    video = memory.known_video(store, clips)
    with store.begin() as session:
        for n in range(clips):
            mark_clip(session, video, n, ClipState.DONE)
    return video


def talk_about(store: Store, video: str, n: int) -> None:
    words = SENTENCES[n // 4 % len(SENTENCES)].split()
    lines = [memory.said(30 * n + 3 * k, " ".join(words[k % 3 :])) for k in range(6)]
    memory.memorise(store, memory.percept(n, utterances=tuple(lines)), video=video)


def update_graph(
    store: Store, video: str, event: EventWriter | None = None, final: bool = False
) -> int:
    local = memory.local_writers()
    writers = Writers(local.clip, event or local.event)
    return update_event_graph(
        store, video, writers, memory.Tools(), memory.SETTINGS, is_final=final
    )


def test_a_patch_is_due_after_every_ten_clips_and_once(store: Store) -> None:
    video = watched(store, 25, upto=9)
    assert update_graph(store, video) == 0
    talk_about(store, video, 9)
    assert (update_graph(store, video), update_graph(store, video)) == (1, 0)
    for n in range(10, 25):
        talk_about(store, video, n)
    assert (update_graph(store, video), update_graph(store, video)) == (1, 0)
    assert [update_graph(store, video, final=True) for _ in range(2)] == [1, 0]
    with store.begin() as session:
        assert [one.at_clip for one in patches_of(session, video)] == [9, 19, 24]


@pytest.mark.full
def test_windows_built_late_are_those_built_in_time(store: Store) -> None:
    dumps = []
    for late in (True, False):
        video = memory.known_video(store, 23)
        for n in range(23):
            talk_about(store, video, n)
            if not late:
                update_graph(store, video)
        update_graph(store, video, final=True)
        dumps.append([line for line in dump_lines(store, video) if '"segment' in line])
        delete_video_rows(store, video)
    assert dumps[0] == dumps[1] != []


def test_a_view_shows_what_was_known_then_and_nothing_later(store: Store) -> None:
    video = memory.known_video(store, 25)
    shots = {}
    for n in range(25):
        talk_about(store, video, n)
        update_graph(store, video, final=n == 24)
        shots[n] = show_video(store, video, as_of=30_000 * (n + 1))
    for n, then in shots.items():
        now = show_video(store, video, as_of=30_000 * (n + 1))
        assert (now.segments, now.edges, now.people) == (then.segments, then.edges, then.people)
        assert [one.lines for one in now.clips] == [one.lines for one in then.clips]
        assert all(max(one.clips) <= n for one in now.segments)


def test_a_failed_clip_is_left_pending_and_covered_when_it_comes(store: Store) -> None:
    video = memory.known_video(store, 12)
    for n in range(12):
        if n != 5:
            talk_about(store, video, n)
    with store.begin() as session:
        mark_clip(session, video, 5, ClipState.FAILED, "the model was away")
    assert update_graph(store, video, final=True) == 2
    with store.begin() as session:
        assert patches_of(session, video)[-1].pending == (5,)
    assert update_graph(store, video, final=True) == 0
    talk_about(store, video, 5)
    assert [update_graph(store, video, final=True) for _ in range(2)] == [1, 0]
    shown = show_video(store, video)
    assert shown.pending == ()
    assert 5 in {clip for one in shown.segments for clip in one.clips}


class Scripted:
    """Proposes the patches it is given; ``repairs`` are what it answers complaints with."""

    name = "scripted"

    def __init__(
        self, *patches: WrittenPatch, repairs: Sequence[WrittenPatch | Exception] = ()
    ) -> None:
        self.patches, self.repairs = list(patches), list(repairs)
        self.complaints: list[list[str]] = []
        self.windows: list[EventWindow] = []

    def patch(self, window: EventWindow) -> WrittenPatch:
        self.windows.append(window)
        return self.patches.pop(0)

    def repair(
        self, window: EventWindow, patch: WrittenPatch, complaints: Sequence[str]
    ) -> WrittenPatch:
        self.complaints.append(list(complaints))
        answer = self.repairs.pop(0) if self.repairs else patch
        if isinstance(answer, Exception):
            raise answer
        return answer


def segment(label: str, *clips: int, extends: str | None = None) -> WrittenSegment:
    return WrittenSegment(label=label, summary="They talk.", clips=clips, extends=extends)


def whole(*more: WrittenEdge) -> WrittenPatch:
    return WrittenPatch(segments=(segment("All of it", *range(10)),), edges=more)


def test_complaints_go_back_to_the_writer_word_for_word_at_most_twice(store: Store) -> None:
    video = watched(store, 10)
    part = WrittenPatch(segments=(segment("Half", 0, 1, 2, 3, 4),))
    writer = Scripted(part, repairs=[part, whole()])
    assert update_graph(store, video, writer) == 1
    output = ["clips 5, 6, 7, 8, 9 are in no segment: every new clip must be in one"]
    assert writer.complaints == [output, output]
    assert [one.label for one in show_video(store, video).segments] == ["All of it"]
    with store.begin() as session:
        assert patches_of(session, video)[0].repairs == 2


@pytest.mark.parametrize("repairs", [[], [ModelError("away")]])
def test_what_stays_wrong_is_dropped_by_item(store: Store, repairs: list[Exception]) -> None:
    video = watched(store, 10)
    bad = WrittenEdge(source="All of it", target="Nowhere", relation="before", rationale="So.")
    assert update_graph(store, video, Scripted(whole(bad), repairs=repairs)) == 1
    assert [one.label for one in show_video(store, video).segments] == ["All of it"]
    with store.begin() as session:
        (kept,) = patches_of(session, video)
    assert kept.dropped[0]["draft"]["target"] == "Nowhere"
    assert "which is no segment" in kept.dropped[0]["reasons"][0]


def test_a_writer_that_fails_leaves_the_window_for_the_next_time(store: Store) -> None:
    class Away(Scripted):
        def patch(self, window: EventWindow) -> WrittenPatch:
            raise ModelError("away")

    video = watched(store, 10)
    with pytest.raises(ModelError):
        update_graph(store, video, Away())
    assert (show_video(store, video).segments, update_graph(store, video)) == ((), 1)


def test_a_new_revision_hides_the_old_one_only_from_its_clip_on(store: Store) -> None:
    video = watched(store, 20)
    longer = WrittenPatch(segments=(segment("All and more", *range(20), extends="All of it"),))
    update_graph(store, video, Scripted(whole(), longer))
    then, now = show_video(store, video, as_of=300_000), show_video(store, video)
    assert [(one.label, one.revision, len(one.clips)) for one in then.segments] == [
        ("All of it", 0, 10)
    ]
    assert [(one.label, one.revision, len(one.clips)) for one in now.segments] == [
        ("All and more", 1, 20)
    ]
    assert then.segments[0].id == now.segments[0].id


class Seeded(Scripted):
    """Proposes what its seeds are for the graph that it is shown."""

    def __init__(self, seeds: Sequence[Seed]) -> None:
        super().__init__()
        self.seeds = list(seeds)

    def patch(self, window: EventWindow) -> WrittenPatch:
        known = {one.label: one.clips for one in (*window.previous, *window.related)}
        labels = {one.number: one.label for one in window.previous}
        edges = [(labels[one.source], labels[one.target], one.relation) for one in window.edges]
        return self.seeds.pop(0).patch(window.at_clip, known, edges)


def rebuild_graph(patches: Sequence[PatchAt]) -> OpenGraph:
    """Rebuild the open graph from what its patches applied, in order."""
    graph, number = OpenGraph(), 0
    for patch in patches:
        for step in patch.applied["steps"]:
            change = change_from_patch(
                graph, WrittenPatch.model_validate(step), patch.at_clip, number
            )
            graph = apply_change(graph, change)
            number = max([number - 1, *change.segments]) + 1
    return graph


@pytest.mark.full
@hypothesis_settings(
    max_examples=examples(4, 30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(SEEDS, min_size=3, max_size=3))
def test_graph_built_anew_from_its_patches_is_stored_one(store: Store, seeds: list[Seed]) -> None:
    video = done_video(store, 24)
    assert update_graph(store, video, Seeded(seeds), final=True) == 3
    with store.begin() as session:
        patches = patches_of(session, video)
        assert stored_graph(session, video) == rebuild_graph(patches)
        views = [stored_graph(session, video, n).segments for n in range(24)]
    for count, patch in enumerate(patches, 1):
        # What was told at the time is told of that time still, word for word.
        assert views[patch.at_clip] == rebuild_graph(patches[:count]).segments
    for n, view in enumerate(views):
        assert all(max(one.clips) <= n for one in view.values())
    for end in (10, 20, 24):
        # What a writer says may be foolish; what code keeps of it is whole.
        found = check_video(store, video, as_of=30_000 * end).findings
        assert {one.fault for one in found} <= {GraphFault.CYCLE, GraphFault.CONTRADICTION}
    delete_video_rows(store, video)
