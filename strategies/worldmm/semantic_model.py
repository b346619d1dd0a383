"""What lasts of some minutes by a language model, consolidated with what is known already."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from agent.builder import Embed
from agent.reasoners.port import Unreadable
from agent.step_writers import note_rules
from domain.stated import Triple
from domain.time import TimeSpan
from strategies.worldmm.consolidation import Consolidation, candidates_for, consolidate
from strategies.worldmm.graph import Vectors
from strategies.worldmm.model_writer import ModelWriter
from strategies.worldmm.semantic import (
    EpisodicTriple,
    SemanticChange,
    SemanticTriple,
    contradicts,
    says_same,
)
from strategies.worldmm.settings import WorldMemorySettings

_LOG = logging.getLogger(f"homer.{__name__}")


@dataclass
class _Changing:
    """What is valid while new triples are consolidated one after another."""

    valid: list[SemanticTriple]
    closed: list[SemanticTriple] = field(default_factory=list)
    added: list[SemanticTriple] = field(default_factory=list)

    def apply(self, change: SemanticChange, clip: int) -> None:
        """Close and add; what began in this step and is replaced in it never was."""
        (new,) = change.added
        gone = {one.triple for one in change.closed} | {new.triple}
        begun = {one.triple for one in self.added}
        self.closed += [
            one.model_copy(update={"to_clip": clip})
            for one in self.valid
            if one.triple in gone - begun
        ]
        self.added = [*(one for one in self.added if one.triple not in gone), new]
        self.valid = [*(one for one in self.valid if one.triple not in gone), new]


class SemanticByModel:
    """Draws what lasts from triples, and lets the model say what it replaces."""

    def __init__(self, settings: WorldMemorySettings, writer: ModelWriter, embed: Embed) -> None:
        self._settings, self._writer, self._embed = settings, writer, embed
        self._vectors: dict[str, Vectors] = {}

    def change(
        self,
        seen: Sequence[EpisodicTriple],
        valid: Sequence[SemanticTriple],
        span: TimeSpan,
        clip: int,
    ) -> SemanticChange:
        """Return what some minutes change.

        Args:
            seen: their triples, in order of time.
            valid: the triples that last and are not closed.
            clip: from which on the change is known.

        Raises:
            Unreadable: no reply says what lasts.
        """
        rests: dict[Triple, dict[str, None]] = {}
        for one in seen:
            rests.setdefault(one.triple, {})[one.ref] = None
        if not rests:
            return SemanticChange()
        shown = list(rests)
        changing = _Changing(list(valid))
        lasting = self._writer.lasting(span, shown)
        if lasting:
            self._read([one.text for one in valid] + [triple.text for triple, _ in lasting])
        for triple, numbers in lasting:
            refs = dict.fromkeys(ref for number in numbers for ref in rests[shown[number]])
            new = SemanticTriple(
                triple=triple, occasions=len(refs), days=(), evidence=tuple(refs), from_clip=clip
            )
            near = self._near(new, changing.valid)
            changing.apply(consolidate(new, near, self._decide, clip), clip)
        return SemanticChange(closed=tuple(changing.closed), added=tuple(changing.added))

    def _near(
        self, new: SemanticTriple, valid: Sequence[SemanticTriple]
    ) -> tuple[SemanticTriple, ...]:
        """Return the triples that a new one may replace, most alike first."""
        if not valid:
            return ()
        texts = [one.text for one in valid]
        self._read([new.text, *texts])
        existing = np.stack([self._vectors[text] for text in texts])
        least, most = self._settings.consolidation_cosine, self._settings.consolidation_candidates
        numbers = candidates_for(self._vectors[new.text], existing, least, most)
        return tuple(valid[number] for number in numbers)

    def _read(self, texts: Iterable[str]) -> None:
        """Embed those of the texts that have no vector yet, all at once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors |= zip(new, self._embed(new), strict=True)

    def _decide(self, new: Triple, existing: Sequence[Triple]) -> Consolidation:
        """Ask the model, else decide by rules; what reads the same is replaced in any case."""
        try:
            decision = self._writer.consolidation(new, existing)
        except Unreadable:
            note_rules(_LOG, "a triple was consolidated by rules: no reply could be read")
            decision = _by_rules(new, existing)
        same = [number for number, old in enumerate(existing) if old == decision.triple]
        replaced = tuple(dict.fromkeys((*decision.replaced, *same)))
        return decision.model_copy(update={"replaced": replaced})


def _by_rules(new: Triple, existing: Sequence[Triple]) -> Consolidation:
    replaced = [
        number
        for number, old in enumerate(existing)
        if says_same(new, old) or contradicts(new, old)
    ]
    return Consolidation(replaced=tuple(replaced), triple=new)
