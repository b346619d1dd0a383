"""Builds semantic triples as episodic ones come in: what recurs, and what takes whose place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.built import BuiltMemory, ClosedRelation, EntityKey, RelationDraft
from domain.time import TimeSpan
from strategies.worldmm.clauses import Triple
from strategies.worldmm.levels import MENTIONED, SEMANTIC
from strategies.worldmm.semantic import (
    EpisodicTriple,
    Recurrences,
    SemanticTriple,
    consolidate_by_rules,
)
from strategies.worldmm.settings import WorldMemorySettings


@dataclass(frozen=True)
class SemanticStep:
    """The semantic relations that begin and that are closed."""

    relations: Sequence[RelationDraft] = ()
    closed: Sequence[ClosedRelation] = ()


class SemanticBuild:
    """Counts the triples of the finest scale, those that were built before first.

    Args:
        settings: the numbers.
        built: what was built before.
        level: of the finest scale.
    """

    def __init__(self, settings: WorldMemorySettings, built: BuiltMemory, level: str) -> None:
        self._settings, self._level = settings, level
        self._recurring = Recurrences(settings.semantic_window_ms)
        self._spans: dict[str, TimeSpan] = {}
        self._keys = {entity.id: entity.key for entity in built.entities}
        self._recurring.add(
            self._seen(self._triple(r.subject, r.predicate, r.object), r.span, r.from_clip)
            for r in built.relations
            if r.level == level and r.predicate != MENTIONED
        )
        self._valid = [
            SemanticTriple(
                triple=self._triple(r.subject, r.predicate, r.object),
                occasions=max(1, len(r.evidence)),
                days=(),
                evidence=tuple(map(str, r.evidence)),
                from_clip=r.from_clip,
            )
            for r in built.relations
            if r.level == SEMANTIC and r.to_clip is None
        ]
        self._names = {key.name: key for key in self._keys.values()}

    def step(self, relations: Sequence[RelationDraft], clip: int) -> SemanticStep:
        """Count the triples of a step; ``clip`` is from when on what they change is known."""
        stated = [r for r in relations if r.level == self._level and r.predicate != MENTIONED]
        self._names |= {key.name: key for r in stated for key in (r.subject, r.object)}
        again = self._recurring.add(
            self._seen(
                Triple(subject=r.subject.name, predicate=r.predicate, object=r.object.name),
                r.span,
                r.clip,
            )
            for r in stated
        )
        lasting = list(self._recurring.lasting(again, self._settings.occasions))
        change = consolidate_by_rules(lasting, self._valid, clip)
        gone = {(one.triple, one.from_clip) for one in change.closed}
        self._valid = [one for one in self._valid if (one.triple, one.from_clip) not in gone]
        self._valid += change.added
        return SemanticStep(
            relations=[self._relation(one, clip) for one in change.added],
            closed=[self._closed(one, clip) for one in change.closed],
        )

    def _seen(self, triple: Triple, span: TimeSpan, clip: int) -> EpisodicTriple:
        self._spans[str(clip)] = span
        return EpisodicTriple(triple=triple, ref=str(clip), span=span, clip=clip)

    def _triple(self, subject: int, predicate: str, target: int) -> Triple:
        keys = self._keys
        return Triple(subject=keys[subject].name, predicate=predicate, object=keys[target].name)

    def _key(self, name: str) -> EntityKey:
        return self._names[name]

    def _relation(self, one: SemanticTriple, clip: int) -> RelationDraft:
        spans = [self._spans[ref] for ref in one.evidence if ref in self._spans]
        return RelationDraft(
            level=SEMANTIC,
            subject=self._key(one.triple.subject),
            predicate=one.triple.predicate,
            object=self._key(one.triple.object),
            span=spans[-1] if spans else TimeSpan.of(0, 0),
            clip=clip,
            evidence=tuple(int(ref) for ref in one.evidence),
        )

    def _closed(self, one: SemanticTriple, clip: int) -> ClosedRelation:
        return ClosedRelation(
            SEMANTIC,
            self._key(one.triple.subject),
            one.triple.predicate,
            self._key(one.triple.object),
            clip,
        )
