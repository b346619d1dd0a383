"""Writes captions, triples and what lasts with a language model.

A reply that cannot be used is asked for once more with the complaints; what is still unsound then,
or beyond the limits of ``strategies.worldmm.replies``, is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeVar

from agent.builder import AskModel
from domain.people import tags_in
from domain.sentences import StatedFacts, Triple
from domain.time import TimeSpan
from models.messages import prompts_beside
from strategies.policy_parts import ask_sound
from strategies.worldmm import replies
from strategies.worldmm.semantic import Consolidation, complaints_about
from strategies.worldmm.settings import WorldMemorySettings

prompt = prompts_beside(__file__)

_LOG = logging.getLogger(f"homer.{__name__}")

Written = TypeVar("Written", replies.WrittenFacts, replies.WrittenSemantics)


class ModelWriter:
    """Writes WorldMM's memory. Each method raises ``Unreadable`` where no reply can be read."""

    def __init__(self, model: AskModel, settings: WorldMemorySettings) -> None:
        self._model, self._settings = model, settings

    def caption(self, span: TimeSpan, lines: Sequence[str]) -> str:
        """Return the caption of a stretch from its lines or finer captions, in order."""
        rules = prompt("caption_system", sentences=self._settings.summary_sentences)
        return ask_sound(
            self._model.ask,
            "caption",
            rules,
            replies.caption_page(span, lines),
            replies.WrittenCaption,
            lambda written: written.complaints(lines),
            strict=True,
        ).text

    def facts(self, caption: str, people: Sequence[str]) -> StatedFacts:
        reply = ask_sound(
            self._model.ask,
            "triples",
            prompt("triples_system"),
            replies.triples_page(caption, people),
            replies.WrittenFacts,
            lambda written: written.complaints(caption),
        )
        return _within_limits(reply).facts(caption)

    def lasting(
        self, span: TimeSpan, triples: Sequence[Triple]
    ) -> list[tuple[Triple, tuple[int, ...]]]:
        """Return what lasts of the triples of some minutes, with the numbers it rests on.

        What names people by tags that none of the triples has is left out.
        """
        reply = ask_sound(
            self._model.ask,
            "semantic",
            prompt("semantic_system"),
            replies.semantic_page(span, triples),
            replies.WrittenSemantics,
            lambda written: written.complaints(len(triples)),
        )
        known = tags_in(one.text for one in triples)
        sound = _within_limits(reply).sound(len(triples))
        return [(triple, numbers) for triple, numbers in sound if replies.is_sound(triple, known)]

    def consolidation(self, new: Triple, existing: Sequence[Triple]) -> Consolidation:
        """Decide which existing triples a new one replaces, and how it reads then."""
        shown = len(existing)
        decision = ask_sound(
            self._model.ask,
            "consolidate",
            prompt("consolidate_system"),
            replies.consolidate_page(new, existing),
            replies.ConsolidationReply,
            lambda reply: complaints_about(reply.decision(), shown),
        ).decision()
        replaced = tuple(number for number in decision.replaced if number < shown)
        known = tags_in(one.text for one in (new, *existing))
        triple = decision.triple if replies.is_sound(decision.triple, known) else new
        return Consolidation(replaced=replaced, triple=triple)


def _within_limits(reply: Written) -> Written:
    """Return a reply without what is beyond the limits, and log what is left out."""
    kept = reply.within_limits()
    if left_out := len(reply.triples) - len(kept.triples):
        _LOG.warning("%d triples of a reply are left out: it has too many", left_out)
    return kept
