"""VAM: documents of events, searches with anchored times, inspection and summaries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import cv2
import numpy as np
import pytest
from sqlalchemy import update

from agent.strategy import ToolArguments, ToolUse
from domain.asking import Question
from domain.built import Node
from domain.errors import InputError, NotFound
from domain.faults import FaultPoint
from domain.media import Stream
from domain.moments import Retrieval
from domain.trajectory import Acted, Event, EvidenceRetrieved, ModelCalled
from flows.build import build
from graphs.context_factory import StrategyTools
from graphs.replay import replay
from graphs.runner import Runner
from library.rights import give_right, rights_on
from models.toolbox import Toolbox
from perception.images import LIKENESS, likeness
from retrieval.quotes_and_citations import cite
from store.database import Store
from store.queries.backup import video_records
from store.queries.builds import build_writers, read_built
from store.queries.clips import memory_view
from store.queries.percepts import add_blobs
from store.queries.videos import add_stream
from store.tables.schema import FrameRow, VideoRow
from strategies.registry import find_strategy
from strategies.vam.strategy import NO_IMAGES
from tests.support.asking import PARTY, ReadingToolbox, WordToolbox
from tests.support.caption_evaluations import workspace_of
from tests.support.full_suite import in_full
from tests.support.killed_runs import killed_at
from tests.support.library_templates import FilledLibraries
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox
from tests.support.openai_server import OpenAIServer
from tests.support.prompted_models import MomentModel
from tests.support.remembered import CLIP_MS, Said, watch

VAM = find_strategy("vam")
LINES = ("Ann paints the fence", "Bob fixes the red bike", "A dog sleeps in the shade")
MINUTES = 20
CLIPS = MINUTES * 60_000 // CLIP_MS
COLOURS = ((40, 40, 200), (40, 200, 40), (200, 40, 40))


@pytest.fixture
def garden(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, film_garden)
    return store


def film_garden(store: Store) -> None:
    """Twenty minutes in which three things happen in turn, each for two minutes."""
    pause = 120_000 // CLIP_MS
    lines = [LINES[n // pause % 3] for n in range(CLIPS)]
    watch(store, PARTY, [[Said(text, 3, source="caption")] for text in lines])
    with store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
        for clip in range(0, CLIPS, pause):
            image = np.full((48, 64, 3), COLOURS[clip // pause % 3], np.uint8)
            image[10:20, clip % 40 : clip % 40 + 8] = 0
            data = cv2.imencode(".jpg", image)[1].tobytes()
            blob = store.blobs.put(data)
            add_blobs(session, PARTY, {blob: len(data)})
            row = FrameRow(
                video_id=PARTY, builder="vam", clip=clip, time_ms=clip * CLIP_MS, blob=blob,
                width=64, height=48, tier=0, reason="event", image_encoder=LIKENESS,
                embedding=likeness(image[:, :, ::-1]).tolist(),
            )  # fmt: skip
            session.add(row)


@pytest.fixture
def built_garden(garden: Store) -> Store:
    build(workspace_of(garden), PARTY, VAM, lambda *_: None)
    return garden


def rows(store: Store) -> list[dict[str, Any]]:
    kinds = ("build", "node_revision")
    with store.begin() as session:
        return [record for record in video_records(session, PARTY) if record["row"] in kinds]


def nodes(store: Store, level: str = "event") -> list[Node]:
    with store.begin() as session:
        found = read_built(session, PARTY, "vam").nodes
    return [node for node in found if node.level == level]


def writers(store: Store) -> tuple[str, ...]:
    with store.begin() as session:
        return build_writers(session, "vam", [PARTY])


def use(
    store: Store,
    name: str,
    as_of_ms: int | None = None,
    toolbox: Toolbox | None = None,
    strategy: str = "vam",
    **arguments: Any,
) -> Retrieval:
    used = find_strategy(strategy)
    tool = used.tool(name)
    with store.begin() as session:
        view = memory_view(session, [PARTY], as_of_ms)
    parsed: ToolArguments = tool.arguments.model_validate(arguments)
    circumstances = ToolUse(without=used.without)
    return StrategyTools(store, toolbox or WordToolbox())(used, tool, view, parsed, circumstances)


def test_events_begin_with_their_frames_and_have_documents(built_garden: Store) -> None:
    events = nodes(built_garden)
    assert [one.span.start_ms for one in events] == [120_000 * n for n in range(10)]
    assert [one.text for one in events] == [LINES[n % 3] for n in range(10)]
    assert events[0].from_clip == (120_000 + 300_000) // CLIP_MS - 1
    assert events[-1].span.end_ms == MINUTES * 60_000
    assert nodes(built_garden, "open")[-1].text == ""


def test_what_is_not_an_event_yet_is_found_as_of_its_minute(built_garden: Store) -> None:
    found = use(built_garden, "search", 180_000, query="Who fixes the bike?").evidence
    assert "Bob fixes the red bike" in found[0].text
    assert found[0].span.end_ms == 180_000
    assert not use(built_garden, "search", 59_999, query="Who fixes the bike?").evidence


@pytest.mark.parametrize("point", [FaultPoint.BUILD_ROWS, in_full(FaultPoint.BUILD_COMMITTED)])
def test_a_killed_build_goes_on_to_the_same_documents(
    garden: Store, monkeypatch: pytest.MonkeyPatch, point: FaultPoint
) -> None:
    with killed_at(monkeypatch, point, 9):
        build(workspace_of(garden), PARTY, VAM, lambda *_: None)
    build(workspace_of(garden), PARTY, VAM, lambda *_: None)
    resumed = rows(garden)
    build(workspace_of(garden), PARTY, VAM, lambda *_: None, again=True)
    assert rows(garden) == resumed


def test_a_language_model_writes_the_documents_once_each(garden: Store) -> None:
    model = MomentModel()
    with OpenAIServer(model) as server:
        workspace = workspace_of(garden, LlmToolbox(server, reasoner="local", writer="llm"))
        build(workspace, PARTY, VAM, lambda *_: None)
    assert model.asked == {"document": 10}
    assert nodes(garden)[1].text == f"Written: {LINES[1]}"
    assert set(writers(garden)) == {"openai:test", "rules"}, "rules write what is no event yet"


def test_times_are_anchored_to_what_is_searched_for(built_garden: Store) -> None:
    anchor = {"q": "Bob fixes the red bike", "occurrence": 2}
    times = {"kind": "anchored", "relation": "after", "anchor": anchor, "within_s": 60}
    found = use(built_garden, "search", times=times)
    assert [piece.text for piece in found.evidence] == [LINES[2]]
    assert found.searched.startswith("10:00")
    far = {**times, "anchor": {**anchor, "occurrence": 9}}
    with pytest.raises(InputError, match="found 3 times, so there is no occurrence 9"):
        use(built_garden, "search", times=far)


def test_frames_that_look_like_a_result_are_found(built_garden: Store) -> None:
    first = use(built_garden, "inspect", start_s=0, end_s=1, toolbox=ReadingToolbox()).images[0]
    found = use(built_garden, "search", visual_ref=first.ref)
    assert [image.time_ms // 120_000 % 3 for image in found.images[:3]] == [0, 0, 0]
    assert first.ref not in {image.ref for image in found.images}
    by_document = use(built_garden, "search", visual_ref=f"n{nodes(built_garden)[1].id}")
    assert by_document.images[0].time_ms // 120_000 % 3 == 1
    with pytest.raises(NotFound, match="no frame that is kept"):
        use(built_garden, "search", visual_ref="f999999")


def test_inspection_says_what_is_read_and_detected(built_garden: Store) -> None:
    document = nodes(built_garden)[2]
    found = use(
        built_garden, "inspect", toolbox=ReadingToolbox(), refs=[f"n{document.id}"], query="what?"
    )
    (piece,) = found.evidence
    assert piece.ref.startswith("f")
    assert piece.span.start_ms == 240_000
    assert piece.text.startswith("text: EXIT 12; things: 1 cup")
    assert not use(built_garden, "inspect", start_s=10, end_s=20).evidence
    with built_garden.begin() as session:
        cited = cite(session, memory_view(session, [PARTY]), [piece.ref])
    assert [one.ref for one in cited.citations] == [piece.ref]


def test_summaries_are_kept_and_found_as_of_their_moment(built_garden: Store) -> None:
    made = use(built_garden, "summarize", granularity_s=600, end_s=1_200, start_s=0)
    assert [piece.span.start_ms for piece in made.evidence] == [0, 600_000]
    assert set(LINES) <= set(nodes(built_garden, "summary overview 600 s")[0].text.split("\n"))
    again = use(built_garden, "summarize", granularity_s=600, end_s=1_200, start_s=0)
    assert [piece.ref for piece in again.evidence] == [piece.ref for piece in made.evidence]
    found = use(built_garden, "search", query="Ann paints", sources=["summary"])
    assert {piece.ref for piece in found.evidence} == {piece.ref for piece in made.evidence}
    early = use(built_garden, "search", 600_000, query="Ann paints", sources=["summary"])
    assert not early.evidence
    with pytest.raises(InputError, match="40 windows, at most 24"):
        use(built_garden, "summarize", granularity_s=30, start_s=0, end_s=1_200)
    with pytest.raises(InputError, match="switched off"):
        use(built_garden, "summarize", strategy="vam-without-summaries", granularity_s=600)


def test_who_may_only_look_gets_summaries_that_are_kept_and_keeps_none(built_garden: Store) -> None:
    give_right(built_garden, "key:reader", video=PARTY)
    rights_on(built_garden)
    reader = built_garden.for_viewer("key:reader")
    assert use(reader, "summarize", granularity_s=600, end_s=600, start_s=0).evidence
    assert not nodes(built_garden, "summary overview 600 s")
    made = use(built_garden, "summarize", granularity_s=600, end_s=600, start_s=0)
    again = use(reader, "summarize", granularity_s=600, end_s=600, start_s=0)
    assert again.evidence == made.evidence


@pytest.mark.parametrize(
    ("tool", "wrong"),
    [
        ("search", {"query": "x", "limit": 3}),
        ("search", {"queries": [{"q": "x", "top_k": 5, "inspect_k": 6}]}),
        ("search", {}),
        ("inspect", {"refs": ["m12"]}),
        ("inspect", {"start_s": 5}),
        ("inspect", {"refs": [f"f{n}" for n in range(1, 18)]}),
        ("summarize", {"start_s": 5, "end_s": 4}),
    ],
)
def test_arguments_out_of_bounds_or_unknown_are_refused(tool: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        VAM.tool(tool).arguments.model_validate(wrong)


def test_without_an_image_text_model_frames_are_not_offered(built_garden: Store) -> None:
    toolbox = WordToolbox()
    assert "frames" not in VAM.tools_for(toolbox.profile)
    with pytest.raises(InputError, match="no image-text model"):
        use(built_garden, "frames", query="a red wall")
    question = Question(text="Who fixes the bike?", videos=(PARTY,))
    with Runner(built_garden, toolbox) as runner:
        made = runner.ask(question, strategy="vam")
    assert NO_IMAGES in made.answer.note
    with OpenAIServer(MomentModel()) as server, Runner(built_garden, LlmToolbox(server)) as runner:
        runner.ask(question, strategy="vam")
        shown = [text for text in server.texts() if "The actions" in text]
    assert shown
    assert not any("frame, event" in text for text in shown)


@pytest.fixture
def heard() -> list[Event]:
    return []


def asked(store: Store, heard: list[Event], answer: Any, text: str = LINES[1]) -> Any:
    question = Question(text=f"{text}, when?", videos=(PARTY,))
    with OpenAIServer(answer) as server, Runner(store, LlmToolbox(server)) as runner:
        made = runner.ask(question, collect_events(heard), strategy="vam")
    assert replay(store, made.trajectory_id).divergence is None
    return made.answer


def actions(heard: list[Event]) -> Iterator[tuple[str, str]]:
    for event in heard:
        if isinstance(event, Acted) and event.action is not None:
            yield event.action.kind, str(event.action.mode)


def purposes(heard: list[Event]) -> list[str]:
    return [event.purpose for event in heard if isinstance(event, ModelCalled)]


def test_a_model_routes_and_answers_with_its_best(built_garden: Store, heard: list[Event]) -> None:
    answer = asked(built_garden, heard, MomentModel())
    assert purposes(heard) == ["route", "plan", "plan"]
    (found,) = [event for event in heard if isinstance(event, EvidenceRetrieved)]
    assert [one.ref for one in answer.citations] == [found.evidence[0].ref]
    assert answer.text == "what was found"


def test_the_router_may_begin_with_a_summary(built_garden: Store, heard: list[Event]) -> None:
    answer = asked(built_garden, heard, MomentModel("summarize"))
    assert next(actions(heard)) == ("search", "summarize")
    assert "The memory was written by rules and openai:test." in answer.note
    assert writers(built_garden) == ("rules", "openai:test")


def test_a_summary_by_rules_is_not_the_models(built_garden: Store, heard: list[Event]) -> None:
    class Mute(MomentModel):
        def summarize(self, text: str) -> Any:
            return "no lines"

    assert "The memory was written by rules." in asked(built_garden, heard, Mute("summarize")).note
    assert writers(built_garden) == ("rules",)


def test_malformed_reply_is_repaired_then_searched(built_garden: Store, heard: list[Event]) -> None:
    class Odd(MomentModel):
        def plan(self, text: str) -> Any:
            known = super().plan(text)
            return known if known["action"]["kind"] == "answer" else {**known, "mood": "good"}

    asked(built_garden, heard, Odd())
    assert purposes(heard)[:3] == ["route", "plan", "plan-repair"]
    assert next(actions(heard)) == ("search", "search")
    (found,) = [event for event in heard if isinstance(event, EvidenceRetrieved)]
    assert found.query.endswith("when?")


def test_where_nothing_improves_it_answers(built_garden: Store, heard: list[Event]) -> None:
    class Restless(MomentModel):
        def plan(self, text: str) -> Any:
            query = {"q": f"Ann {self.asked['plan']}", "top_k": 3, "threshold": 0.9}
            return {"reason": "", "action": {"kind": "search", "queries": [query]}}

    asked(built_garden, heard, Restless())
    assert sum(kind == "search" for kind, _ in actions(heard)) == 3
    assert purposes(heard)[-1] == "conclude"


BEGAN = datetime(2026, 1, 10, 9, 0, tzinfo=UTC)


@pytest.fixture
def live_garden(built_garden: Store) -> Store:
    began_ms = round(BEGAN.timestamp() * 1_000)
    with built_garden.begin() as session:
        add_stream(session, PARTY, Stream(source="camera", began_ms=began_ms))
    return built_garden


def at(minute: int) -> str:
    """Return when a minute of the garden was, by this machine's clock."""
    return f"{(BEGAN + timedelta(minutes=minute)).astimezone():%H:%M}"


