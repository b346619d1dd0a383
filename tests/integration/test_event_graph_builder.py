"""The event graph as a memory that is built while watching, or later, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text, update
from sqlalchemy.orm import Session

from benchmarks.patches import fill, first_graph
from domain.asking import Question
from domain.faults import FaultPoint
from domain.trajectory import EvidenceRetrieved
from flows import build as building
from flows.build import Built, build
from flows.removal import delete_video_rows
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from graphs.context_factory import StrategyTools
from graphs.replay import replay
from graphs.runner import Runner
from library.memory import dump_lines
from library.moments import load_moment
from library.search import found_of
from library.strategies import built_memories
from memory.writers import make_writers
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import Writers
from models.profile import Profile
from models.toolbox import Toolbox
from store.database import Store, open_store
from store.home import Home
from store.queries.events import add_revisions, add_segments, open_edges_of, open_segments_near
from store.queries.trajectories import events_of
from store.tables.schema import Base, VideoRow
from strategies.homer.strategy import EventGraphBuilder
from strategies.named_tools import find_tool, use_once
from strategies.registry import find_strategy
from tests.support.asking import WordToolbox
from tests.support.caption_evaluations import workspace_of
from tests.support.full_suite import in_full
from tests.support.killed_runs import killed_at
from tests.support.light_models import light_toolbox
from tests.support.media import make_video
from tests.support.memory import VIDEO, known_video
from tests.support.remembered import Said, watch
from tests.support.statements import statements

PARTY = "a" * 16
TALK = ("Ann paints the fence", "Bob plays the piano", "the rain begins", "everybody eats cake")
HOMER = find_strategy("homer")
KINDS = ("segment", "segment_revision", "edge", "patch")
SEARCHED = "Searched without its own memory, since homer's memory of them is not built: party."


@pytest.fixture
def library(store: Store) -> Store:
    """A party of 23 clips that was watched to its end, without an event graph."""
    lines = [[Said(f"{TALK[clip // 6]} {clip}", 3, source="caption")] for clip in range(23)]
    watch(store, PARTY, lines)
    with store.begin() as session:
        session.execute(update(VideoRow).values(title="party", state="done"))
    return store


def built(store: Store, *, again: bool = False) -> Built:
    return build(workspace_of(store), PARTY, HOMER, lambda *_: None, again=again)


def events(store: Store, video: str) -> list[str]:
    return [line for line in dump_lines(store, video) if json.loads(line)["row"] in KINDS]


def test_a_missing_event_graph_is_built_and_one_that_is_there_left_alone(library: Store) -> None:
    steps: list[tuple[int, int]] = []
    made = build(workspace_of(library), PARTY, HOMER, lambda *step: steps.append(step))
    assert (made.clips, made.total, made.use) == (23, 23, None)
    assert steps == [(0, 23), (10, 23), (20, 23), (23, 23)]
    first = events(library, PARTY)
    assert any("Ann paints the fence" in line for line in first)
    assert (built(library).clips, events(library, PARTY)) == (0, first)
    assert (built(library, again=True).clips, events(library, PARTY)) == (23, first)


class ModelWriter(LocalEventWriter):
    """Writes as the rules do, and says that it is a model."""

    name = "openai:test"


@pytest.mark.full
def test_its_writer_is_on_record_and_shown(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with library.begin() as session:
        session.execute(update(VideoRow).values(state="watching"))
    built(library)
    assert shown_writers(library) == ("rules",)
    with library.begin() as session:
        session.execute(update(VideoRow).values(state="done"))

    def by_model(toolbox: Toolbox, profile: Profile) -> Writers:
        return Writers(make_writers(toolbox, profile).clip, ModelWriter(profile.settings.memory))

    monkeypatch.setattr(building, "make_writers", by_model)
    built(library)
    assert shown_writers(library) == ("rules", "openai:test")
    question = Question(text="Who plays the piano?", videos=(PARTY,))
    with Runner(library, WordToolbox()) as runner:
        made = runner.ask(question)
    assert "The memory was written by rules and openai:test." in made.answer.note
    built(library, again=True)
    assert shown_writers(library) == ("openai:test",)
    assert replay(library, made.trajectory_id).divergence is None
    lines = [json.loads(line) for line in events(library, PARTY)]
    assert {tuple(one["writers"]) for one in lines if one["row"] == "patch"} == {("openai:test",)}


def shown_writers(store: Store) -> tuple[str, ...]:
    """Who wrote the event graph, as ``homer show`` and the view of a moment say alike."""
    with store.begin() as session:
        (built,) = built_memories(session, PARTY)
    assert load_moment(store, PARTY, 0)[0].writers == built.writers
    return built.writers


@pytest.mark.parametrize("point", [FaultPoint.PATCH_ROWS, in_full(FaultPoint.PATCH_COMMITTED)])
def test_a_killed_build_goes_on_to_the_same_graph(
    library: Store, monkeypatch: pytest.MonkeyPatch, point: FaultPoint
) -> None:
    built(library)
    whole = events(library, PARTY)
    with killed_at(monkeypatch, point, 2):
        built(library, again=True)
    assert 0 < len(events(library, PARTY)) < len(whole)
    assert built(library).clips < 23
    assert events(library, PARTY) == whole


@pytest.mark.full
def test_killed_rebuild_reuses_no_replies(library: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    since: list[datetime | None] = []
    build_next = EventGraphBuilder.build_next

    def noted(self: EventGraphBuilder, *parts: Any, **options: Any) -> bool:
        since.append(options["since"])
        return build_next(self, *parts, **options)

    monkeypatch.setattr(EventGraphBuilder, "build_next", noted)
    built(library)
    with killed_at(monkeypatch, FaultPoint.PATCH_COMMITTED, 1):
        built(library, again=True)
    built(library)
    assert (since[:3], len(since)) == ([None, None, None], 6)
    assert None not in since[3:]
    assert len(set(since[3:])) == 1


def test_it_is_one_that_is_built_while_watching(home: Home, store: Store, tmp_path: Path) -> None:
    tools = light_toolbox(tmp_path / "notes")
    workspace = Workspace(home, store, tools.profile, tools)
    path = make_video(tmp_path / "talk.mp4", seconds=26.0, audio=None, scene_s=3.0)

    def watched(*memory: str) -> tuple[str, list[str]]:
        (outcome,) = watch_files(
            workspace.with_memory_of(memory), [path], SilentListener(), direct=True
        )
        video = outcome.video
        return video, events(store, video)

    video, while_watching = watched()
    assert len(while_watching) > 2
    delete_video_rows(store, video)
    assert watched("worldmm") == (video, [])
    assert build(workspace, video, HOMER, lambda *_: None).clips == 13
    assert events(store, video) == while_watching


def test_a_question_without_it_says_so_and_is_answered_from_the_lines(library: Store) -> None:
    question = Question(text="Who plays the piano?", videos=(PARTY,))

    def asked() -> tuple[str, set[tuple[str, ...]]]:
        with Runner(library, WordToolbox()) as runner:
            made = runner.ask(question)
        with library.begin() as session:
            found = events_of(session, made.trajectory_id)
        assert replay(library, made.trajectory_id).divergence is None
        assert made.answer.citations
        return made.answer.note, {e.unbuilt for e in found if isinstance(e, EvidenceRetrieved)}

    note, unbuilt = asked()
    assert SEARCHED in note
    assert unbuilt == {("party",)}
    run, named = StrategyTools(library, WordToolbox()), find_tool("video")
    found, _ = use_once(library, run, named, "the old piano", {})
    assert SEARCHED in found_of(library, found, unbuilt=named.unbuilt_note).notes[-1]
    built(library)
    note, unbuilt = asked()
    assert "not built" not in note
    assert unbuilt == {()}


def test_a_stream_of_which_no_window_is_due_lacks_nothing(library: Store) -> None:
    assert HOMER.windows is not None
    builder, memory = HOMER.windows(), WordToolbox().profile.settings.memory
    with library.begin() as session:
        assert builder.unbuilt(session, [PARTY], memory) == (PARTY,)
        session.execute(update(VideoRow).values(state="watching"))
        assert builder.unbuilt(session, [PARTY], memory) == (PARTY,)
        longer = memory.model_copy(update={"patch_every": 24})
        assert builder.unbuilt(session, [PARTY], longer) == ()


# A patch reads what it touches, however large the graph is and however little is known of it.


SEGMENTS = 3_000
OPENING = {
    "revision": 0,
    "label": "Opening",
    "summary": "It begins.",
    "clips": [0, 1],
    "history": [],
    "from_clip": 1,
    "embedding": None,
}


@pytest.fixture(scope="module")
def large(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[Store]:
    """A graph of which the planner has no statistics."""
    with open_store(Home(tmp_path_factory.mktemp("large")).make(), make_database()) as store:
        with store.begin() as session:
            for name in Base.metadata.tables:
                session.execute(text(f"ALTER TABLE {name} SET (autovacuum_enabled = off)"))
        fill(store, first_graph(SEGMENTS))
        yield store


def rows_visited(session: Session, statement: str, given: Any) -> float:
    """The most rows that any step of the statement goes through, all its loops together."""
    connection = session.connection().connection.driver_connection
    assert connection is not None
    explained = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", given)
    (plan,) = explained.fetchone()
    return max(_visited(plan[0]["Plan"] if isinstance(plan, list) else json.loads(plan)))


def _visited(plan: dict[str, Any]) -> Iterator[float]:
    dropped = sum(value for key, value in plan.items() if key.startswith("Rows Removed"))
    yield (plan["Actual Rows"] + dropped) * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from _visited(part)


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(
    ("labels", "clips"),
    [(["Event 7", "New"], range(21, 31)), ([f"Event {n}" for n in range(8)], range(9_000, 9_010))],
)
def test_segments_near_a_patch_are_found_by_their_indexes(
    large: Store, plans: str, labels: Sequence[str], clips: Sequence[int]
) -> None:
    with large.begin() as session:
        session.execute(text(f"SET LOCAL plan_cache_mode = {plans}"))
        with statements(session) as sent:
            found = open_segments_near(session, VIDEO, labels=labels, clips=clips)
        (one,) = sent
        assert rows_visited(session, *one) <= SEGMENTS / 10
        named = {int(label.split()[1]) for label in labels if label != "New"}
        wanted = named | {clip // 3 for clip in clips if clip < 3 * SEGMENTS}
        assert {one.number for one in found.values()} == wanted


def test_edges_of_a_patch_are_found_by_their_indexes(large: Store) -> None:
    with large.begin() as session:
        near = open_segments_near(session, VIDEO, clips=range(300, 310))
        with statements(session) as sent:
            edges = open_edges_of(session, near)
        (one,) = sent
        assert rows_visited(session, *one) <= SEGMENTS / 10
        assert len(edges) == len(near) + 1


def test_nothing_of_other_videos_leaves_the_database(store: Store) -> None:
    """Every video has a first clip, and many have an event of the same name."""
    for video in (VIDEO, *(f"{n:016x}" for n in range(1, 9))):
        known_video(store, 3, video)
        with store.begin() as session:
            (segment,) = add_segments(session, video, [0]).values()
            add_revisions(session, [{**OPENING, "segment_id": segment}])
    counts: list[int] = []
    with store.begin() as session:
        engine = session.get_bind()
        event.listen(
            engine, "after_cursor_execute", lambda *output: counts.append(output[1].rowcount)
        )
        (found,) = open_segments_near(session, VIDEO, labels=["Opening"], clips=[0]).values()
    assert (found.number, found.label) == (0, "Opening")
    # One row for its label, and the same for its clip.
    assert counts == [2]
