"""Every ten clips, a patch to the event graph: proposed, checked, repaired, applied.

A patch is one transaction, which begins once the patch is written: what the writer was shown is
read anew in it, and where it is no longer so, the patch is written anew. What was applied, dropped
and left uncovered is kept with it, so the graph can be built anew from its patches.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy.orm import Session

from domain import faults
from domain.errors import ModelError
from domain.memories import EventPatch
from domain.settings import MemorySettings, Settings
from memory.event_graph import Absorbed, GraphChange, Node, OpenEdge, OpenGraph, applied, weave
from memory.patch_window import Due, due_window, window_of
from memory.patches import Dropped, Ground, check, drop, uncovered
from memory.ports import MemoryModels
from memory.writer_calls import Recording
from memory.writers.port import EventWindow, EventWriter, KnownSegment, WindowLine, Writers
from people.model_transactions import Lacking, TransactionEmbedder, transact
from store.database import Store
from store.queries import events as stored
from store.queries.events import EdgeAt, PatchAt, SegmentAt
from store.queries.percepts import lock_video


def weave_due(
    store: Store,
    video_id: str,
    writers: Writers,
    toolbox: MemoryModels,
    settings: Settings,
    final: bool = False,
) -> int:
    """Apply every patch that is due: after each ten settled clips, and a last one at the end.

    Windows that have their patch are left alone, so calling again does nothing.

    Args:
        store: The store.
        video_id: The video.
        writers: Who proposes patches.
        toolbox: For the segments' vectors.
        settings: The window's length and the limits of a patch.
        final: Whether no clip will come any more; the rest is then a window of its own.

    Returns:
        How many patches were applied.

    Raises:
        ModelError: no patch could be written; calling again tries again.
    """
    count = 0
    while _weave_next(store, video_id, writers.event, toolbox, settings.memory, final):
        count += 1
    return count


def _weave_next(
    store: Store,
    video_id: str,
    writer: EventWriter,
    toolbox: MemoryModels,
    settings: MemorySettings,
    final: bool,
) -> bool:
    job = _GraphUpdate(store, video_id, writer, toolbox, settings, final)
    applied_one = transact(store, job.run)
    if applied_one:
        faults.fault_point(faults.FaultPoint.PATCH_COMMITTED)
    return applied_one


@dataclass(frozen=True)
class Proposal:
    """A patch that may be applied, what was dropped from it, and what it leaves uncovered."""

    patch: EventPatch
    dropped: tuple[Dropped, ...]
    pending: tuple[int, ...]
    repairs: int


class _GraphUpdate:
    """The next patch of a video: written outside of transactions, stored within one."""

    def __init__(
        self,
        store: Store,
        video_id: str,
        writer: EventWriter,
        toolbox: MemoryModels,
        settings: MemorySettings,
        final: bool,
    ) -> None:
        self._store, self._video, self._final = store, video_id, final
        self._writer, self._settings = writer, settings
        self._vectors = TransactionEmbedder(toolbox.text)
        self._asked: object = None
        self._written: tuple[EventPatch, int] = (EventPatch(), 0)

    def run(self, session: Session) -> bool:
        """Apply the next patch; False where none is due.

        Raises:
            Lacking: It is yet to be written, or its window is another than it was written for.
        """
        lock_video(session, self._video)
        due = due_window(session, self._video, self._settings.patch_every, self._final)
        if due is None:
            return False
        window = window_of(session, self._video, due)
        proposal = self._proposed(session, due, window)
        apply_patch(session, window, proposal, self._vectors)
        _record(session, due, window, proposal)
        faults.fault_point(faults.FaultPoint.PATCH_ROWS)
        return True

    def _proposed(self, session: Session, due: Due, window: EventWindow) -> Proposal:
        """What was written, without what the memory as it is now does not bear out."""
        if not window.new:
            return Proposal(EventPatch(), (), (), 0)
        if self._asked != (due, _shown(window)):
            raise Lacking(lambda: self._write(due, window))
        patch, repairs = self._written
        ground = ground_of(session, window, patch)
        patch, dropped = drop(patch, ground, self._settings)
        return Proposal(patch, tuple(dropped), uncovered(patch, ground), repairs)

    def _write(self, due: Due, window: EventWindow) -> None:
        calls = Recording(self._store, self._video, due.at_clip, window=True)
        asked = replace(window, sink=calls.keep, replay=calls.served)
        self._written = _written(self._store, asked, self._writer, self._settings)
        self._asked = (due, _shown(window))


def _shown(window: EventWindow) -> object:
    """What the writer of a patch is shown; equal where it would be shown the same."""
    lines = [[_told(line) for line in of] for of in (window.lines, window.before)]
    segments = [[_known(one) for one in of] for of in (window.previous, window.related)]
    return window.new, window.clips, lines, segments, window.edges


def _told(line: WindowLine) -> object:
    return line.clip, line.span, line.text, line.source, line.speaker, line.tags


def _known(one: KnownSegment) -> object:
    return one.number, one.label, one.summary, one.clips, one.span


def _written(
    store: Store, window: EventWindow, writer: EventWriter, settings: MemorySettings
) -> tuple[EventPatch, int]:
    """A patch, and how often it was repaired; what is wrong with it is looked up in between."""
    patch, repairs = writer.patch(window), 0
    while repairs < settings.patch_repairs:
        with store.begin() as session:
            complaints = check(patch, ground_of(session, window, patch), settings)
        if not complaints:
            break
        repairs += 1
        try:
            patch = writer.repair(window, patch, [str(one) for one in complaints])
        except ModelError:
            break  # What there is is checked and used; the rest stays pending.
    return patch, repairs


def _mentioned(patch: EventPatch) -> tuple[set[str], set[int]]:
    """Labels and clips that a patch speaks of."""
    labels = {draft.label for draft in patch.segments}
    labels |= {draft.extends for draft in patch.segments if draft.extends}
    labels |= {end for edge in patch.edges for end in (edge.source, edge.target)}
    clips = {clip for draft in patch.segments for clip in draft.clips}
    return labels, clips | {clip for edge in patch.edges for clip in edge.evidence}


def ground_of(session: Session, window: EventWindow, patch: EventPatch) -> Ground:
    """What ``patch`` is checked against, read for the labels and clips it mentions."""
    labels, clips = _mentioned(patch)
    found = stored.open_segments_near(session, window.video, labels=labels)
    names = {one.id: one.label for one in found}
    edges = stored.open_edges_of(session, names)
    inner = [one for one in edges if one.source_id in names and one.target_id in names]
    return Ground(
        at_clip=window.at_clip,
        new=window.new,
        watched=stored.done_spans(session, window.video, {*clips, *window.new}, window.at_clip),
        open={one.label: one.clips for one in found},
        edges=frozenset((names[e.source_id], names[e.target_id], e.relation) for e in inner),
    )


def apply_patch(
    session: Session, window: EventWindow, proposal: Proposal, vectors: TransactionEmbedder
) -> None:
    """Store what a checked patch changes; costs as much as what it touches.

    Raises:
        Lacking: Vectors of its texts are yet to be made.
    """
    labels, clips = _mentioned(proposal.patch)
    near = stored.open_segments_near(session, window.video, labels=labels, clips=clips)
    edges = stored.open_edges_of(session, [one.id for one in near])
    ends = {end for one in edges for end in (one.source_id, one.target_id)}
    around = stored.open_segments_near(session, window.video, ids=ends - {n.id for n in near})
    place = _Place(session, window.video, window.at_clip, [*near, *around], edges)
    number = stored.next_segment_number(session, window.video)
    place.store(weave(place.graph, proposal.patch, window.at_clip, number), vectors)


class _Place:
    """The part of the stored graph that a patch touches."""

    def __init__(
        self,
        session: Session,
        video_id: str,
        at_clip: int,
        segments: Sequence[SegmentAt],
        edges: Sequence[EdgeAt],
    ) -> None:
        self.session, self.video_id, self.at_clip = session, video_id, at_clip
        self.ids = {one.number: one.id for one in segments}
        numbers = {one.id: one.number for one in segments}
        links = {one.id: link_of(one, numbers) for one in edges}
        self.edge_ids = {link.ends: edge_id for edge_id, link in links.items()}
        nodes = {one.number: node_of(one) for one in segments}
        self.graph = OpenGraph(nodes, {link.ends: link for link in links.values()})

    def store(self, change: GraphChange, vectors: TransactionEmbedder) -> None:
        """Close what no longer holds, then open what holds now."""
        new = [number for number in change.nodes if number not in self.ids]
        changed = [self.ids[number] for number in change.nodes if number in self.ids]
        self.ids |= stored.add_segments(self.session, self.video_id, new)
        absorbed = {
            self.ids[loser]: self.ids[winner]
            for loser, winner in change.absorbed.items()
            if loser in self.graph.nodes
        }
        stored.close_revisions(self.session, changed, self.at_clip, absorbed)
        self._open(list(change.nodes.values()), vectors)
        closed = [self.edge_ids[ends] for ends in sorted(change.closed)]
        stored.close_edges(self.session, closed, self.at_clip)
        opened = [self._edge_row(link) for link in change.opened.values()]
        stored.add_edges(self.session, self.video_id, self.at_clip, opened)

    def _open(self, nodes: Sequence[Node], embedder: TransactionEmbedder) -> None:
        texts = [f"{node.label}. {node.summary}" for node in nodes]
        vectors = list(embedder.embed(texts)) if texts else []
        rows = [
            {
                "segment_id": self.ids[node.number],
                "revision": node.revision,
                "label": node.label,
                "summary": node.summary,
                "clips": list(node.clips),
                "history": [asdict(one) for one in node.history],
                "from_clip": self.at_clip,
                "embedding": vector.tolist(),
            }
            for node, vector in zip(nodes, vectors, strict=True)
        ]
        stored.add_revisions(self.session, rows)

    def _edge_row(self, link: OpenEdge) -> dict[str, object]:
        row = asdict(link)
        source, target = self.ids[row.pop("source")], self.ids[row.pop("target")]
        return row | {"source_id": source, "target_id": target, "evidence": list(link.evidence)}


def node_of(found: SegmentAt) -> Node:
    """A stored revision as a node of the graph."""
    history = tuple(Absorbed(**one) for one in found.history)
    return Node(found.number, found.revision, found.label, found.summary, found.clips, history)


def link_of(found: EdgeAt, numbers: Mapping[int, int]) -> OpenEdge:
    """A stored edge as a link of the graph."""
    return OpenEdge(
        source=numbers[found.source_id],
        target=numbers[found.target_id],
        relation=found.relation,
        explicit=found.explicit,
        confidence=found.confidence,
        rationale=found.rationale,
        evidence=found.evidence,
    )


def _record(session: Session, due: Due, window: EventWindow, proposal: Proposal) -> None:
    step = proposal.patch.model_dump(mode="json")
    steps = [*(due.before.applied["steps"] if due.before else []), step]
    dropped = [*(due.before.dropped if due.before else [])]
    patch = PatchAt(
        id=0,
        at_clip=due.at_clip,
        first_clip=due.first_clip,
        repairs=proposal.repairs,
        applied={"steps": steps, "unsettled": list(due.unsettled)},
        dropped=dropped + [_dropped(one) for one in proposal.dropped],
        pending=tuple(sorted({*due.unsettled, *proposal.pending})),
    )
    stored.save_patch(session, window.video, patch)


def _dropped(one: Dropped) -> dict[str, object]:
    # As JSON knows it: a model may have said NaN, which Postgres does not take.
    draft = json.loads(one.draft.model_dump_json())
    return {"item": one.item, "draft": draft, "reasons": list(one.reasons)}


def replay(patches: Sequence[PatchAt]) -> OpenGraph:
    """The open graph built anew from what its patches applied, in order."""
    graph, number = OpenGraph(), 0
    for patch in patches:
        for step in patch.applied["steps"]:
            change = weave(graph, EventPatch.model_validate(step), patch.at_clip, number)
            graph = applied(graph, change)
            number = max([number - 1, *change.nodes]) + 1
    return graph