def test_what_happened_at_a_time_of_day_is_found(live_garden: Store) -> None:
    question = Question(text=f"What happened at {at(9)}?", videos=(PARTY,))
    with Runner(live_garden, WordToolbox()) as runner:
        answer = runner.ask(question, strategy="vam")
    assert answer.answer.text.endswith(f") {LINES[1]}")
    assert f"{at(8)}:00 to {at(10)}:00" in answer.answer.text
    assert [one.span.start_ms for one in answer.answer.citations] == [8 * 60_000]
    assert replay(live_garden, answer.trajectory_id).divergence is None
    long_before = question.model_copy(update={"text": f"What happened at {at(-30)}?"})
    with Runner(live_garden, WordToolbox()) as runner:
        assert runner.ask(long_before, strategy="vam").answer.not_in_memory


def test_results_and_anchored_times_of_a_stream_name_the_time_of_day(live_garden: Store) -> None:
    anchor = {"q": "Bob fixes the red bike", "occurrence": 2}
    times = {"kind": "anchored", "relation": "after", "anchor": anchor, "within_s": 60}
    found = use(live_garden, "search", times=times)
    assert found.searched.startswith("10:00-11:00 (2026-01-10 ")
    assert f" {at(10)}:00 to {at(12)}:00) {LINES[2]}" in found.evidence[0].text
    summary = use(live_garden, "summarize", granularity_s=600, start_s=0, end_s=600).evidence[0]
    assert f" {at(0)}:00 to {at(10)}:00) " in summary.text
    frame = use(live_garden, "inspect", toolbox=ReadingToolbox(), start_s=0, end_s=1).evidence[0]
    assert f" {at(0)}:00 to " in frame.text


