"""Alerts on what is no line of a clip: segments of the event graph, and what keyframes show."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from domain.alerts import Hit
from domain.media import Box, ClipState, SeenObject
from domain.memories import ClipMemories, MemorySource
from domain.time import TimeSpan
from flows.removal import delete_video_span
from flows.workspace import Workspace
from library.alerts import try_alert
from memory.event_graph_update import apply_next_patch
from memory.patches import WrittenPatch, WrittenSegment
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import EventWindow, Writers
from store.database import Store
from store.queries.events import delete_event_graph
from store.queries.videos import DONE, find_video, set_video_state
from tests.support.alerted import clip_with, hits, judged, text_alert, watch, workspace_of
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    keyframe,
    known_video,
    local_writers,
    percept,
    remember,
)

CARRIED = WrittenSegment(
    label="Work at the house",
    summary="The weather is discussed. A man carries a ladder into the hall. Then they rest.",
    clips=(0, 1, 2),
)
REST = WrittenSegment(label="A long rest", summary="Everybody rests.", clips=tuple(range(3, 10)))


class Told:
    """Writes the patches that it is given, one after the other."""

    name = "told"

    def __init__(self, *patches: tuple[WrittenSegment, ...]) -> None:
        self._patches = iter(patches)

    def patch(self, window: EventWindow) -> WrittenPatch:
        return WrittenPatch(segments=next(self._patches))

    def repair(self, window: EventWindow, patch: WrittenPatch, complaints: object) -> WrittenPatch:
        return patch


@pytest.fixture
def workspace(store: Store) -> Workspace:
    known_video(store, 20)
    return workspace_of(store)


def watch_talk(store: Store, clips: range) -> None:
    watch(store, *(clip_with(number, "The weather is fine.") for number in clips))


def patch(store: Store, writer: Told, since: datetime | None = None) -> None:
    assert apply_next_patch(store, VIDEO, writer, Tools(), SETTINGS.memory, False, since)


def found(workspace: Workspace) -> list[Hit]:
    judged(workspace)
    return hits(workspace)


def test_a_segment_that_answers_is_an_event_once_it_is_written(workspace: Workspace) -> None:
    store = workspace.store
    text_alert(workspace)
    watch_talk(store, range(10))
    assert found(workspace) == [], "no line answers"
    patch(store, Told((CARRIED, REST)))
    (one,) = found(workspace)
    assert (one.span, one.ref) == (TimeSpan.of(0, 90_000), f"s{one.segment}")
    assert one.text.startswith("Work at the house: The weather is discussed. A man carries")
    assert hits(workspace, video=VIDEO, as_of=299_000) == [], "it was not known yet"
    assert len(hits(workspace, video=VIDEO, as_of=300_000)) == 1
    assert judged(workspace) == 0, "a segment is judged once"


def test_an_extended_segment_is_judged_again_within_the_debounce(workspace: Workspace) -> None:
    store = workspace.store
    text_alert(workspace, debounce=60)
    text_alert(workspace, "sheep", question="sheep graze in a garden", debounce=60)
    text_alert(workspace, "once", question="everybody rests", debounce=60)
    text_alert(workspace, "both", question="everybody rests", debounce=0)
    garden = WrittenSegment(
        label="A garden",
        summary="Everybody rests. Sheep graze in a garden.",
        clips=tuple(range(3, 20)),
        extends="A long rest",
    )
    watch_talk(store, range(20))
    writer = Told((CARRIED, REST), (garden,))
    patch(store, writer)
    patch(store, writer)
    seen = [(one.alert, one.clip, one.span.end_ms) for one in found(workspace)]
    assert sorted(seen) == [
        ("both", 9, 300_000),
        ("both", 19, 600_000),
        ("ladder", 9, 90_000),
        ("once", 9, 300_000),
        ("sheep", 19, 600_000),
    ]


def test_an_event_of_a_line_is_not_followed_by_one_of_its_segment(workspace: Workspace) -> None:
    text_alert(workspace, debounce=30)
    watch(workspace.store, clip_with(0, "The weather is fine."))
    watch(workspace.store, clip_with(1, "A man carries a ladder."))
    watch_talk(workspace.store, range(2, 10))
    patch(workspace.store, Told((CARRIED, REST)))
    (one,) = found(workspace)
    assert (one.clip, one.segment) == (1, None)


def test_words_of_several_sentences_do_not_answer_together(workspace: Workspace) -> None:
    text_alert(workspace, question="a red tent burns", threshold=0.9)
    scattered = CARRIED.model_copy(
        update={"summary": "A red car stops. They pack the tent. A candle burns."}
    )
    watch_talk(workspace.store, range(10))
    patch(workspace.store, Told((scattered, REST)))
    assert found(workspace) == []


def test_segments_of_video_that_is_over_or_built_again_are_not_judged(workspace: Workspace) -> None:
    store = workspace.store
    text_alert(workspace)
    watch_talk(store, range(20))
    again = CARRIED.model_copy(update={"label": "Again", "clips": (10, 11)})
    other = REST.model_copy(update={"label": "Others", "clips": tuple(range(12, 20))})
    writer = Told((CARRIED, REST), (again, other))
    patch(store, writer, since=datetime(2026, 1, 1, tzinfo=UTC))
    with store.begin() as session:
        set_video_state(session, VIDEO, DONE)
    patch(store, writer)
    assert found(workspace) == []
    scores = {hit.clip: hit.score > 0.7 for hit in try_alert(workspace, "ladder")}
    assert sorted(clip for clip, answers in scores.items() if answers) == [9, 19]


def test_deleting_a_part_of_a_segment_deletes_its_event(workspace: Workspace) -> None:
    store = workspace.store
    text_alert(workspace)
    watch_talk(store, range(10))
    patch(store, Told((CARRIED, REST)))
    assert len(found(workspace)) == 1
    with store.begin() as session:
        video = find_video(session, VIDEO)
    delete_video_span(workspace, video, TimeSpan.of(270_000, 271_000))
    assert len(hits(workspace)) == 1, "the clip after which it was written is none of its own"
    delete_video_span(workspace, video, TimeSpan.of(31_000, 32_000))
    assert hits(workspace) == []


def test_building_event_graph_again_deletes_events_of_its_segments(workspace: Workspace) -> None:
    text_alert(workspace)
    text_alert(workspace, "weather", question="the weather is fine")
    watch_talk(workspace.store, range(10))
    patch(workspace.store, Told((CARRIED, REST)))
    assert {one.alert for one in found(workspace)} == {"ladder", "weather"}
    with workspace.store.begin() as session:
        delete_event_graph(session, VIDEO)
    assert {one.alert for one in hits(workspace)} == {"weather"}


class WithoutThings:
    """Writes no line about things, as a language model may; it describes keyframes."""

    source, wants_context = "", False

    def write(self, *seen: object) -> ClipMemories:
        written = LocalClipWriter().write(*seen)  # type: ignore[arg-type]
        kept = (one for one in written.drafts if one.source is not MemorySource.OBJECTS)
        return written.model_copy(update={"drafts": tuple(kept)})


def test_a_thing_in_view_that_has_no_line_is_an_event(workspace: Workspace) -> None:
    text_alert(workspace, "dog", question="a dog")
    things = (SeenObject(time_ms=7_000, label="dog", score=0.9, box=Box(x0=0, y0=0, x1=9, y1=9)),)
    seen = percept(0, keyframes=(keyframe(7),), objects=things)
    writers = Writers(WithoutThings(), local_writers().event)
    done = remember(workspace.store, VIDEO, Perceived(seen), writers, Tools(), SETTINGS)
    assert done is ClipState.DONE
    (one,) = found(workspace)
    assert (one.ref, one.span.start_ms) == (f"k{one.keyframe}", 7_000)
    assert "dog" in one.text
