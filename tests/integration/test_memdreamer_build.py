"""MemDreamer's hierarchy in the store: killed, resumed and cut builds end with the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

import strategies
from agent.strategy import Strategy
from domain.faults import FaultPoint
from flows.build import build
from store.database import Store
from store.queries.builds import cut_builds, delete_builds, read_built
from store.queries.records import video_records
from store.tables.schema import VideoRow
from strategies.memdreamer.builder import HierarchyBuilder
from strategies.memdreamer.settings import HierarchySettings
from strategies.registry import find_strategy
from tests.support.asking import PARTY
from tests.support.caption_evaluations import workspace_of
from tests.support.killed_runs import killed_at
from tests.support.remembered import Said, watch

EXTRA = Path(__file__).parents[1] / "support" / "extra_strategies"
KINDS = ("build", "node_revision", "entity", "relation")
MINUTE = 60_000
SMALL = HierarchySettings(window_ms=3 * MINUTE, episode_ms=(MINUTE, 2 * MINUTE))
TOPICS = (
    ("Ann washes the red car", "The car stands in the garage"),
    ("Bob cooks noodles in the kitchen", "The soup boils in the pot"),
    ("Ann plays the guitar", "Bob sings a song about the sea"),
)
CLIPS = 42


@pytest.fixture
def dreamer(monkeypatch: pytest.MonkeyPatch) -> Strategy:
    """A strategy with MemDreamer's builder, and smaller windows."""
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(EXTRA)])
    plain = find_strategy("first-lines")
    return replace(plain, name="dreamer", builder=lambda: HierarchyBuilder(SMALL))


@pytest.fixture
def afternoon(store: Store) -> Store:
    """Twenty minutes in which a line is begun in one clip and goes on in the next."""
    clips = []
    for number in range(CLIPS):
        texts = TOPICS[number // 4 % len(TOPICS)]
        lines = [Said(text, 4 * at, "<voice_0>") for at, text in enumerate(texts)]
        lines.append(Said(f"TITLE {number // 5}", 20, source="read"))
        goes_on = number + 1 < CLIPS and number % 3 == 0
        lines.append(Said("and then", 29, "<voice_0>", until=number + 1 if goes_on else None))
        if number % 3 == 1:
            lines.append(Said("and then we go on", -1, "<voice_0>"))
        clips.append(lines)
    watch(store, PARTY, clips)
    with store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
    return store


def built(store: Store, strategy: Strategy) -> None:
    build(workspace_of(store), PARTY, strategy, lambda *_: None)


def rows(store: Store) -> list[dict[str, Any]]:
    with store.begin() as session:
        return [record for record in video_records(session, PARTY) if record["row"] in KINDS]


@pytest.mark.parametrize("point", [FaultPoint.BUILD_ROWS, FaultPoint.BUILD_COMMITTED])
@pytest.mark.parametrize("step", [7, 25, CLIPS])
def test_a_killed_build_goes_on_to_the_same_rows(
    afternoon: Store,
    dreamer: Strategy,
    monkeypatch: pytest.MonkeyPatch,
    point: FaultPoint,
    step: int,
) -> None:
    built(afternoon, dreamer)
    whole = rows(afternoon)
    assert {row["level"] for row in whole if row["row"] == "node_revision"} == {
        "macro",
        "super",
        "root",
        "event",
        "text",
    }
    with afternoon.begin() as session:
        delete_builds(session, PARTY)
    with killed_at(monkeypatch, point, step):
        built(afternoon, dreamer)
    built(afternoon, dreamer)
    assert rows(afternoon) == whole


def test_a_cut_build_is_built_again_to_the_same_rows(afternoon: Store, dreamer: Strategy) -> None:
    built(afternoon, dreamer)
    whole = rows(afternoon)
    with afternoon.begin() as session:
        cut_builds(session, PARTY, [20])
    assert len(rows(afternoon)) < len(whole)
    built(afternoon, dreamer)
    assert rows(afternoon) == whole


def test_a_stream_that_ends_has_the_rows_of_a_video(afternoon: Store, dreamer: Strategy) -> None:
    """The clip that comes last may be built only when nothing follows it for certain."""
    built(afternoon, dreamer)
    whole = rows(afternoon)
    with afternoon.begin() as session:
        delete_builds(session, PARTY)
        session.execute(update(VideoRow).values(state="watching"))
    built(afternoon, dreamer)
    with afternoon.begin() as session:
        assert read_built(session, PARTY, "dreamer").through_clip == CLIPS - 2
        session.execute(update(VideoRow).values(state="done"))
    built(afternoon, dreamer)
    assert rows(afternoon) == whole
