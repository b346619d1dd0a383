"""A whole event graph is checked, and windows are due for a patch once all is settled."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.memories import Edge, Relation, Segment
from domain.time import TimeSpan
from memory.event_graph import CheckedGraph, GraphFault, are_opposite, find_faults
from memory.event_graph_update import DueWindow, due_window
from store.queries import events as stored
from store.queries.clips import ClipStates
from store.queries.events import PatchAt

CLIP_MS = 30_000
B, O, C = Relation.BEFORE, Relation.OVERLAP, Relation.CONTAINS  # noqa: E741
EVERY = 3


def segment(number: int, *clips: int) -> Segment:
    span = TimeSpan.of(min(clips, default=0) * CLIP_MS, (max(clips, default=0) + 1) * CLIP_MS)
    return Segment(
        id=number, video="v", number=number, label=f"part {number}", summary="", clips=clips,
        span=span,
    )  # fmt: skip


def edge(
    source: int, relation: Relation, target: int, *, explicit: bool = False, on: Sequence[int] = ()
) -> Edge:
    """An edge between two segments by their numbers."""
    return Edge(
        id=100 * source + target, source=source, target=target, relation=relation,
        explicit=explicit, confidence=0.5, rationale="so it is", evidence=tuple(on),
    )  # fmt: skip


def whole(
    segments: Sequence[Segment] = (),
    edges: Sequence[Edge] = (),
    *,
    clips: int = 4,
    woven: int | None = None,
    pending: Sequence[int] = (),
) -> CheckedGraph:
    """A graph over ``clips`` clips that are all done, and woven unless told otherwise."""
    return CheckedGraph(
        stored=frozenset(range(clips)),
        due=frozenset(range(clips if woven is None else woven)),
        pending=frozenset(pending),
        segments=tuple(segments),
        edges=tuple(edges),
    )


THREE = (segment(1, 0), segment(2, 1), segment(3, 2, 3))


def found(graph: CheckedGraph) -> list[tuple[GraphFault, tuple[str, ...]]]:
    return [(one.fault, one.refs) for one in find_faults(graph)]


def test_a_sound_graph_has_nothing_to_say() -> None:
    edges = (edge(1, B, 2, on=[0, 1]), edge(2, B, 3), edge(1, Relation.CAUSES, 3, on=[3]))
    assert find_faults(whole(THREE, edges)) == []
    assert find_faults(whole(clips=0)) == []


def test_a_clip_that_no_segment_holds_is_found() -> None:
    output = found(whole(THREE[:2]))
    assert output == [(GraphFault.UNCOVERED, ("clip 2",)), (GraphFault.UNCOVERED, ("clip 3",))]


def test_clips_left_for_later_or_not_yet_due_are_no_fault() -> None:
    assert find_faults(whole(THREE[:2], pending=[2, 3])) == []
    assert find_faults(whole(THREE[:2], woven=2)) == []


def test_a_segment_without_its_clips_is_found() -> None:
    (one,) = find_faults(whole((*THREE, segment(4, 3, 7, 8, 9, 11))))
    assert (one.fault, one.refs) == (GraphFault.ORPHAN, ("s4",))
    assert "7-9, 11" in one.text
    (empty,) = find_faults(whole((*THREE, segment(5))))
    assert (empty.fault, empty.text) == (GraphFault.ORPHAN, "'part 5' has no clips")


def test_an_edge_to_nothing_and_one_on_nothing_are_found() -> None:
    (gone,) = find_faults(whole(THREE, [edge(1, B, 9)]))
    assert (gone.fault, gone.refs) == (GraphFault.DANGLING, ("s1", "s9"))
    (baseless,) = find_faults(whole(THREE, [edge(1, B, 2, on=[0, 12])]))
    assert (baseless.fault, baseless.refs) == (GraphFault.DANGLING, ("s1", "s2"))
    assert baseless.text.endswith("not in memory: 12")


def test_two_circles_are_two_findings() -> None:
    spread = tuple(segment(n, 0, 1, 2, 3) for n in (1, 2, 3, 4, 5))
    edges = [edge(a, B, b) for a, b in ((1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 3))]
    output = [one.fault for one in find_faults(whole(spread, edges))]
    assert output == [GraphFault.CYCLE, GraphFault.CYCLE]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (edge(1, C, 2), edge(2, C, 1)),
        (edge(1, Relation.CAUSES, 2), edge(2, Relation.CAUSES, 1)),
        (edge(1, Relation.CAUSES, 2), edge(1, Relation.PREVENTS, 2)),
        (edge(1, B, 2), edge(2, Relation.CONCURRENT, 1)),
        (edge(1, B, 2), edge(1, O, 2)),
        (edge(1, B, 2), edge(2, C, 1)),
    ],
)
def test_edges_that_say_opposite_things_are_found(one: Edge, other: Edge) -> None:
    assert are_opposite(one, other)
    assert are_opposite(other, one)
    both = (segment(1, 0, 1, 2, 3), segment(2, 0, 1, 2, 3))
    assert [f.fault for f in find_faults(whole(both, (one, other)))] == [GraphFault.CONTRADICTION]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (edge(1, O, 2), edge(2, O, 1)),
        (edge(1, B, 2), edge(1, Relation.CAUSES, 2)),
        (edge(1, O, 2), edge(1, Relation.ENABLES, 2)),
        (edge(1, Relation.PREVENTS, 2), edge(2, Relation.PREVENTS, 1)),
    ],
)
def test_edges_that_agree_are_left_alone(one: Edge, other: Edge) -> None:
    assert not are_opposite(one, other)


@pytest.mark.parametrize(
    ("late", "faults"),
    [
        (edge(3, B, 1), [GraphFault.CONTRADICTION]),
        (edge(3, B, 1, explicit=True), [GraphFault.CONTRADICTION]),
        (edge(3, Relation.CAUSES, 1), [GraphFault.CONTRADICTION]),
        (edge(3, Relation.CAUSES, 1, explicit=True), []),
        (edge(3, Relation.REQUIRES, 1), []),
    ],
)
def test_later_is_first_only_if_told_later(late: Edge, faults: list[GraphFault]) -> None:
    assert [one.fault for one in find_faults(whole(THREE, [late]))] == faults


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.sampled_from(Relation), st.integers(1, 6)), max_size=25
    ),
    st.sets(st.integers(0, 9)),
)
def test_any_graph_can_be_checked_and_a_circle_is_never_missed(
    ends: list[tuple[int, Relation, int]], evidence: set[int]
) -> None:
    segments = tuple(segment(n, n - 1) for n in range(1, 5))
    edges = [edge(a, relation, b, on=sorted(evidence)) for a, relation, b in ends]
    faults = {one.fault for one in find_faults(whole(segments, edges))}
    before = {(a, b) for a, relation, b in ends if relation is B}
    # The slow way: follow every arc as far as it leads.
    reached = set(before)
    for _ in range(6):
        reached |= {(a, d) for a, b in reached for c, d in before if b == c}
    assert (GraphFault.CYCLE in faults) == any(a == b for a, b in reached)
    assert (GraphFault.DANGLING in faults) == any(
        {a, b} - {1, 2, 3, 4} or evidence - set(range(4)) for a, _, b in ends
    )


class Rows:
    """The states of a video's clips (``d`` done, ``f`` failed, ``p`` not tried) and its patches."""

    def __init__(self, states: str) -> None:
        self.states = states
        self.patches: list[PatchAt] = []

    def settled(
        self, _: object, __: str, start: int, stop: int, also: tuple[int, ...]
    ) -> ClipStates:
        wanted = [n for n in range(len(self.states)) if start <= n < stop or n in also]
        pending = [n for n in range(start, len(self.states)) if self.states[n] == "p"]
        return ClipStates(
            done=tuple(n for n in wanted if self.states[n] == "d"),
            failed=tuple(n for n in wanted if self.states[n] == "f"),
            first_pending=pending[0] if pending else None,
            highest=len(self.states) - 1,
        )

    def last(self, *_: object) -> PatchAt | None:
        return self.patches[-1] if self.patches else None

    def apply(self, due: DueWindow, covered: bool = True) -> None:
        left = set(due.unsettled) | (set() if covered else set(due.new))
        applied = {"steps": [], "unsettled": list(due.unsettled)}
        patch = PatchAt(0, due.at_clip, due.first_clip, 0, applied, [], tuple(sorted(left)))
        self.patches = [one for one in self.patches if one.at_clip != due.at_clip] + [patch]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    kept = Rows("")
    monkeypatch.setattr("memory.event_graph_update.clip_states", kept.settled)
    monkeypatch.setattr(stored, "last_patch", kept.last)
    return kept


