"""MemDreamer's hierarchy by rules and by a model: sound whatever is watched or replied."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.builder import BuildModels
from domain.asking import Evidence
from domain.built import Node, WatchedClip
from domain.memories import Memory, MemoryKind, MemorySource
from domain.time import TimeSpan
from domain.trajectory import EvidenceRetrieved
from strategies.memdreamer.builder import hierarchy_builder
from strategies.memdreamer.levels import EVENT, GRAPH, MACRO, ROOT, SUPER, TEXT, is_allowed
from strategies.memdreamer.settings import HierarchySettings
from strategies.memdreamer.steps import found_block
from tests.support.built_in_memory import MemoryRows, built_of
from tests.support.full_suite import examples, sample
from tests.support.remembered import PARSER, WordEmbedder
from tests.support.watched_days import CLIP_MS, VIDEO, watched_day
from tests.support.writing_model import Answer, WritingModel, anything, sensible

MODELS = BuildModels(WordEmbedder().embed, PARSER)
MINUTE = 60_000
SLOW = [HealthCheck.too_slow]
"""A busy machine may be slow to make up clips."""
SMALL = HierarchySettings(
    window_ms=3 * MINUTE, episode_ms=(MINUTE, 2 * MINUTE), long_video_ms=30 * MINUTE
)
SMALL_OF_MODEL = HierarchySettings(
    window_ms=3 * MINUTE, episode_ms=(MINUTE, 2 * MINUTE), long_video_ms=15 * MINUTE
)
ROOM = 4_000
"""Bytes of the marks, of the line of the search and of the count of what is left out."""


def nodes(rows: MemoryRows, level: str, *, valid: bool = True) -> list[Node]:
    """The nodes of a level, in order of number."""
    found = [n for n in rows.nodes if n.level == level and not (valid and n.to_clip is not None)]
    return sorted(found, key=lambda node: node.number)


def check_sound(rows: MemoryRows, clips: list[WatchedClip]) -> None:
    """Check that the hierarchy is a partition, spans nest, and edges have allowed ends."""
    macros = nodes(rows, MACRO)
    assert [m.number for m in macros] == list(range(len(macros)))
    assert all(a.span.end_ms <= b.span.start_ms for a, b in pairwise(macros))
    for clip in clips:
        assert sum(m.span.overlap_ms(clip.span) for m in macros) == clip.span.length_ms
    supers = nodes(rows, SUPER)
    assert [number for s in supers for number in s.children] == [m.number for m in macros]
    for one in supers:
        own = [macros[number].span for number in one.children]
        assert (one.span.start_ms, one.span.end_ms) == (own[0].start_ms, own[-1].end_ms)
    roots = nodes(rows, ROOT)
    assert [root.children for root in roots] == [tuple(s.number for s in supers)] * bool(macros)
    for level in (EVENT, TEXT):
        found = nodes(rows, level)
        assert [n.number for n in found] == list(range(len(found)))
        for node in found:
            holders = [m for m in macros if m.span.start_ms <= node.span.start_ms < m.span.end_ms]
            assert len(holders) == 1
            assert node.span.end_ms <= holders[0].span.end_ms
    numbers = {
        kind: {str(node.number) for node in nodes(rows, level)}
        for level, kind in ((EVENT, "EVENT"), (TEXT, "TEXT"), (MACRO, "MACRO"), (SUPER, "SUPER"))
    }
    for edge in rows.relations:
        ends = (edge.subject, edge.object)
        assert is_allowed(edge.level, ends[0].type, edge.predicate, ends[1].type)
        if edge.to_clip is None:
            assert all(end.name in numbers.get(end.type, {end.name}) for end in ends)
        assert edge.node is not None


TEXTS = st.sampled_from(
    (
        *("Ann puts the cup on the table", "Bob opens the door with a key"),
        *("<face_0> is next to <face_1>", "We take the derivative of the function", "hm"),
        *("Der Hund schläft", "TITLE / More"),
    )
)
SOURCES = st.sampled_from(list(MemorySource))
KINDS = st.sampled_from((MemoryKind.EPISODIC, MemoryKind.EPISODIC, MemoryKind.CHARACTER))


@st.composite
def watched(draw: st.DrawFn) -> list[WatchedClip]:
    """Any clips: with pauses between them, empty ones, a short last one, lines across borders."""
    clips, start = [], draw(st.integers(0, 2)) * 10_000
    usual, count = draw(st.sampled_from((7_000, CLIP_MS, 5 * MINUTE))), draw(st.integers(1, 14))
    for number in range(count):
        length = usual if number < count - 1 else draw(st.sampled_from((1, 5_000, usual)))
        span, lines = TimeSpan.of(start, start + length), []
        for at in range(draw(st.integers(0, 4))):
            begin = max(0, start + draw(st.integers(-5_000, length)))
            end = begin + draw(st.sampled_from((0, 2_000, 90_000)))
            lines.append(
                Memory(
                    id=100 * number + at + 1,
                    video=VIDEO.id,
                    clip=number,
                    kind=draw(KINDS),
                    text=draw(TEXTS),
                    span=TimeSpan.of(begin, end),
                    source=draw(SOURCES),
                    speaker=draw(st.sampled_from((None, "<voice_0>", "Ann"))),
                    tags=draw(st.sampled_from(((), ("<face_0>", "<face_1>")))),
                )
            )
        clips.append(WatchedClip(number, span, tuple(lines)))
        start += length + draw(st.sampled_from((0, 0, 0, 200_000)))
    return clips


@settings(max_examples=examples(4, 40), deadline=None, suppress_health_check=SLOW)
@given(clips=watched())
def test_whatever_is_watched_the_hierarchy_is_sound(clips: list[WatchedClip]) -> None:
    check_sound(built_of(hierarchy_builder(SMALL), VIDEO, clips, MODELS), clips)


@settings(max_examples=examples(2, 15), deadline=None, suppress_health_check=SLOW)
@given(clips=watched(), step=st.integers(2, 5))
def test_it_is_same_in_steps_of_any_size_and_resumed(clips: list[WatchedClip], step: int) -> None:
    builder = hierarchy_builder(SMALL)
    whole, last = built_of(builder, VIDEO, clips, MODELS), clips[-1].clip
    for other in (
        built_of(builder, VIDEO, clips, MODELS, step=step),
        built_of(builder, VIDEO, clips, MODELS, step=1, resumed=True),
    ):
        assert all(other.seen(clip) == whole.seen(clip) for clip in range(last + 1))


@pytest.fixture(scope="module")
def day() -> list[WatchedClip]:
    """Two hours and a half, with a new topic every four to five minutes."""
    return watched_day(300)


@pytest.fixture(scope="module")
def built(day: list[WatchedClip]) -> MemoryRows:
    return built_of(hierarchy_builder(), VIDEO, day, MODELS)


def test_a_day_has_episodes_where_topic_changes(built: MemoryRows, day: list[WatchedClip]) -> None:
    check_sound(built, day)
    macros = nodes(built, MACRO)
    changes = {9 * CLIP_MS * n for n in range(len(day) // 9 + 1)}
    near = [m for m in macros if min(abs(m.span.start_ms - c) for c in changes) <= CLIP_MS]
    assert len(near) >= 0.5 * len(macros)
    assert all(MINUTE <= m.span.length_ms <= 10 * MINUTE for m in macros[:-1])


def test_super_events_have_three_to_eight_macro_events(built: MemoryRows) -> None:
    sizes = [len(one.children) for one in nodes(built, SUPER)]
    assert all(3 <= size <= 8 for size in sizes[:-1])


@pytest.mark.parametrize("tenth", sample([3, 10], range(1, 11)))
def test_a_question_as_of_a_tenth_sees_what_was_built_by_then(
    built: MemoryRows, day: list[WatchedClip], tenth: int
) -> None:
    seen = day[: tenth * len(day) // 10]
    if tenth == 10:
        seen = day[:-1]
    by_then = built_of(hierarchy_builder(), VIDEO, seen, MODELS, ended=False)
    last = seen[-1].clip
    assert built.seen(last) == by_then.seen(last)
    assert len(nodes(by_then, MACRO)) >= len(seen) * CLIP_MS // (10 * MINUTE)


def test_only_the_last_super_events_change(built: MemoryRows) -> None:
    for macro in nodes(built, MACRO):
        revised = [n for n in built.nodes if n.level == SUPER and n.from_clip == macro.from_clip]
        assert len(revised) <= 3


def test_who_does_what_with_what_is_in_the_graph(built: MemoryRows) -> None:
    stated = {(r.subject.name, r.predicate) for r in built.relations}
    assert {("Ann", "PERFORMS"), ("red car", "RECEIVES"), ("<voice_0>", "PERFORMS")} <= stated
    assert {("<face_0>", "NEXT_TO"), ("laptop", "MENTIONED")} <= stated


def test_a_long_video_has_twenty_super_events_at_most() -> None:
    settings = HierarchySettings(
        window_ms=MINUTE + 1_000,
        episode_ms=(30_000, MINUTE),
        long_video_ms=10 * MINUTE,
        long_supers=(4, 6),
    )
    rows = built_of(hierarchy_builder(settings), VIDEO, watched_day(160, lines=2), MODELS)
    assert len(nodes(rows, MACRO)) > 6 * 8
    assert len(nodes(rows, SUPER)) <= 6


@pytest.mark.parametrize(
    ("level", "subject", "label", "target", "allowed"),
    [
        (GRAPH, "PERSON", "PERFORMS", "EVENT", True),
        (MACRO, "MACRO", "ENABLES", "MACRO", True),
        (SUPER, "SUPER", "LEADS_TO", "SUPER", True),
        (GRAPH, "EVENT", "PERFORMS", "PERSON", False),
        (GRAPH, "PERSON", "BEFORE", "EVENT", False),
        (GRAPH, "PERSON", "LIKES", "PERSON", False),
        (SUPER, "MACRO", "LEADS_TO", "SUPER", False),
    ],
)
def test_only_an_edge_between_ends_of_its_kinds_is_allowed(
    level: str, subject: str, label: str, target: str, allowed: bool
) -> None:
    assert is_allowed(level, subject, label, target) is allowed


def models(answer: Answer) -> BuildModels:
    return replace(MODELS, model=WritingModel(answer))


@settings(max_examples=examples(4, 40), deadline=None, suppress_health_check=SLOW)
@given(clips=watched(), seed=st.integers(0, 10_000))
def test_whatever_model_replies_the_hierarchy_is_sound(clips: list[WatchedClip], seed: int) -> None:
    check_sound(
        built_of(hierarchy_builder(SMALL_OF_MODEL), VIDEO, clips, models(anything(seed))), clips
    )


@settings(max_examples=examples(1, 5), deadline=None)
@given(seed=st.integers(0, 10_000), step=st.integers(2, 7))
def test_with_the_same_replies_it_is_the_same_in_steps_and_resumed(seed: int, step: int) -> None:
    day, builder, replies = (
        watched_day(50, seed),
        hierarchy_builder(SMALL_OF_MODEL),
        models(anything(seed)),
    )
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
    return built_of(hierarchy_builder(SMALL_OF_MODEL), VIDEO, watched_day(60), models(sensible))


def test_what_the_model_writes_is_stored(written: MemoryRows) -> None:
    check_sound(written, watched_day(60))
    assert {macro.label for macro in nodes(written, MACRO)} <= {"Part 0", "Part 20", "Part 40"}
    root = nodes(written, ROOT)[0]
    assert (root.label, root.text) == ("A day", "They work.\nThemes: work\nTone: calm")
    stated = {(r.subject.name, r.predicate, r.object.name) for r in written.relations}
    assert {("0", "HAPPENS_IN", "garage"), ("Ann", "PERFORMS", "0"), ("0", "CAUSES", "1")} <= stated


def test_edges_between_super_events_have_their_reason_in_the_text(written: MemoryRows) -> None:
    supers = nodes(written, SUPER)
    first = supers[-2]
    assert f"LEADS_TO super {supers[-1].number}: It is said." in first.text
    held = [
        (r.subject.name, r.predicate, r.object.name)
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

    model, day = WritingModel(overlapping), watched_day(20)
    rows = built_of(hierarchy_builder(SMALL_OF_MODEL), VIDEO, day, replace(MODELS, model=model))
    check_sound(rows, day)
    assert model.asked.count("episodes-repair") == model.asked.count("episodes") > 0
    assert "graph-repair" not in model.asked


def test_without_a_reply_it_is_written_by_rules() -> None:
    day = watched_day(40)
    silent = built_of(hierarchy_builder(SMALL_OF_MODEL), VIDEO, day, models(lambda *_: None))
    by_rules = built_of(hierarchy_builder(SMALL_OF_MODEL), VIDEO, day, MODELS)
    assert silent.seen(39) == by_rules.seen(39)


def found(count: int, said: str, refs: str = "PERFORMS n7") -> EvidenceRetrieved:
    """A search that found so many pieces; each tenth is near to the question."""
    pieces = tuple(
        Evidence(
            ref=f"n{number}",
            video="abcdefabcdefabcd",
            span=TimeSpan.of(number * 1_000, number * 1_000 + 500),
            text=f"event: {said}\n{refs}",
            score=0.9 if number % 10 == 0 else 0.1,
        )
        for number in range(1, count + 1)
    )
    arguments = {"macro_id": "n1"}
    return EvidenceRetrieved(mode="get_subgraph", query="x", arguments=arguments, evidence=pieces)


def shown(block: str) -> list[int]:
    return [int(number) for number in re.findall(r"^\[n(\d+)\]", block, re.M)]


@pytest.mark.parametrize("said", ["short", "a long text " * 200, "Жанна поёт песню " * 50])
@pytest.mark.parametrize("count", [1, 20, 500])
def test_a_search_keeps_to_its_room(said: str, count: int) -> None:
    block = found_block(found(count, said), ROOM)
    assert len(block.encode()) <= ROOM + 200
    assert shown(block)


def test_what_is_nearest_to_the_question_is_kept_in_its_order() -> None:
    block = found_block(found(300, "somebody does something with a thing"), ROOM)
    numbers = shown(block)
    assert numbers == sorted(numbers)
    assert {1, *range(10, 301, 10)} <= set(numbers)
    left = 300 - len(numbers)
    assert f"({left} more are not shown: ask for less at a time)" in block
