"""Builds semantic triples as episodic ones come in: what lasts, and what takes whose place."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from agent.builder import Embed, note_rules
from agent.reasoners.port import Unreadable
from domain.built import BuiltMemory, EntityKey, Relation
from domain.sentences import Triple
from domain.time import TimeSpan
from strategies.worldmm import semantic
from strategies.worldmm.captions import MENTIONED, SEMANTIC
from strategies.worldmm.graph import Vectors
from strategies.worldmm.model_writer import ModelWriter
from strategies.worldmm.settings import WorldMemorySettings

# What lasts of some minutes by a language model, consolidated with what is known already.

_LOG = logging.getLogger(f"homer.{__name__}")


class SemanticByModel:
    """Draws what lasts from triples, and lets the model say what it replaces."""

    def __init__(self, settings: WorldMemorySettings, writer: ModelWriter, embed: Embed) -> None:
        self._settings, self._writer, self._embed = settings, writer, embed
        self._vectors: dict[str, Vectors] = {}

    def change(
        self,
        seen: Sequence[semantic.EpisodicTriple],
        valid: Sequence[semantic.SemanticTriple],
        span: TimeSpan,
        clip: int,
    ) -> semantic.SemanticChange:
        """Return what some minutes change.

        Args:
            seen: their triples, in order of time.
            valid: the triples that last and are not closed.
            clip: from which on the change is known.

        Raises:
            Unreadable: no reply says what lasts.
        """
        rests: dict[Triple, dict[int, None]] = {}
        for one in seen:
            rests.setdefault(one.triple, {})[one.clip] = None
        if not rests:
            return semantic.SemanticChange()
        shown = list(rests)
        now, closed, added = (
            list(valid),
            list[semantic.SemanticTriple](),
            list[semantic.SemanticTriple](),
        )
        lasting = self._writer.lasting(span, shown)
        if lasting:
            self._read([one.text for one in valid] + [triple.text for triple, _ in lasting])
        for triple, numbers in lasting:
            clips = dict.fromkeys(one for number in numbers for one in rests[shown[number]])
            new = semantic.SemanticTriple(triple=triple, evidence=tuple(clips), from_clip=clip)
            change = semantic.consolidate(new, self._near(new, now), self._decide, clip)
            (new,) = change.added
            # What began in this step and is replaced in it never was.
            gone = {one.triple for one in change.closed} | {new.triple}
            ended = gone - {one.triple for one in added}
            closed += [
                one.model_copy(update={"to_clip": clip}) for one in now if one.triple in ended
            ]
            added = [*(one for one in added if one.triple not in gone), new]
            now = [*(one for one in now if one.triple not in gone), new]
        return semantic.SemanticChange(closed=tuple(closed), added=tuple(added))

    def _near(
        self, new: semantic.SemanticTriple, valid: Sequence[semantic.SemanticTriple]
    ) -> tuple[semantic.SemanticTriple, ...]:
        """Return the triples that a new one may replace, most alike first."""
        if not valid:
            return ()
        texts = [one.text for one in valid]
        self._read([new.text, *texts])
        existing = np.stack([self._vectors[text] for text in texts])
        least, most = self._settings.consolidation_cosine, self._settings.consolidation_candidates
        numbers = semantic.candidates_for(self._vectors[new.text], existing, least, most)
        return tuple(valid[number] for number in numbers)

    def _read(self, texts: Iterable[str]) -> None:
        """Embed those of the texts that have no vector yet, all at once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, self._embed(new), strict=True)

    def _decide(self, new: Triple, existing: Sequence[Triple]) -> semantic.Consolidation:
        """Ask the model, else decide by rules; what reads the same is replaced in any case."""
        try:
            decision = self._writer.consolidation(new, existing)
        except Unreadable:
            note_rules(_LOG, "a triple was consolidated by rules: no reply could be read")
            numbers = [
                number
                for number, old in enumerate(existing)
                if semantic.says_same(new, old) or semantic.contradicts(new, old)
            ]
            decision = semantic.Consolidation(replaced=tuple(numbers), triple=new)
        same = [number for number, old in enumerate(existing) if old == decision.triple]
        replaced = tuple(dict.fromkeys((*decision.replaced, *same)))
        return decision.model_copy(update={"replaced": replaced})


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
        key_of: Callable[[str], EntityKey],
        model: SemanticByModel | None = None,
    ) -> None:
        self._settings, self._level = settings, level
        self._key_of, self._model = key_of, model
        self._recurring = semantic.Recurrences(settings.semantic_window_ms)
        self._spans: dict[int, TimeSpan] = {}
        self._recurring.add(self._seen(built.relations))
        self._valid = [
            semantic.SemanticTriple(triple=_triple(r), evidence=r.evidence, from_clip=r.from_clip)
            for r in built.relations
            if r.level == SEMANTIC and r.to_clip is None
        ]

    def step(
        self, relations: Sequence[Relation], span: TimeSpan, clip: int
    ) -> tuple[list[Relation], list[Relation]]:
        """Return the semantic relations that the triples of a step begin and close.

        Args:
            relations: of the captions of the step.
            clip: from which on the change is known.
        """
        change = self._change(self._seen(relations), span, clip)
        gone = {(one.triple, one.from_clip) for one in change.closed}
        self._valid = [one for one in self._valid if (one.triple, one.from_clip) not in gone]
        self._valid += change.added
        added, closed = (
            [self._relation(one) for one in changed] for changed in (change.added, change.closed)
        )
        return added, closed

    def _change(
        self, seen: Sequence[semantic.EpisodicTriple], span: TimeSpan, clip: int
    ) -> semantic.SemanticChange:
        """Return what the model makes of triples; by rules without one, or without a reply."""
        again = self._recurring.add(seen)
        if self._model is not None:
            try:
                return self._model.change(seen, self._valid, span, clip)
            except Unreadable:
                note_rules(_LOG, "what lasts of %s is by rules: no reply could be read", span)
        lasting = list(self._recurring.lasting(again, self._settings.occasions))
        return semantic.consolidate_by_rules(lasting, self._valid, clip)

    def _seen(self, relations: Iterable[Relation]) -> list[semantic.EpisodicTriple]:
        """Return the triples that captions of the finest scale state, and note when they did."""
        stated = [r for r in relations if r.level == self._level and r.predicate != MENTIONED]
        self._spans |= {one.from_clip: one.span for one in stated}
        return [
            semantic.EpisodicTriple(triple=_triple(one), span=one.span, clip=one.from_clip)
            for one in stated
        ]

    def _relation(self, one: semantic.SemanticTriple) -> Relation:
        spans = [self._spans[clip] for clip in one.evidence if clip in self._spans]
        return Relation(
            level=SEMANTIC,
            subject=self._key_of(one.triple.subject),
            predicate=one.triple.predicate,
            object=self._key_of(one.triple.object),
            span=spans[-1] if spans else TimeSpan.of(0, 0),
            from_clip=one.from_clip,
            evidence=one.evidence,
            to_clip=one.to_clip,
        )


def _triple(one: Relation) -> Triple:
    return Triple(subject=one.subject.name, predicate=one.predicate, object=one.object.name)
