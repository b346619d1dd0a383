"""Applying one patch to the event graph, beside a plain loop that merges in memory.

    python -m benchmarks.patches [--sizes 750 1500 3000] [--patches 21]

Homer's way is the one of an ingestion: what the patch touches is read from Postgres, changed, and
stored in one transaction, commit included. The plain way holds the whole graph in memory and, as
one would write it first, copies it, then looks at every pair of segments for one whose clips are a
strict subset of another's, and re-points every edge.

All apply the same patches one after the other; at the end the graphs must be the same. Prints the
median milliseconds of a patch, the ratio, and how time grows with the graph (1 is in step with it,
2 with its square); and the mean of CPU milliseconds, the database server's among them, which say
more where other work runs beside. Three comparisons, from like to unlike:

- ``change alone``: what is left of Homer's time without reading and storing, beside the plain way.
  Both in memory.
- ``both stored``: Homer beside the plain way that stores its graph too, as one would write that
  first: all its rows anew, in one transaction. Both in the same tables.
- ``Homer stored``: Homer, commit included, beside the plain way that stores nothing.

Texts are embedded by a model that costs nothing, since a plain loop has none.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from sqlalchemy import delete, text

from benchmarks.lines import RUNS, Line, Taken
from domain.memories import AbsorbedSegment, EdgeKey, OpenEdge, OpenSegment
from memory.event_graph import OpenGraph, change_from_patch
from memory.event_graph_update import apply_patch
from memory.patches import WrittenEdge, WrittenPatch, WrittenSegment
from memory.writers.port import EventWindow
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries import events as stored
from store.tables.schema import SegmentRow
from tests.support.event_graphs import stored_graph
from tests.support.memory import VIDEO, known_video

SIZES = (750, 1_500, 3_000)
CLIPS_EACH = 3
BAR = 100
PATCHES = 21
REWRITTEN = 5
"""Patches after which the plain way stores its graph: more would take long and tell no more."""
NEW = 4
"""Segments that a patch adds; it extends one more, and one of them absorbs an old one."""


class Free:
    """Texts embedded at no cost."""

    name = "free"
    dimensions = 384

    @property
    def text(self) -> Free:
        """Itself: a toolbox with nothing else in it."""
        return self

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the same unit vector for every text."""
        return np.full((len(texts), self.dimensions), self.dimensions**-0.5, np.float32)


FREE: Any = Free()


def summary(number: int) -> str:
    """Words of a segment, different for each."""
    return f"They open door {number}. Then they close it again."


def first_graph(segments: int) -> OpenGraph:
    """Segments of three clips each, in a row, each before the next."""
    nodes = {
        n: OpenSegment(
            n, 0, f"Event {n}", summary(n), tuple(range(CLIPS_EACH * n, CLIPS_EACH * (n + 1)))
        )
        for n in range(segments)
    }
    links = [OpenEdge(n, n + 1, "before", True, 0.9, "In a row.", (CLIPS_EACH * n,)) for n in nodes]
    return OpenGraph(nodes, {link.key: link for link in links[:-1]})


def fill(store: Store, graph: OpenGraph) -> None:
    """Store a video and its graph as it is."""
    known_video(store, CLIPS_EACH * len(graph.segments))
    rewrite(store, graph)


def rewrite(store: Store, graph: OpenGraph) -> None:
    """Store a whole graph in place of what was there."""
    with store.begin() as session:
        session.execute(delete(SegmentRow).where(SegmentRow.video_id == VIDEO))
        ids = stored.add_segments(session, VIDEO, list(graph.segments))
        vectors = FREE.embed([node.summary for node in graph.segments.values()])
        rows = [
            {
                "segment_id": ids[node.number],
                "revision": node.revision,
                "label": node.label,
                "summary": node.summary,
                "clips": list(node.clips),
                "history": [asdict(one) for one in node.history],
                "from_clip": 0,
                "embedding": vector.tolist(),
            }
            for node, vector in zip(graph.segments.values(), vectors, strict=True)
        ]
        stored.add_revisions(session, rows)
        edges = [
            {
                "source_id": ids[one.source],
                "target_id": ids[one.target],
                "relation": one.relation,
                "explicit": one.explicit,
                "confidence": one.confidence,
                "rationale": one.rationale,
                "evidence": list(one.evidence),
            }
            for one in graph.edges.values()
        ]
        stored.add_edges(session, VIDEO, 0, edges)


def patch_number(at: int, segments: int) -> WrittenPatch:
    """The ``at``-th patch: new segments in a row, one that takes in an old one, one extended."""
    first = CLIPS_EACH * segments + 10 * at
    fresh = [
        WrittenSegment(label=f"New {at} {n}", summary=summary(-n), clips=(first + n, first + n + 1))
        for n in range(NEW - 1)
    ]
    old = (7 * at + 3) % (segments - 1)
    clips = range(CLIPS_EACH * old, CLIPS_EACH * (old + 1) + 1)
    fresh.append(WrittenSegment(label=f"Wide {at}", summary=summary(at), clips=tuple(clips)))
    if at == 0:
        fresh.append(extended(segments - 1, first))
    ends = [draft.label for draft in fresh]
    edges = [
        WrittenEdge(source=a, target=b, relation="before", rationale="So.", evidence=(first,))
        for a, b in pairwise(ends)
    ]
    return WrittenPatch(segments=tuple(fresh), edges=tuple(edges))


