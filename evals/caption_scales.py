"""What a strategy built of captions, compared with captions at the same scales written elsewhere.

The strategy's builder reads the reference's captions as if they had been watched, so that entities
and relations of both are taken from text by the same rules or model. A caption is compared with
the one of its scale that overlaps it most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from pydantic import computed_field
from pydantic.dataclasses import dataclass

from agent.builder import BuildModels, MemoryBuilder
from agent.strategy import Strategy
from domain.built import BuiltMemory, Node, Relation, WatchedClip
from domain.errors import InputError
from domain.media import Video
from domain.memories import Memory, MemoryKind, MemorySource
from flows.build import builder_of
from memory.import_captions import REFERENCE
from models.sentences import SentenceParser
from store.database import Store
from store.queries.builds import read_built
from store.queries.videos import find_video

Names = frozenset[tuple[str, ...]]
"""Entities, as one name each, or triples of subject, predicate and object; without case."""


class Facts(NamedTuple):
    """What a caption states."""

    entities: Names
    triples: Names


NOTHING = Facts(frozenset(), frozenset())


@dataclass(frozen=True)
class Agreement:
    """How far what was built has what the reference has, over all captions; in percent."""

    precision: float
    recall: float

    @computed_field  # type: ignore[prop-decorator]
    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class ScaleAgreement:
    """A strategy's agreement at a scale, over so many captions of the reference."""

    strategy: str
    scale: str
    captions: int
    entities: Agreement
    triples: Agreement


def compare_scales(
    store: Store, name: str, strategy: Strategy, parser: SentenceParser
) -> list[ScaleAgreement]:
    """Compare what a strategy built of a video with the reference, finest scale first.

    Raises:
        NotFound: there is no such video.
        InputError: no reference was imported, or the strategy built nothing, or not at its scales.
    """
    builder = builder_of(strategy)
    with store.begin(snapshot=True) as session:
        video = find_video(session, name)
        reference = read_built(session, video.id, REFERENCE)
        built = read_built(session, video.id, strategy.memory)
    if not reference.nodes:
        raise InputError(
            f"no reference of {video.title} is here: homer import VIDEO --captions FILE --scale"
        )
    levels = {node.level for node in reference.nodes}
    nodes = {
        level: _of_level(built.nodes, level)
        for level in sorted(levels, key=lambda level: int(level.split()[0]))
    }
    shared = [level for level in nodes if nodes[level]]
    if not shared:
        raise InputError(
            f"{strategy.memory} built nothing of {video.title} at the scales of the reference: "
            f"homer build VIDEO --memory {strategy.memory}"
        )
    return [
        _agreement(
            strategy.name,
            level,
            _read_by(builder, video, built, _of_level(reference.nodes, level), parser),
            nodes[level],
            built.relations,
        )
        for level in shared
    ]


def _of_level(nodes: Iterable[Node], level: str) -> list[Node]:
    return [node for node in nodes if node.level == level and node.to_clip is None]


def _facts(relations: Iterable[Relation], node: Node) -> Facts:
    """Sort the relations that a node states; one with the same ends only mentions an entity."""
    entities: set[tuple[str, ...]] = set()
    triples: set[tuple[str, ...]] = set()
    for one in relations:
        if one.node != (node.level, node.number):
            continue
        parts = (one.subject.name, one.predicate, one.object.name)
        subject, predicate, target = (part.casefold() for part in parts)
        entities |= {(subject,), (target,)}
        if subject != target:
            triples.add((subject, predicate, target))
    return Facts(frozenset(entities), frozenset(triples))


def _read_by(
    builder: MemoryBuilder,
    video: Video,
    built: BuiltMemory,
    captions: Sequence[Node],
    parser: SentenceParser,
) -> list[tuple[Node, Facts]]:
    """Return captions with what the builder reads in them, knowing the entities it built."""
    known = replace(built, nodes=(), relations=(), through_clip=-1)
    # Vectors that say nothing: what captions state does not rest on them.
    models = BuildModels(lambda texts: np.zeros((len(texts), 1), dtype=np.float32), parser)
    run = builder.begin(video, known, (), models)
    watched = [  # As if each were the line of a clip.
        WatchedClip(
            number,
            caption.span,
            (
                Memory(
                    id=number + 1,
                    video=video.id,
                    clip=number,
                    kind=MemoryKind.EPISODIC,
                    text=caption.text,
                    span=caption.span,
                    source=MemorySource.CAPTION,
                ),
            ),
        )
        for number, caption in enumerate(captions)
    ]
    change = run.step(watched, ended=True)
    stated = list[tuple[Node, Facts]]()
    for caption in captions:
        at_ms, facts = caption.span.start_ms, NOTHING
        if here := [one for one in change.nodes if one.span.start_ms <= at_ms < one.span.end_ms]:
            finest = min(here, key=lambda node: node.span.length_ms)
            facts = _facts(change.relations, finest)
        stated.append((caption, facts))
    return stated


def _agreement(
    strategy: str,
    level: str,
    reference: Sequence[tuple[Node, Facts]],
    nodes: Sequence[Node],
    relations: Sequence[Relation],
) -> ScaleAgreement:
    pairs = [
        (_facts(relations, node), wanted)
        for caption, wanted in reference
        if (node := _nearest(caption, nodes)) is not None
    ]
    return ScaleAgreement(
        strategy=strategy,
        scale=level,
        captions=len(pairs),
        entities=_share([(ours.entities, wanted.entities) for ours, wanted in pairs]),
        triples=_share([(ours.triples, wanted.triples) for ours, wanted in pairs]),
    )


def _nearest(caption: Node, nodes: Iterable[Node]) -> Node | None:
    """Return the node that overlaps a caption most; None where none does."""
    best = max(nodes, key=lambda node: caption.span.overlap_ms(node.span), default=None)
    return best if best is not None and caption.span.overlap_ms(best.span) else None


def _share(pairs: Sequence[tuple[Names, Names]]) -> Agreement:
    both = sum(len(ours & wanted) for ours, wanted in pairs)
    ours, wanted = (sum(len(pair[n]) for pair in pairs) for n in (0, 1))
    return Agreement(precision=100 * both / max(1, ours), recall=100 * both / max(1, wanted))