def due(rows: Rows, final: bool = False) -> DueWindow | None:
    return due_window(None, "v", EVERY, final)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("states", "final", "at_clip"),
    [
        ("", False, None),
        ("", True, None),
        ("dd", False, None),
        ("dd", True, 1),
        ("ddp", True, None),
        ("ddd", False, 2),
        ("dfd", False, 2),
        ("fff", False, 2),
        ("dpd", False, None),
        ("dddp", False, 2),
        ("dddp", True, 2),
        ("pddddd", False, None),
    ],
)
def test_windows_are_due_settled(rows: Rows, states: str, final: bool, at_clip: int | None) -> None:
    rows.states = states
    found = due(rows, final)
    assert (found.at_clip if found else None) == at_clip
    if found:
        assert found.new == tuple(n for n in range(found.at_clip + 1) if states[n] == "d")
        assert found.unsettled == tuple(n for n in range(found.at_clip + 1) if states[n] == "f")


@given(st.text(alphabet="df", max_size=14), st.lists(st.booleans(), min_size=14, max_size=14))
def test_every_clip_is_offered_until_covered_and_no_more(states: str, covers: list[bool]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        rows = Rows(states)
        patch.setattr("memory.event_graph_update.clip_states", rows.settled)
        patch.setattr(stored, "last_patch", rows.last)
        ends, offered = [], list[int]()
        for covered in covers:
            found = due(rows, final=True)
            if found is None:
                break
            ends.append(found.at_clip)
            assert list(found.new) == sorted(set(found.new))
            assert not set(found.new) & (set(offered) if covered else set())
            rows.apply(found, covered)
            offered += found.new if covered else ()
        assert ends == sorted(set(ends))
        wanted = list(range(EVERY - 1, len(states), EVERY))
        assert ends == [*wanted, *([len(states) - 1] if states and len(states) % EVERY else [])]


def test_clips_that_come_late_after_the_last_window_have_a_patch_of_their_own(rows: Rows) -> None:
    rows.states = "dfd"
    first = due(rows, final=True)
    assert first is not None
    rows.apply(first)
    assert due(rows, final=True) is None
    rows.states = "ddd"
    late = due(rows, final=True)
    assert late is not None
    assert (late.at_clip, late.new, late.earlier_patch) == (2, (1,), rows.patches[0])
    assert due(rows, final=False) is None
    rows.apply(late)
    assert due(rows, final=True) is None


def test_clips_that_come_late_before_another_window_go_along_with_it(rows: Rows) -> None:
    rows.states = "dfdppp"
    first = due(rows)
    assert first is not None
    rows.apply(first)
    rows.states = "dddddd"
    second = due(rows)
    assert second is not None
    assert (second.first_clip, second.at_clip, second.new) == (3, 5, (1, 3, 4, 5))