def extended(number: int, clip: int) -> WrittenSegment:
    """Return an old segment that goes on for one more clip."""
    clips = (*range(CLIPS_EACH * number, CLIPS_EACH * (number + 1)), clip)
    return WrittenSegment(label="Grown", summary="More.", clips=clips, extends=f"Event {number}")


def at_clip(at: int, segments: int) -> int:
    """Return the clip after which the ``at``-th patch holds."""
    return CLIPS_EACH * segments + 10 * at + 9


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a patch: by the clock (median), and of processors (mean)."""

    clock: float
    cpu: float


def timed(run: Callable[[int], None], count: int, cpu: Callable[[], float]) -> Cost:
    """Return what ``run`` costs, called with 0, 1, ...; ``cpu`` tells the seconds used so far."""
    taken, before = [], cpu()
    for at in range(count):
        started = time.perf_counter()
        run(at)
        taken.append((time.perf_counter() - started) * 1000)
    return Cost(statistics.median(taken), (cpu() - before) * 1000 / count)


def homer(store: Store, patches: Sequence[WrittenPatch], segments: int) -> Cost:
    """Return what a patch costs that is stored and committed."""

    def run(at: int) -> None:
        window = EventWindow(VIDEO, at_clip(at, segments), {}, ())
        with store.begin() as session:
            apply_patch(session, window, patches[at], FREE)

    return timed(run, len(patches), cpu_of(store))


def cpu_of(store: Store) -> Callable[[], float]:
    """Seconds of processors that this process and its database connection have used."""
    with store.begin() as session:
        server = psutil.Process(int(session.scalar(text("SELECT pg_backend_pid()")) or 0))

    def cpu() -> float:
        used = server.cpu_times()
        return time.process_time() + used.user + used.system

    return cpu


def alone(graph: OpenGraph, patch: WrittenPatch, segments: int) -> float:
    """Milliseconds of working out the last change to ``graph`` from the part that it touches."""
    clips = {clip for draft in patch.segments for clip in draft.clips}
    near = {n for n, node in graph.segments.items() if clips.intersection(node.clips)}
    links = {ends: one for ends, one in graph.edges.items() if near.intersection(ends[:2])}
    around = near | {end for ends in links for end in ends[:2]}
    part = OpenGraph({n: graph.segments[n] for n in sorted(around)}, links)
    started = time.perf_counter()
    change_from_patch(part, patch, at_clip(0, segments), segments)
    return (time.perf_counter() - started) * 1000


def plain(
    graph: OpenGraph,
    patches: Sequence[WrittenPatch],
    segments: int,
    keep: Callable[[OpenGraph], None] = lambda _: None,
    cpu: Callable[[], float] = time.process_time,
) -> tuple[OpenGraph, Cost]:
    """Return the graph after all patches, and what a patch costs; ``keep`` is given each graph."""
    state = [(graph, len(graph.segments))]

    def run(at: int) -> None:
        now, number = state[-1]
        state.append(plainly(now, patches[at], at_clip(at, segments), number))
        keep(state[-1][0])

    cost = timed(run, len(patches), cpu)
    return state[-1][0], cost


def plainly(graph: OpenGraph, patch: WrittenPatch, clip: int, number: int) -> tuple[OpenGraph, int]:
    """One patch by copying, comparing every pair, and re-pointing every edge."""
    nodes = dict(graph.segments)
    labels = {node.label: n for n, node in nodes.items()}
    for draft in patch.segments:
        clips = tuple(sorted(draft.clips))
        if draft.extends is None:
            nodes[number] = OpenSegment(number, 0, draft.label, draft.summary, clips)
            labels[draft.label] = number
            number += 1
        else:
            old = nodes[labels[draft.extends]]
            new = replace(old, label=draft.label, summary=draft.summary, clips=clips)
            nodes[old.number] = replace(new, revision=old.revision + 1)
            labels[draft.label] = old.number
    links = dict(graph.edges)
    for edge in patch.edges:
        link = OpenEdge(
            labels[edge.source],
            labels[edge.target],
            str(edge.relation),
            edge.explicit,
            edge.confidence,
            edge.rationale,
            edge.evidence,
        )
        links[link.key] = link
    return absorb(graph, nodes, links, clip), number


def absorb(
    before: OpenGraph, nodes: dict[int, OpenSegment], links: dict[EdgeKey, OpenEdge], clip: int
) -> OpenGraph:
    """Merge every segment that is a strict subset of another."""
    sets = {n: frozenset(node.clips) for n, node in nodes.items()}
    into: dict[int, int] = {}
    for loser, few in sets.items():
        wider = [winner for winner, many in sets.items() if few < many]
        if wider:
            into[loser] = min(wider, key=lambda n: (-len(sets[n]), n))
    for loser, winner in into.items():
        gone, kept = nodes.pop(loser), nodes[winner]
        output = AbsorbedSegment(gone.number, gone.label, gone.summary, clip)
        known = winner in before.segments and kept.revision == before.segments[winner].revision
        revision = kept.revision + 1 if known else kept.revision
        history = (*kept.history, *gone.history, output)
        nodes[winner] = replace(kept, history=history, revision=revision)
    moved = [
        replace(
            one, source=into.get(one.source, one.source), target=into.get(one.target, one.target)
        )
        for one in links.values()
    ]
    return OpenGraph(nodes, {one.key: one for one in moved if one.source != one.target})


def open_graph(store: Store) -> OpenGraph:
    """Return the graph as it is stored."""
    with store.begin() as session:
        return stored_graph(session, VIDEO)


@dataclass(frozen=True)
class Costs:
    """What a patch costs: Homer's way, the plain way in memory, and the plain way stored."""

    homer: Cost
    plain: Cost
    stored: Cost


