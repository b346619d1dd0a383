"""EventMemAgent: both memories as of any clip, frames that are read on demand, turns of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from agent.strategy import ToolArguments, ToolUse
from domain.asking import Question
from domain.built import Node
from domain.errors import InputError, NotFound
from domain.faults import FaultPoint
from domain.media import Clip, TimedImage
from domain.moments import Retrieval
from domain.time import TimeSpan
from domain.trajectory import Acted, Event, EvidenceRetrieved, ModelCalled
from flows.build import build
from graphs.context_factory import StrategyTools
from graphs.replay import replay
from graphs.runner import Runner
from memory.kept_frames import ClipKeeping, VideoKeepers
from models.toolbox import Toolbox
from people.model_transactions import run_with_models
from store.database import Store, remove_unused_blobs
from store.queries.backup import video_records
from store.queries.builds import read_built
from store.queries.clips import memory_view
from store.queries.videos import find_video
from store.tables.schema import FrameRow, VideoRow
from strategies.eventmem.strategy import SETTINGS
from strategies.registry import find_strategy
from tests.support.asking import PARTY, ReadingToolbox, WordToolbox
from tests.support.caption_evaluations import workspace_of
from tests.support.full_suite import in_full
from tests.support.killed_runs import killed_at
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox
from tests.support.openai_server import OpenAIServer
from tests.support.picture_cards import striped_jpeg
from tests.support.prompted_models import EventMemoryModel
from tests.support.remembered import CLIP_MS, Said, watch

EVENTMEM = find_strategy("eventmem")
LINES = ("Ann paints the fence", "Bob fixes the red bike", "A dog sleeps in the shade")
SCENES_S = (14, 75, 9, 40, 130, 12, 22, 58)
"""Seconds of the scenes, in turn dark and bright: some longer than the memory, some short."""
CLIPS = sum(SCENES_S) * 1_000 // CLIP_MS


def scene_of(second: int) -> int:
    return int(np.searchsorted(np.cumsum(SCENES_S), second, side="right"))


def jpeg(second: int) -> bytes:
    """A frame: stripes that are dark or bright by scene, with a mark that moves."""
    return striped_jpeg(second, dark=scene_of(second) % 2 == 1)


def sampled(clip: Clip) -> list[TimedImage]:
    span = range(clip.span.start_ms, clip.span.end_ms, 1_000)
    return [TimedImage(time_ms=time, jpeg=jpeg(time // 1_000)) for time in span]


@pytest.fixture
def stream(store: Store) -> Store:
    """A stream that was watched with the keeper; each scene has a line, every ten seconds."""
    clips = [
        [
            Said(LINES[scene_of(clip * CLIP_MS // 1_000 + at) % 3], at, source="caption")
            for at in (2, 12, 22)
        ]
        for clip in range(CLIPS)
    ]
    watch(store, PARTY, clips)
    with store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
        video = find_video(session, PARTY)
    assert EVENTMEM.keeper is not None
    keepers = VideoKeepers(video, {"eventmem": EVENTMEM.keeper()})
    for index in range(CLIPS):
        clip = Clip(index=index, span=TimeSpan.of(index * CLIP_MS, (index + 1) * CLIP_MS))
        keeping = ClipKeeping(store, keepers, clip, sampled(clip))
        keeping.prepare()
        run_with_models(store, keeping.store)
        remove_unused_blobs(store, keeping.unused)
    return store


@pytest.fixture
def built_stream(stream: Store) -> Store:
    build(workspace_of(stream), PARTY, EVENTMEM, lambda *_: None)
    return stream


def nodes(store: Store, level: str = "event") -> list[Node]:
    with store.begin() as session:
        found = read_built(session, PARTY, "eventmem").nodes
    return [node for node in found if node.level == level]


def use(
    store: Store,
    name: str,
    as_of_ms: int | None = None,
    toolbox: Toolbox | None = None,
    **arguments: Any,
) -> Retrieval:
    tool = EVENTMEM.tool(name)
    with store.begin() as session:
        view = memory_view(session, [PARTY], as_of_ms)
    parsed: ToolArguments = tool.arguments.model_validate(arguments)
    return StrategyTools(store, toolbox or WordToolbox())(EVENTMEM, tool, view, parsed, ToolUse())


def test_frames_that_left_are_gone_but_for_the_first_of_each_event(stream: Store) -> None:
    starts = [0, *np.cumsum(SCENES_S)[:-1].tolist()]
    with stream.begin() as session:
        rows = list(session.scalars(select(FrameRow).order_by(FrameRow.time_ms)))
        records = [row for row in rows if row.reason.startswith("first of event")]
    firsts = {row.time_ms // 1_000 for row in rows if row.reason.startswith("first")}
    assert firsts == set(starts)
    assert [row.reason for row in records[:2]] == [
        "first of event 0: 0+14",
        "first of event 1: 14000+75",
    ]
    assert {row.tier for row in records} == {1}
    assert len(rows) <= SETTINGS.frames + len(starts)
    assert {row.blob for row in rows} == {sha for sha, _ in stream.blobs.walk()}


def test_each_event_says_how_it_changes(built_stream: Store) -> None:
    events = nodes(built_stream)
    assert [one.span.start_ms // 1_000 for one in events] == [
        0, *np.cumsum(SCENES_S)[:-1].tolist(),
    ]  # fmt: skip
    assert events[1].text.split("\n") == [
        LINES[1],
        "Since the event before: the same people and things",
        "Into the next event: nobody and nothing stays",
    ]
    # Written when the event after it has ended: 14 + 75 + 9 s.
    assert events[1].from_clip == 98_000 // CLIP_MS


@pytest.mark.parametrize("point", [in_full(FaultPoint.BUILD_ROWS), FaultPoint.BUILD_COMMITTED])
def test_a_killed_build_goes_on_to_the_same_documents(
    stream: Store, monkeypatch: pytest.MonkeyPatch, point: FaultPoint
) -> None:
    def rows() -> list[dict[str, Any]]:
        kinds = ("build", "node_revision")
        with stream.begin() as session:
            return [record for record in video_records(session, PARTY) if record["row"] in kinds]

    with killed_at(monkeypatch, point, 4):
        build(workspace_of(stream), PARTY, EVENTMEM, lambda *_: None)
    build(workspace_of(stream), PARTY, EVENTMEM, lambda *_: None)
    resumed = rows()
    build(workspace_of(stream), PARTY, EVENTMEM, lambda *_: None, again=True)
    assert rows() == resumed


def test_a_language_model_writes_captions_and_changes(stream: Store) -> None:
    model = EventMemoryModel()
    with OpenAIServer(model) as server:
        workspace = workspace_of(stream, LlmToolbox(server, reasoner="local", writer="llm"))
        build(workspace, PARTY, EVENTMEM, lambda *_: None)
    assert model.asked == {"event": len(SCENES_S)}
    assert nodes(stream)[1].text.split("\n") == [
        f"Written: {LINES[1]}",
        "Since the event before: it changes",
        "Into the next event: it goes on",
    ]


def test_the_short_term_memory_is_shown_in_order_with_numbers(built_stream: Store) -> None:
    found = use(built_stream, "short_term", query="What does Bob fix?")
    times = [image.time_ms for image in found.images]
    assert (times, len(times)) == (sorted(times), SETTINGS.frames)
    assert found.images[5].description.startswith("frame 5")
    assert f"{len(times)} frames of 1 events" in found.searched
    early = use(built_stream, "short_term", 60_000, query="What does Bob fix?")
    assert "are not kept any more" in early.searched
    assert all(piece.span.end_ms <= 60_000 for piece in early.evidence)
    assert any("Bob fixes the red bike" in piece.text for piece in early.evidence)


def test_long_term_memory_is_searched_by_words_or_time(built_stream: Store) -> None:
    found = use(built_stream, "search_memory", query="Bob fixes the red bike").evidence
    assert {LINES[1]} == {piece.text.split(" Since")[0] for piece in found}
    assert len(found) == 3
    assert not use(built_stream, "search_memory", query="rocket launch").evidence
    timed = use(built_stream, "search_memory", start_s=20, end_s=95).evidence
    assert [piece.span.start_ms for piece in sorted(timed, key=lambda p: p.span.start_ms)] == [
        14_000,
        89_000,
    ]


def test_frames_are_read_by_number_event_and_ref(built_stream: Store) -> None:
    reading = ReadingToolbox()
    by_number = use(built_stream, "ocr", toolbox=reading, frame_index=0).evidence
    assert [piece.text.partition(";")[0] for piece in by_number] == ["text: EXIT 12"]
    (of_event,) = use(built_stream, "ocr", toolbox=reading, event_id=1).evidence
    assert of_event.span.start_ms == 14_000
    again = use(built_stream, "ocr", toolbox=reading, ref=of_event.ref).evidence
    assert [piece.ref for piece in again] == [of_event.ref]
    with pytest.raises(NotFound, match="has 32 frames: frame 99 is not kept"):
        use(built_stream, "ocr", toolbox=reading, frame_index=99)
    with pytest.raises(NotFound, match="belongs to event 99"):
        use(built_stream, "ocr", toolbox=reading, event_id=99)


def test_things_that_cannot_be_detected_are_named(built_stream: Store) -> None:
    def detect(*labels: str) -> Retrieval:
        return use(
            built_stream, "detect_objects", toolbox=ReadingToolbox(), labels=labels, event_id=0
        )

    assert [piece.text.partition(";")[0] for piece in detect("cup").evidence] == ["1 cup"]
    both = detect("Dog", "unicorn")
    assert [piece.text.partition(";")[0] for piece in both.evidence] == ["1 dog"]
    assert both.searched.endswith("not among what I can detect: unicorn")
    assert detect("unicorn").searched == "not among what I can detect: unicorn"
    assert not detect("unicorn").evidence


@pytest.mark.parametrize(
    ("tool", "wrong"),
    [
        ("short_term", {"more": 1}),
        ("search_memory", {}),
        ("search_memory", {"start_s": 4}),
        ("search_memory", {"start_s": 4, "end_s": 3}),
        ("ocr", {}),
        ("ocr", {"frame_index": 1, "event_id": 1}),
        ("detect_objects", {"frame_index": 1, "labels": []}),
    ],
)
def test_arguments_out_of_bounds_or_unknown_are_refused(tool: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        EVENTMEM.tool(tool).arguments.model_validate(wrong)


def test_without_a_detector_none_is_offered(built_stream: Store) -> None:
    profile = WordToolbox().profile.model_copy(update={"objects": "none"})
    assert EVENTMEM.tools_for(profile) == ("short_term", "search_memory", "ocr")

    class Blind(WordToolbox):
        @property
        def objects(self) -> None:
            return None

    with pytest.raises(InputError, match="no detector"):
        use(built_stream, "detect_objects", toolbox=Blind(), frame_index=0, labels=["cup"])


def heard_of(store: Store, answer: Any, text: str) -> tuple[list[Event], Any, list[str]]:
    heard: list[Event] = []
    question = Question(text=text, videos=(PARTY,))
    with OpenAIServer(answer) as server, Runner(store, LlmToolbox(server)) as runner:
        made = runner.ask(question, collect_events(heard), strategy="eventmem")
        shown = server.texts()
    assert replay(store, made.trajectory_id).divergence is None
    return heard, made.answer, shown


def modes(heard: list[Event]) -> Iterator[str]:
    for event in heard:
        if isinstance(event, Acted) and event.action is not None and event.action.mode:
            yield str(event.action.mode)


def test_question_without_a_time_looks_at_the_short_term_memory_first(built_stream: Store) -> None:
    heard, answer, _ = heard_of(built_stream, EventMemoryModel(), "Who fixes the bike?")
    assert list(modes(heard)) == ["short_term", "search_memory"]
    purposes = [event.purpose for event in heard if isinstance(event, ModelCalled)]
    assert (purposes, answer.text) == (["react", "react"], "what was found")
    found = {
        p.ref for event in heard if isinstance(event, EvidenceRetrieved) for p in event.evidence
    }
    assert {one.ref for one in answer.citations} <= found


def test_a_question_with_a_time_is_searched_at_that_time(built_stream: Store) -> None:
    heard, _, _ = heard_of(built_stream, EventMemoryModel(), "What happens at 01:00?")
    first = next(event for event in heard if isinstance(event, EvidenceRetrieved))
    assert (first.mode, first.arguments) == ("search_memory", {"start_s": 30.0, "end_s": 90.0})
    with Runner(built_stream, WordToolbox()) as runner:
        made = runner.ask(
            Question(text="What happens at 01:00?", videos=(PARTY,)), strategy="eventmem"
        )
    assert made.answer.citations
