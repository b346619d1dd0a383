"""A patch is checked item by item and woven into the graph, and loses no clip."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.memories import AbsorbedSegment, OpenSegment
from domain.settings import MemorySettings
from domain.time import TimeSpan
from memory.event_graph import OpenGraph, apply_change, change_from_patch
from memory.patches import (
    PatchContext,
    WrittenEdge,
    WrittenPatch,
    WrittenSegment,
    check_patch,
    count_sentences,
    drop_invalid_items,
    uncovered_clips,
)
from tests.support.patch_strategies import SEEDS, Seed

SETTINGS = MemorySettings()
CLIPS = {n: TimeSpan.of(30_000 * n, 30_000 * n + 30_000) for n in range(20)}
GROUND = PatchContext(
    at_clip=19,
    new=tuple(range(10, 20)),
    watched=CLIPS,
    open_segments={"Breakfast": (0, 1, 2), "A walk": (3, 4, 5, 6, 7, 8, 9)},
    edges=frozenset({("Breakfast", "A walk", "before")}),
)
SUMMARY = "They talk. They eat. They leave. They come back."
PATCHES = st.lists(SEEDS, max_size=4)


def segment(
    label: str, *clips: int, extends: str | None = None, summary: str = SUMMARY
) -> WrittenSegment:
    return WrittenSegment(label=label, summary=summary, clips=clips, extends=extends)


def edge(source: str, target: str, relation: str = "before", **more: object) -> WrittenEdge:
    values = {"rationale": "One is over before the other.", "evidence": (9,)} | more
    return WrittenEdge(source=source, target=target, relation=relation, **values)


def patch(*items: WrittenSegment | WrittenEdge) -> WrittenPatch:
    return WrittenPatch(
        segments=tuple(one for one in items if isinstance(one, WrittenSegment)),
        edges=tuple(one for one in items if isinstance(one, WrittenEdge)),
    )


FIRST, SECOND = segment("Packing", *range(10, 15)), segment("Driving off", *range(15, 20))
GOOD = patch(FIRST, SECOND, edge("Packing", "Driving off"), edge("A walk", "Packing"))


def complaints(*items: WrittenSegment | WrittenEdge) -> str:
    return "\n".join(str(one) for one in check_patch(patch(*items), GROUND, SETTINGS))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (segment("one two three four five six seven eight nine", 10), "more than 8 words"),
        (segment("  ", 10), "no label"),
        (segment("Packing", 10, summary=" "), "no summary"),
        (segment("Packing", 10, summary="So. " * 9), "more than 8 sentences"),
        (segment("Packing"), "no clips"),
        (segment("Packing", 10, 10), "twice"),
        (segment("Packing", 10, 20, 21), "in the future: 20, 21"),
        (segment("breakfast", 10), "label of an earlier segment"),
        (segment("Packing", 10, extends="Lunch"), "no open segment"),
        (segment("A walk", 9, 10, extends="A walk"), "add 3, 4, 5, 6, 7, 8"),
    ],
)
def test_a_bad_segment_is_reported_what_is_wrong_with_it(bad: WrittenSegment, said: str) -> None:
    assert said in complaints(bad)


def test_clips_that_were_never_watched_do_not_exist() -> None:
    ground = PatchContext(at_clip=19, new=(18, 19), watched={18: CLIPS[18], 19: CLIPS[19]})
    found = check_patch(patch(segment("Packing", 17, 18, 19)), ground, SETTINGS)
    assert [str(one) for one in found] == ["segment 'Packing' has clips that do not exist: 17"]


def test_a_segment_may_not_grow_beyond_its_limit() -> None:
    ground = PatchContext(at_clip=19, new=(), watched=CLIPS)
    few = SETTINGS.model_copy(update={"segment_clips": 3})
    assert not check_patch(patch(segment("Packing", 1, 2, 3)), ground, few)
    assert "more than 3 clips" in str(
        check_patch(patch(segment("Packing", 1, 2, 3, 4)), ground, few)[0]
    )


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (edge("Packing", "Driving off", "follows"), "unknown relation: use one of before, overlap"),
        (edge("Packing", "Lunch"), "names 'Lunch'"),
        (edge("Packing", "Packing"), "to itself"),
        (edge("Packing", "Driving off", confidence=1.5), "outside of 0 to 1"),
        (edge("Packing", "Driving off", confidence=math.nan), "outside of 0 to 1"),
        (edge("Packing", "Driving off", rationale=" "), "no rationale"),
        (edge("Packing", "Driving off", evidence=(3, 25)), "in the future: 25"),
        (edge("Packing", "Driving off", removed=True), "there is no such edge"),
    ],
)
def test_a_bad_edge_is_reported_what_is_wrong_with_it(bad: WrittenEdge, said: str) -> None:
    assert said in complaints(FIRST, SECOND, bad)
    kept, dropped = drop_invalid_items(patch(FIRST, SECOND, bad), GROUND, SETTINGS)
    assert kept == patch(FIRST, SECOND)
    assert said in dropped[0].reasons[0]


def test_an_edge_may_be_removed_under_the_new_label_of_an_extended_segment() -> None:
    longer = segment("A long walk", *range(3, 20), extends="A walk")
    for name in ("A walk", "A long walk"):
        assert not complaints(longer, edge("Breakfast", name, removed=True))


def test_an_extended_segment_is_one_end_whatever_it_is_called() -> None:
    longer = segment("A long walk", *range(3, 20), extends="A walk")
    assert "to itself" in complaints(longer, edge("A walk", "A long walk"))


def test_a_segment_is_extended_once() -> None:
    one = segment("A walk", *range(3, 12), extends="A walk")
    two = segment("Another walk", *range(3, 20), extends="A walk")
    kept, dropped = drop_invalid_items(patch(one, two), GROUND, SETTINGS)
    assert kept.segments == (one,)
    assert "which another segment extends already" in dropped[0].reasons[0]


def test_clips_that_no_segment_covers_are_named_and_stay_pending() -> None:
    assert "clips 15, 16, 17, 18, 19 are in no segment" in complaints(FIRST)
    kept, dropped = drop_invalid_items(patch(FIRST), GROUND, SETTINGS)
    assert kept == patch(FIRST)
    assert not dropped
    assert uncovered_clips(kept, GROUND) == (15, 16, 17, 18, 19)


def test_edges_of_a_dropped_segment_go_with_it_and_the_rest_stays() -> None:
    bad = segment("Driving off", 15, 99)
    kept, dropped = drop_invalid_items(patch(FIRST, bad, *GOOD.edges), GROUND, SETTINGS)
    assert kept == patch(FIRST, edge("A walk", "Packing"))
    assert [one.item for one in dropped] == ["segment", "edge"]


def test_a_dropped_segment_gives_its_label_and_its_place_to_the_next() -> None:
    bad, good = segment("Packing", 99), segment("Packing", 10)
    assert drop_invalid_items(patch(bad, good), GROUND, SETTINGS)[0] == patch(good)
    many = [segment(f"Part {n}", 10 + n) for n in range(8)]
    assert len(drop_invalid_items(patch(bad, *many), GROUND, SETTINGS)[0].segments) == 8


def test_segments_beyond_the_limit_are_dropped() -> None:
    many = [segment(f"Part {n}", 10 + n) for n in range(10)]
    kept, dropped = drop_invalid_items(patch(*many), GROUND, SETTINGS)
    assert len(kept.segments) == 8
    assert "one too many" in dropped[0].reasons[0]


def test_a_long_summary_is_complained_of_but_not_dropped() -> None:
    wordy = segment("Packing", *range(10, 20), summary="So it goes. " * 9)
    assert drop_invalid_items(patch(wordy), GROUND, SETTINGS)[0] == patch(wordy)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("No end", 1),
        ('He said "go." Then left.', 2),
        ("Version 2.5 is out.", 1),
    ],
)
def test_sentences_are_counted_by_their_ends(text: str, count: int) -> None:
    assert count_sentences(text) == count


def segment_of_graph(label: str, *clips: int, extends: str | None = None) -> WrittenSegment:
    return WrittenSegment(label=label, summary=f"About {label}.", clips=clips, extends=extends)


def edge_of_graph(
    source: str, target: str, relation: str = "before", **more: object
) -> WrittenEdge:
    return WrittenEdge(
        source=source, target=target, relation=relation, **({"rationale": "So."} | more)
    )


def woven(*patches: tuple[Sequence[WrittenSegment], Sequence[WrittenEdge]]) -> OpenGraph:
    graph, number = OpenGraph(), 0
    for at, (segments, edges) in enumerate(patches):
        patch = WrittenPatch(segments=tuple(segments), edges=tuple(edges))
        change = change_from_patch(graph, patch, at, number)
        graph = apply_change(graph, change)
        number = max([number - 1, *change.segments]) + 1
    return graph


def ends(graph: OpenGraph) -> set[tuple[str, str, str]]:
    name = {number: node.label for number, node in graph.segments.items()}
    return {(name[link.source], name[link.target], link.relation) for link in graph.edges.values()}


def test_an_extended_segment_keeps_its_number_and_counts_its_revisions() -> None:
    graph = woven(
        ([segment_of_graph("A", 0, 1)], []),
        ([segment_of_graph("A and on", 0, 1, 2, extends="A")], []),
    )
    assert graph.segments == {0: OpenSegment(0, 1, "A and on", "About A and on.", (0, 1, 2))}


def test_a_segment_within_a_wider_one_is_absorbed_and_its_words_are_stored() -> None:
    graph = woven(
        ([segment_of_graph("Small", 1, 2)], []), ([segment_of_graph("Wide", 0, 1, 2, 3)], [])
    )
    assert {node.label: node.clips for node in graph.segments.values()} == {"Wide": (0, 1, 2, 3)}
    (output,) = graph.segments[1].history
    assert output == AbsorbedSegment(0, "Small", "About Small.", 1)


def test_edges_of_an_absorbed_segment_go_to_the_survivor() -> None:
    graph = woven(
        (
            [segment_of_graph("Small", 2), segment_of_graph("Before", 0, 1)],
            [edge_of_graph("Before", "Small")],
        ),
        ([segment_of_graph("Wide", 2, 3)], []),
    )
    assert ends(graph) == {("Before", "Wide", "before")}


def test_an_edge_into_the_survivor_itself_goes_and_a_double_is_stored_once() -> None:
    graph = woven(
        (
            [
                segment_of_graph("Small", 2),
                segment_of_graph("Wide", 2, 3),
                segment_of_graph("Else", 7),
            ],
            [
                edge_of_graph("Small", "Wide", "overlap"),
                edge_of_graph("Small", "Else", "causes", confidence=0.1),
                edge_of_graph("Wide", "Else", "causes", confidence=0.9),
            ],
        )
    )
    assert ends(graph) == {("Wide", "Else", "causes")}
    assert [link.confidence for link in graph.edges.values()] == [0.9]


def test_an_edge_is_changed_and_removed_by_its_ends_and_relation() -> None:
    first = (
        [segment_of_graph("A", 0), segment_of_graph("B", 1)],
        [edge_of_graph("A", "B", confidence=0.2)],
    )
    changed = woven(first, ([], [edge_of_graph("A", "B", confidence=0.8)]))
    assert [link.confidence for link in changed.edges.values()] == [0.8]
    assert not woven(first, ([], [edge_of_graph("A", "B", removed=True)])).edges


def ground_of(graph: OpenGraph, at_clip: int, new: Sequence[int]) -> PatchContext:
    labels = {node.number: node.label for node in graph.segments.values()}
    return PatchContext(
        at_clip=at_clip,
        new=tuple(new),
        watched={n: TimeSpan.of(30_000 * n, 30_000 * n + 30_000) for n in range(at_clip + 1)},
        open_segments={node.label: node.clips for node in graph.segments.values()},
        edges=frozenset((labels[s], labels[t], r) for s, t, r in graph.edges),
    )


def proposed(seed: Seed, graph: OpenGraph, at_clip: int) -> WrittenPatch:
    ground = ground_of(graph, at_clip, ())
    return seed.patch(at_clip, ground.open_segments, sorted(ground.edges))


@given(PATCHES)
def test_any_patches_leave_a_sound_graph_and_lose_no_clip(seeds: list[Seed]) -> None:
    graph, number = OpenGraph(), 0
    pending: list[int] = []
    for window, seed in enumerate(seeds):
        at_clip = 10 * window + 9
        new = [*pending, *range(10 * window, at_clip + 1)]
        ground, wanted = ground_of(graph, at_clip, new), proposed(seed, graph, at_clip)
        patch, dropped = drop_invalid_items(wanted, ground, SETTINGS)
        assert not [one for one in check_patch(patch, ground, SETTINGS) if one.fatal]
        count = len(patch.segments) + len(patch.edges) + len(dropped)
        assert count == len(wanted.segments) + len(wanted.edges)
        change = change_from_patch(graph, patch, at_clip, number)
        graph, number = apply_change(graph, change), max([number - 1, *change.segments]) + 1
        pending = list(uncovered_clips(patch, ground))
        labels = [node.label.casefold() for node in graph.segments.values()]
        assert len(set(labels)) == len(labels)
        for node in graph.segments.values():
            assert node.clips == tuple(sorted(set(node.clips)))
            assert 0 <= node.clips[0] <= node.clips[-1] <= at_clip
            assert not [o for o in graph.segments.values() if set(node.clips) < set(o.clips)]
        for key, link in graph.edges.items():
            assert key == link.key
            assert link.source != link.target
            assert {link.source, link.target} <= set(graph.segments)
            assert 0 <= link.confidence <= 1
        covered = {clip for node in graph.segments.values() for clip in node.clips}
        assert covered | set(pending) >= set(range(at_clip + 1))


@given(PATCHES)
def test_a_change_touches_only_what_it_says(seeds: list[Seed]) -> None:
    graph, number = OpenGraph(), 0
    for window, seed in enumerate(seeds):
        at_clip = 10 * window + 9
        wanted = proposed(seed, graph, at_clip)
        patch, _ = drop_invalid_items(wanted, ground_of(graph, at_clip, ()), SETTINGS)
        change = change_from_patch(graph, patch, at_clip, number)
        after = apply_change(graph, change)
        for key in graph.segments.keys() - change.segments.keys() - change.absorbed.keys():
            assert after.segments[key] == graph.segments[key]
        for loser, winner in change.absorbed.items():
            if gone := graph.segments.get(loser):
                kept = after.segments[winner].history
                assert loser in {one.number for one in kept}
                assert set(gone.history) <= set(kept)
        for key in after.segments.keys() & graph.segments.keys():
            grew = after.segments[key].revision - graph.segments[key].revision
            assert grew == (after.segments[key] != graph.segments[key])
        graph, number = after, max([number - 1, *change.segments]) + 1
