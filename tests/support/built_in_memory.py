"""What a builder builds, without a database: changes applied one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agent.builder import Build, BuildModels, MemoryBuilder
from domain import built
from domain.media import Video

Row = tuple[object, ...]


@dataclass
class MemoryRows:
    """The rows of one build, as the store would have them."""

    nodes: list[built.Node] = field(default_factory=list)
    entities: dict[built.EntityKey, built.Entity] = field(default_factory=dict)
    relations: list[built.Relation] = field(default_factory=list)
    through: int = -1

    def apply(self, change: built.Change, through: int) -> None:
        self.through = through
        ids = {(node.level, node.number): node.id for node in self.nodes}
        for gone in change.closed_nodes:
            self._close_node(ids[gone.level, gone.number], gone.clip)
        first: dict[int, int] = {}
        for draft in change.nodes:
            node = ids.setdefault((draft.level, draft.number), len(ids) + 1)
            first.setdefault(node, draft.from_clip)
        for node, clip in first.items():
            self._close_node(node, clip)
        for draft in change.nodes:
            vector = None if draft.vector is None else draft.vector.astype(np.float16)
            kept = None if vector is None else vector.astype(np.float32)
            number = ids[draft.level, draft.number]
            self.nodes.append(replace(draft, vector=kept, id=number))
        for entity in change.entities:
            self.entities.setdefault(entity.key, replace(entity, vector=None))
        for ended in change.closed:
            for at, one in enumerate(self.relations):
                if one.key == ended.key and one.to_clip is None:
                    self.relations[at] = replace(one, to_clip=ended.to_clip)
        for stated in change.relations:
            assert {stated.subject, stated.object} <= self.entities.keys()
            assert stated.node is None or stated.node in ids
            self.relations.append(replace(stated, vector=None))

    def _close_node(self, node: int, clip: int) -> None:
        for at, one in enumerate(self.nodes):
            if one.id == node and one.to_clip is None:
                self.nodes[at] = replace(one, to_clip=clip)

    def memory(self) -> built.BuiltMemory:
        return built.BuiltMemory(
            self.through,
            1,
            "words",
            tuple(self.nodes),
            tuple(self.entities.values()),
            tuple(self.relations),
        )

    def seen(self, clip: int) -> list[Row]:
        """Return what a question as of a clip sees, without row ids."""
        rows: list[Row] = [
            ("node", n.level, n.number, n.label, n.text, n.span, n.from_clip, n.children)
            for n in self.nodes
            if n.from_clip <= clip and (n.to_clip is None or n.to_clip > clip)
        ]
        rows += [
            ("entity", *one.key, one.from_clip, sorted(one.attributes.items()))
            for one in self.entities.values()
            if one.from_clip <= clip
        ]
        rows += [
            (
                "relation",
                r.level,
                *r.subject,
                r.predicate,
                *r.object,
                r.node,
                r.span,
                r.evidence,
                r.from_clip,
            )
            for r in self.relations
            if r.from_clip <= clip and (r.to_clip is None or r.to_clip > clip)
        ]
        return sorted(rows, key=repr)


def built_of(
    builder: MemoryBuilder,
    video: Video,
    clips: Sequence[built.WatchedClip],
    models: BuildModels,
    *,
    step: int = 1,
    ended: bool = True,
    resumed: bool = False,
) -> MemoryRows:
    """Build a video in steps of so many clips; ``resumed``: begun anew before every step."""
    rows = MemoryRows()
    build: Build | None = None
    for first in range(0, len(clips), step):
        part = clips[first : first + step]
        if build is None or resumed:
            build = builder.begin(video, rows.memory(), _earlier(builder, clips[:first]), models)
        rows.apply(build.step(part, ended=ended and part[-1] is clips[-1]), part[-1].clip)
    return rows


def _earlier(builder: MemoryBuilder, clips: Sequence[built.WatchedClip]) -> list[built.WatchedClip]:
    """Return the clips that the build flow would give a builder that resumes."""
    if not clips:
        return []
    back = -(-builder.look_back_ms // max(1, clips[0].span.length_ms))
    return list(clips[-back:])
