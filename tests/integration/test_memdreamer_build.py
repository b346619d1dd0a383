"""MemDreamer's hierarchy in the store: killed, resumed and cut builds end with the same rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

import strategies
from domain.errors import WeightsMissing
from domain.faults import FaultPoint
from flows.build import build
from library.outlines import load_outline
from models.sentences import SentenceParser
from store.database import Store
from store.queries.builds import cut_builds, delete_builds, read_built
from store.tables.schema import VideoRow
from strategies.memdreamer.builder import hierarchy_builder
from strategies.memdreamer.settings import HierarchySettings
from strategies.registry import find_strategy
from tests.support.asking import PARTY, Reads, WordToolbox
from tests.support.asking import built_rows as rows
from tests.support.caption_evaluations import workspace_of
from tests.support.full_suite import sample
from tests.support.killed_runs import killed_at
from tests.support.library_templates import FilledLibraries
from tests.support.remembered import Said, watch

EXTRA = Path(__file__).parents[1] / "support" / "extra_strategies"
MINUTE = 60_000
SMALL = HierarchySettings(window_ms=3 * MINUTE, episode_ms=(MINUTE, 2 * MINUTE))
TOPICS = (
    ("Ann washes the red car", "The car stands in the garage"),
    ("Bob cooks noodles in the kitchen", "The soup boils in the pot"),
    ("Ann plays the guitar", "Bob sings a song about the sea"),
)
CLIPS = 42


@pytest.fixture
def whole(
    store: Store, libraries: FilledLibraries, monkeypatch: pytest.MonkeyPatch
) -> list[dict[str, Any]]:
    """The rows of a build that nothing breaks off, which are in the store."""
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(EXTRA)])
    return libraries.fill(store, build_afternoon)


def build_afternoon(store: Store) -> list[dict[str, Any]]:
    remember_afternoon(store)
    built(store)
    return rows(store)


def remember_afternoon(store: Store) -> None:
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


def built(store: Store) -> None:
    """Build by a strategy with MemDreamer's builder, and smaller windows."""
    plain = find_strategy("first-lines")
    dreamer = replace(plain, name="dreamer", builder=lambda: hierarchy_builder(SMALL))
    build(workspace_of(store), PARTY, dreamer, lambda *_: None)


@pytest.mark.parametrize(
    ("point", "step"),
    sample(
        [(FaultPoint.BUILD_ROWS, 25)],
        product((FaultPoint.BUILD_ROWS, FaultPoint.BUILD_COMMITTED), (7, 25, CLIPS)),
    ),
)
def test_a_killed_build_goes_on_to_the_same_rows(
    store: Store,
    whole: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    point: FaultPoint,
    step: int,
) -> None:
    assert {row["level"] for row in whole if row["row"] == "node_revision"} == {
        "macro",
        "super",
        "root",
        "event",
        "text",
    }
    with store.begin() as session:
        delete_builds(session, PARTY)
    with killed_at(monkeypatch, point, step):
        built(store)
    built(store)
    assert rows(store) == whole


@pytest.mark.full
def test_a_cut_build_is_built_again_to_same_rows(store: Store, whole: list[dict[str, Any]]) -> None:
    with store.begin() as session:
        cut_builds(session, PARTY, [20])
    assert len(rows(store)) < len(whole)
    built(store)
    assert rows(store) == whole


def test_a_reader_words_the_chapters_in_one_call_each(store: Store) -> None:
    remember_afternoon(store)
    tools = Reads({"title": "A day at home", "summary": "They play."})
    strategy = find_strategy("memdreamer")
    made = build(workspace_of(store, tools), PARTY, strategy, lambda *_: None)
    chapters = load_outline(store, PARTY, 2).finest()
    assert {(one.title, one.text) for one in chapters} == {("A day at home", "They play.")}
    assert made.use
    assert made.use.calls == len(tools.model.seen) == len(chapters) > 1


def test_a_stream_that_ends_has_rows_of_a_video(store: Store, whole: list[dict[str, Any]]) -> None:
    """The clip that comes last may be built only when nothing follows it for certain."""
    with store.begin() as session:
        delete_builds(session, PARTY)
        session.execute(update(VideoRow).values(state="watching"))
    built(store)
    with store.begin() as session:
        assert read_built(session, PARTY, "dreamer").through_clip == CLIPS - 2
        session.execute(update(VideoRow).values(state="done"))
    built(store)
    assert rows(store) == whole


@pytest.mark.parametrize("memory", ["memdreamer", "worldmm"])
def test_without_a_pipeline_nothing_is_deleted(store: Store, tmp_path: Path, memory: str) -> None:
    class NothingPulled(WordToolbox):
        sentences = SentenceParser(tmp_path)

    remember_afternoon(store)
    build(workspace_of(store), PARTY, find_strategy(memory), lambda *_: None)
    before = rows(store)
    lacking = workspace_of(store, NothingPulled())
    with pytest.raises(WeightsMissing, match="homer models pull"):
        build(lacking, PARTY, find_strategy(memory), lambda *_: None, again=True)
    assert rows(store) == before != []