def measure(segments: int, count: int) -> Costs:
    """Return what a patch costs in each way, which must agree."""
    graph = first_graph(segments)
    patches = [patch_number(at, segments) for at in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        server = EmbeddedPostgres(home)
        try:
            with open_store(home) as store:
                fill(store, graph)
                ours, found = homer(store, patches, segments), open_graph(store)
                few = patches[:REWRITTEN]
                after, theirs = plain(
                    graph, few, segments, lambda now: rewrite(store, now), cpu_of(store)
                )
                same(open_graph(store), after)
        finally:
            server.stop()
    expected, bare = plain(graph, patches, segments)
    same(found, expected)
    return Costs(ours, bare, theirs)


def lines() -> Iterator[Line]:
    """Yield the change alone beside the plain way, then both stored, by the size of the graph."""
    for segments in SIZES:
        costs = measure(segments, PATCHES)
        graph, patch = first_graph(segments), patch_number(0, segments)
        change = Taken(tuple(alone(graph, patch, segments) for _ in range(RUNS)))
        bar = float(BAR) if segments == max(SIZES) else None
        yield _sized("event patch, the change alone", change, costs.plain.cpu, segments, bar)
        stored = Taken((costs.homer.clock,))
        yield _sized("event patch, both stored", stored, costs.stored.clock, segments, None)


def _sized(what: str, ours: Taken, plain: float, size: int, bar: float | None) -> Line:
    ratio = plain / ours.median
    return Line(what, ours, Taken((plain,)), "merging every pair", ratio, bar, size=size)


def same(found: OpenGraph, expected: OpenGraph) -> None:
    """Passes where both graphs are one."""
    assert found.segments == expected.segments
    assert found.edges == expected.edges


def growth(sizes: Sequence[int], taken: Sequence[float]) -> float:
    """By which power of the size time grows, from the smallest to the largest."""
    return math.log(taken[-1] / taken[0]) / math.log(sizes[-1] / sizes[0])


def main() -> None:
    """Measure on databases of their own, thrown away afterwards."""
    parser = argparse.ArgumentParser(description="Applying one patch to the event graph.")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--patches", type=int, default=PATCHES)
    arguments = parser.parse_args()
    sizes = arguments.sizes
    rows = [output(size, measure(size, arguments.patches)) for size in sizes]
    if len(sizes) > 1:
        powers = [growth(sizes, [cost.cpu for cost in way]) for way in zip(*rows, strict=True)]
        print(f"CPU grows with the power {powers[0]:.2f} of the graph, plainly {powers[1]:.2f}")
    print(f"the bar at 3000 segments: {BAR}x")


def output(size: int, costs: Costs) -> tuple[Cost, Cost]:
    """Print what a patch costs at a size; returns Homer's cost and the plain way's."""
    ours, bare, theirs = costs.homer, costs.plain, costs.stored
    change = alone(first_graph(size), patch_number(0, size), size)
    print(
        f"{size:6d} segments: Homer {ours.clock:.1f} ms (CPU {ours.cpu:.1f}), plain "
        f"{bare.clock:.1f} ms (CPU {bare.cpu:.1f}), plain and stored {theirs.clock:.1f} ms "
        f"(CPU {theirs.cpu:.1f})\n"
        f"       change alone {change:.2f} ms: {bare.cpu / change:.0f}x of CPU; both stored: "
        f"{theirs.clock / ours.clock:.0f}x (CPU {theirs.cpu / ours.cpu:.0f}x); Homer stored: "
        f"{bare.clock / ours.clock:.1f}x (CPU {bare.cpu / ours.cpu:.1f}x)",
        flush=True,
    )
    return ours, bare


if __name__ == "__main__":
    main()
