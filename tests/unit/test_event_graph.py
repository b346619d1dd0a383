"""Patches woven into the graph: extension, absorption, edges re-pointed; properties of any run."""

from __future__ import annotations

from collections.abc import Sequence

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
    drop_invalid_items,
    uncovered_clips,
)
from tests.support.patch_strategies import SEEDS, Seed

SETTINGS = MemorySettings()


def segment(label: str, *clips: int, extends: str | None = None) -> WrittenSegment:
    return WrittenSegment(label=label, summary=f"About {label}.", clips=clips, extends=extends)


def edge(source: str, target: str, relation: str = "before", **more: object) -> WrittenEdge:
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


def shape(graph: OpenGraph) -> dict[str, tuple[int, ...]]:
    return {node.label: node.clips for node in graph.segments.values()}


def ends(graph: OpenGraph) -> set[tuple[str, str, str]]:
    name = {number: node.label for number, node in graph.segments.items()}
    return {(name[link.source], name[link.target], link.relation) for link in graph.edges.values()}


def test_an_extended_segment_keeps_its_number_and_counts_its_revisions() -> None:
    graph = woven(([segment("A", 0, 1)], []), ([segment("A and on", 0, 1, 2, extends="A")], []))
    assert graph.segments == {0: OpenSegment(0, 1, "A and on", "About A and on.", (0, 1, 2))}


def test_a_segment_within_a_wider_one_is_absorbed_and_its_words_are_stored() -> None:
    graph = woven(([segment("Small", 1, 2)], []), ([segment("Wide", 0, 1, 2, 3)], []))
    assert shape(graph) == {"Wide": (0, 1, 2, 3)}
    (output,) = graph.segments[1].history
    assert output == AbsorbedSegment(0, "Small", "About Small.", 1)


def test_edges_of_an_absorbed_segment_go_to_the_survivor() -> None:
    graph = woven(
        ([segment("Small", 2), segment("Before", 0, 1)], [edge("Before", "Small")]),
        ([segment("Wide", 2, 3)], []),
    )
    assert ends(graph) == {("Before", "Wide", "before")}


def test_an_edge_into_the_survivor_itself_goes_and_a_double_is_stored_once() -> None:
    graph = woven(
        (
            [segment("Small", 2), segment("Wide", 2, 3), segment("Else", 7)],
            [
                edge("Small", "Wide", "overlap"),
                edge("Small", "Else", "causes", confidence=0.1),
                edge("Wide", "Else", "causes", confidence=0.9),
            ],
        )
    )
    assert ends(graph) == {("Wide", "Else", "causes")}
    assert [link.confidence for link in graph.edges.values()] == [0.9]


def test_an_edge_is_changed_and_removed_by_its_ends_and_relation() -> None:
    first = ([segment("A", 0), segment("B", 1)], [edge("A", "B", confidence=0.2)])
    changed = woven(first, ([], [edge("A", "B", confidence=0.8)]))
    assert [link.confidence for link in changed.edges.values()] == [0.8]
    assert not woven(first, ([], [edge("A", "B", removed=True)])).edges


PATCHES = st.lists(SEEDS, max_size=4)


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
        check_sound(graph, at_clip)
        covered = {clip for node in graph.segments.values() for clip in node.clips}
        assert covered | set(pending) >= set(range(at_clip + 1))


def check_sound(graph: OpenGraph, at_clip: int) -> None:
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