def test_of_a_file_no_time_of_day_is_known(built_garden: Store, heard: list[Event]) -> None:
    with pytest.raises(InputError, match="not on record"):
        use(built_garden, "search", times={"kind": "clock", "start": "9:05"})
    question = Question(text="Who fixes the red bike at 14:05?", videos=(PARTY,))
    with Runner(built_garden, WordToolbox()) as runner:
        answer = runner.ask(question, collect_events(heard), strategy="vam").answer
    assert answer.text == LINES[1]
    refused, made = [event for event in heard if isinstance(event, EvidenceRetrieved)]
    assert refused.refused
    assert made.query == question.text


def test_a_model_is_shown_the_time_of_day_of_what_it_writes_of(garden: Store) -> None:
    began_ms = round(BEGAN.timestamp() * 1_000)
    with garden.begin() as session:
        add_stream(session, PARTY, Stream(source="camera", began_ms=began_ms))
    with OpenAIServer(MomentModel()) as server:
        workspace = workspace_of(garden, LlmToolbox(server, reasoner="local", writer="llm"))
        build(workspace, PARTY, VAM, lambda *_: None)
        shown = [text for text in server.texts() if "Write the lines of this event" in text]
    assert f"{at(0)}:00 to {at(2)}:00 by the clock" in shown[0]


def test_a_wrong_best_ref_falls_back_to_the_best_score(
    built_garden: Store, heard: list[Event]
) -> None:
    class Wrong(MomentModel):
        def _answer(self, text: str) -> Any:
            return {**super()._answer(text), "best_ref": {"turn": 7, "result": 90}}

    answer = asked(built_garden, heard, Wrong())
    (found,) = [event for event in heard if isinstance(event, EvidenceRetrieved)]
    best = max(found.evidence, key=lambda piece: piece.score)
    assert [one.ref for one in answer.citations] == [best.ref]
