"""Builds semantic triples as episodic ones come in: what lasts, and what takes whose place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.reasoners.port import Unreadable
from agent.step_writers import note_rules
from domain.built import BuiltMemory, ClosedRelation, EntityKey, RelationDraft
from domain.stated import Triple
from domain.time import TimeSpan
from strategies.worldmm.levels import MENTIONED, SEMANTIC
from strategies.worldmm.semantic import (
    EpisodicTriple,
    Recurrences,
    SemanticChange,
    SemanticTriple,
    consolidate_by_rules,
)
from strategies.worldmm.semantic_model import SemanticByModel
from strategies.worldmm.settings import WorldMemorySettings

_LOG = logging.getLogger(f"homer.{__name__}")

KeyOf = Callable[[str], EntityKey]


@dataclass(frozen=True)
class SemanticStep:
    """The semantic relations that begin and that are closed."""

    relations: Sequence[RelationDraft] = ()
    closed: Sequence[ClosedRelation] = ()


class SemanticBuild:
    """Counts the triples of the finest scale, those that were built before first.

    Args:
        built: what was built before.
        level: of the finest scale.
        key_of: returns the key of the entity of a name.
        model: says what lasts; None: what recurs does.
    """

    def __init__(
        self,
        settings: WorldMemorySettings,
        built: BuiltMemory,
        level: str,
        key_of: KeyOf,
        model: SemanticByModel | None = None,
    ) -> None:
        self._settings, self._level = settings, level
        self._key_of, self._model = key_of, model
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

    def step(self, relations: Sequence[RelationDraft], span: TimeSpan, clip: int) -> SemanticStep:
        """Return what the triples of a step change.

        Args:
            relations: of the captions of the step.
            clip: from which on the change is known.
        """
        seen = [
            self._seen(
                Triple(subject=r.subject.name, predicate=r.predicate, object=r.object.name),
                r.span,
                r.clip,
            )
            for r in relations
            if r.level == self._level and r.predicate != MENTIONED
        ]
        change = self._change(seen, span, clip)
        gone = {(one.triple, one.from_clip) for one in change.closed}
        self._valid = [one for one in self._valid if (one.triple, one.from_clip) not in gone]
        self._valid += change.added
        return SemanticStep(
            relations=[self._relation(one, clip) for one in change.added],
            closed=[self._closed(one, clip) for one in change.closed],
        )

    def _change(self, seen: Sequence[EpisodicTriple], span: TimeSpan, clip: int) -> SemanticChange:
        """Return what the model makes of triples; by rules without one, or without a reply."""
        again = self._recurring.add(seen)
        if self._model is not None:
            try:
                return self._model.change(seen, self._valid, span, clip)
            except Unreadable:
                note_rules(_LOG, "what lasts of %s is by rules: no reply could be read", span)
        lasting = list(self._recurring.lasting(again, self._settings.occasions))
        return consolidate_by_rules(lasting, self._valid, clip)

    def _seen(self, triple: Triple, span: TimeSpan, clip: int) -> EpisodicTriple:
        self._spans[str(clip)] = span
        return EpisodicTriple(triple=triple, ref=str(clip), span=span, clip=clip)

    def _triple(self, subject: int, predicate: str, target: int) -> Triple:
        keys = self._keys
        return Triple(subject=keys[subject].name, predicate=predicate, object=keys[target].name)

    def _relation(self, one: SemanticTriple, clip: int) -> RelationDraft:
        spans = [self._spans[ref] for ref in one.evidence if ref in self._spans]
        return RelationDraft(
            level=SEMANTIC,
            subject=self._key_of(one.triple.subject),
            predicate=one.triple.predicate,
            object=self._key_of(one.triple.object),
            span=spans[-1] if spans else TimeSpan.of(0, 0),
            clip=clip,
            evidence=tuple(int(ref) for ref in one.evidence),
        )

    def _closed(self, one: SemanticTriple, clip: int) -> ClosedRelation:
        return ClosedRelation(
            SEMANTIC,
            self._key_of(one.triple.subject),
            one.triple.predicate,
            self._key_of(one.triple.object),
            clip,
        )
