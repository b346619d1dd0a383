"""MemDreamer's hierarchy written by a language model: sound, whatever the model replies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.builder import BuildModels
from domain.built import WatchedClip
from strategies.memdreamer.builder import HierarchyBuilder
from strategies.memdreamer.levels import MACRO, ROOT, SUPER
from strategies.memdreamer.settings import HierarchySettings
from tests.support.built_in_memory import MemoryRows, built_of
from tests.support.full_suite import examples
from tests.support.watched_days import VIDEO, watched_day
from tests.support.writing_model import Answer, WritingModel, anything, sensible
from tests.unit.test_memdreamer_builder import MODELS, SLOW, check_sound, nodes, watched

MINUTE = 60_000
SMALL = HierarchySettings(
    window_ms=3 * MINUTE, episode_ms=(MINUTE, 2 * MINUTE), long_video_ms=15 * MINUTE
)


def models(answer: Answer) -> BuildModels:
    return replace(MODELS, model=WritingModel(answer))


@settings(max_examples=examples(4, 40), deadline=None, suppress_health_check=SLOW)
@given(clips=watched(), seed=st.integers(0, 10_000))
def test_whatever_model_replies_the_hierarchy_is_sound(clips: list[WatchedClip], seed: int) -> None:
    check_sound(built_of(HierarchyBuilder(SMALL), VIDEO, clips, models(anything(seed))), clips)


@settings(max_examples=examples(1, 5), deadline=None)
@given(seed=st.integers(0, 10_000), step=st.integers(2, 7))
def test_with_the_same_replies_it_is_the_same_in_steps_and_resumed(seed: int, step: int) -> None:
    day, builder, replies = watched_day(50, seed), HierarchyBuilder(SMALL), models(anything(seed))
    whole = built_of(builder, VIDEO, day, replies)
    check_sound(whole, day)
    for other in (
        built_of(builder, VIDEO, day, replies, step=step),
        built_of(builder, VIDEO, day, replies, resumed=True),
    ):
        for clip in (*range(0, 50, 6), 49):
            assert other.seen(clip) == whole.seen(clip)


@pytest.fixture(scope="module")
def written() -> MemoryRows:
    return built_of(HierarchyBuilder(SMALL), VIDEO, watched_day(60), models(sensible))


def test_what_the_model_writes_is_stored(written: MemoryRows) -> None:
    check_sound(written, watched_day(60))
    assert {macro.label for macro in nodes(written, MACRO)} <= {"Part 0", "Part 20", "Part 40"}
    root = nodes(written, ROOT)[0]
    assert (root.label, root.text) == ("A day", "They work.\nThemes: work\nTone: calm")
    names = {one.id: one.key.name for one in written.entities.values()}
    stated = {(names[r.subject], r.predicate, names[r.object]) for r in written.relations}
    assert {("0", "HAPPENS_IN", "garage"), ("Ann", "PERFORMS", "0"), ("0", "CAUSES", "1")} <= stated


def test_edges_between_super_events_have_their_reason_in_the_text(written: MemoryRows) -> None:
    supers = nodes(written, SUPER)
    first = supers[-2]
    assert f"LEADS_TO super {supers[-1].number}: It is said." in first.text
    names = {one.id: one.key for one in written.entities.values()}
    held = [
        (names[r.subject].name, r.predicate, names[r.object].name)
        for r in written.relations
        if r.level == SUPER and r.to_clip is None
    ]
    assert (str(first.number), "LEADS_TO", str(supers[-1].number)) in held
    assert held.count((str(first.number), "BEFORE", str(supers[-1].number))) == 1


def test_a_reply_that_is_not_sound_is_asked_for_once_more() -> None:
    def overlapping(purpose: str, page: str) -> dict[str, object] | None:
        reply = sensible(purpose, page)
        if purpose == "episodes" and reply is not None:
            reply["episodes"] = [*reply["episodes"], *reply["episodes"]]
        return reply

    model = WritingModel(overlapping)
    day = watched_day(20)
    rows = built_of(HierarchyBuilder(SMALL), VIDEO, day, replace(MODELS, model=model))
    check_sound(rows, day)
    assert model.asked.count("episodes-repair") == model.asked.count("episodes") > 0
    assert "graph-repair" not in model.asked


def test_without_a_reply_it_is_written_by_rules() -> None:
    day = watched_day(40)
    silent = built_of(HierarchyBuilder(SMALL), VIDEO, day, models(lambda *_: None))
    by_rules = built_of(HierarchyBuilder(SMALL), VIDEO, day, MODELS)
    assert silent.seen(39) == by_rules.seen(39)
