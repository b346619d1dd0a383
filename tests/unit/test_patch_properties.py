"""Any patch, once what is wrong is dropped, may be applied; nothing sound is dropped with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.memories import EdgeDraft, EventPatch, SegmentDraft
from domain.settings import MemorySettings
from memory.event_graph import OpenGraph, OpenSegment, apply_change, change_from_patch
from memory.patches import (
    Complaint,
    PatchContext,
    check_patch,
    count_sentences,
    drop_invalid_items,
    edge_endpoints,
    uncovered_clips,
)
from tests.support.memory import span

SETTINGS = MemorySettings()
AT = 9
LABELS = st.sampled_from(["A", "B", "C", "a", "A b", "D", "E", "F", "G", "H", "I"])
CLIPS = st.lists(st.integers(0, AT + 2), max_size=6).map(tuple)
SEGMENTS = st.builds(
    SegmentDraft,
    label=LABELS,
    summary=st.sampled_from(["They talk.", "", "A. " * 9]),
    clips=CLIPS,
    extends=st.none() | LABELS,
)
EDGES = st.builds(
    EdgeDraft,
    source=LABELS,
    target=LABELS,
    relation=st.sampled_from(["before", "causes", "follows"]),
    confidence=st.floats(),
    rationale=st.sampled_from(["So.", " "]),
    evidence=CLIPS,
    removed=st.booleans(),
)
PATCHES = st.builds(
    EventPatch,
    segments=st.lists(SEGMENTS, max_size=10).map(tuple),
    edges=st.lists(EDGES, max_size=5).map(tuple),
)
GROUNDS = st.builds(
    PatchContext,
    at_clip=st.just(AT),
    new=st.sets(st.integers(0, AT)).map(lambda clips: tuple(sorted(clips))),
    watched=st.sets(st.integers(0, AT)).map(
        lambda clips: {clip: span(30 * clip, 30 * clip + 30) for clip in clips}
    ),
    open_segments=st.dictionaries(
        st.sampled_from(["A", "B", "C", "D"]),
        st.lists(st.integers(0, AT), min_size=1, max_size=3, unique=True).map(tuple),
        max_size=3,
    ),
    edges=st.frozensets(
        st.tuples(
            st.sampled_from(["A", "B"]), st.sampled_from(["C", "D"]), st.sampled_from(["before"])
        )
    ),
)


def fatal(patch: EventPatch, ground: PatchContext) -> list[Complaint]:
    return [one for one in check_patch(patch, ground, SETTINGS) if one.fatal]


@given(PATCHES, GROUNDS)
def test_what_is_left_may_be_applied_and_every_item_is_stored_or_on_record(
    patch: EventPatch, ground: PatchContext
) -> None:
    kept, dropped = drop_invalid_items(patch, ground, SETTINGS)
    assert fatal(kept, ground) == []
    assert drop_invalid_items(kept, ground, SETTINGS) == (kept, [])
    assert len(kept.segments) + len(kept.edges) + len(dropped) == (
        len(patch.segments) + len(patch.edges)
    )
    assert all(one.reasons for one in dropped)
    left = iter(patch.segments)
    assert all(one in left for one in kept.segments)


@given(PATCHES, GROUNDS)
def test_a_sound_patch_is_left_as_it_is(patch: EventPatch, ground: PatchContext) -> None:
    kept, dropped = drop_invalid_items(patch, ground, SETTINGS)
    assert (kept == patch) == (not fatal(patch, ground)) == (not dropped)


@given(PATCHES, GROUNDS)
def test_every_complaint_names_its_item_and_is_one_line(
    patch: EventPatch, ground: PatchContext
) -> None:
    for one in check_patch(patch, ground, SETTINGS):
        assert "\n" not in str(one)
        if one.item == "patch":
            assert not one.fatal
            assert uncovered_clips(patch, ground)
        else:
            segment = one.item == "segment"
            name = patch.segments[one.index].label if segment else patch.edges[one.index].source
            assert repr(name) in str(one)


@given(PATCHES, GROUNDS)
def test_clips_are_left_over_exactly_where_no_segment_holds_them(
    patch: EventPatch, ground: PatchContext
) -> None:
    left = uncovered_clips(patch, ground)
    held = {clip for one in patch.segments for clip in one.clips}
    assert set(left) == set(ground.new) - held
    assert list(left) == sorted(left)


@given(PATCHES, GROUNDS)
def test_what_is_left_weaves_into_the_open_graph(patch: EventPatch, ground: PatchContext) -> None:
    nodes = {
        number: OpenSegment(number, 0, label, "They sit.", tuple(sorted(clips)))
        for number, (label, clips) in enumerate(sorted(ground.open_segments.items()))
    }
    kept, _ = drop_invalid_items(patch, ground, SETTINGS)
    linkless = EventPatch(
        segments=kept.segments, edges=tuple(one for one in kept.edges if not one.removed)
    )
    graph = apply_change(
        OpenGraph(nodes), change_from_patch(OpenGraph(nodes), linkless, AT, len(nodes))
    )
    held = {clip for node in graph.segments.values() for clip in node.clips}
    assert held == {clip for clips in ground.open_segments.values() for clip in clips} | {
        clip for one in kept.segments for clip in one.clips
    }
    labels = [node.label for node in graph.segments.values()]
    assert len({label.casefold() for label in labels}) == len(labels)
    for source, target, _ in graph.edges:
        assert source != target
        assert {source, target} <= graph.segments.keys()


@given(PATCHES, GROUNDS)
def test_an_edge_may_name_what_is_open_new_or_extended(
    patch: EventPatch, ground: PatchContext
) -> None:
    known = edge_endpoints(patch, ground)
    assert set(ground.open_segments) <= known.keys()
    assert {one.label for one in patch.segments} <= known.keys()
    for one in patch.segments:
        assert known[one.label] == one.label


@given(st.text(max_size=40))
def test_every_text_has_at_least_one_sentence(text: str) -> None:
    assert count_sentences(text) >= 1
    assert count_sentences(f"{text} Yes. No!") >= 2
