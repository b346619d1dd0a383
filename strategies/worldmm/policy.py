"""WorldMM's policy with a language model: it searches one memory a round, or has it answered.

The whole history goes into each request. Another call answers from it.
"""

from __future__ import annotations

from agent.model_calls import Calls
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.strategy import PolicyParts
from domain.asking import Action
from strategies.policy_parts import AskingPolicy, use_tool
from strategies.worldmm.replies import (
    decide_form,
    decide_page,
    decide_system,
    history_of,
    respond_form,
    respond_page,
    respond_system,
)
from strategies.worldmm.settings import VISUAL

DECIDE_SHARE, RESPOND_SHARE = 8, 4
"""The images of a call take at most one part in so many of the tokens that are left."""


def image_note(parts: PolicyParts) -> str:
    """Return what the profile cannot do with images; "" where it can or they are switched off."""
    if VISUAL in parts.without:
        return ""
    if all(tool.name != VISUAL for tool in parts.tools):
        return "The model does not see: no images were searched."
    return "" if parts.image_model else "Images were found by time only: no image-text model."


class ModelPolicy(AskingPolicy):
    """Decides and answers by calls to the language model.

    Args:
        parts: what a policy may use.
    """

    def __init__(self, parts: PolicyParts, calls: Calls) -> None:
        super().__init__(parts, calls, image_note(parts))
        self._by_words = bool(parts.image_model)
        self._memories = tuple(tool.name for tool in parts.tools)

    def act(self, decision: DecisionContext) -> Action:
        """Search one of the offered memories with one query, or answer."""
        rounds, searches = self._settings.rounds, decision.searches
        history = history_of(search.found for search in searches)
        page = decide_page(decision.question, history, decision.round, rounds, decision.complaint)
        reply = self._ask(
            decision,
            "decide",
            decide_system(rounds, self._memories, by_words=self._by_words),
            page,
            decide_form(self._memories, searched=bool(searches), narrow=self._calls.in_process),
            shown=self._pictures(decision, DECIDE_SHARE),
        )
        if wrong := reply.complaints(self._memories, by_words=self._by_words):
            raise Unreadable("; ".join(wrong))
        return reply.decision()

    def rescue(self, decision: DecisionContext) -> Action:
        """Search the next memory with the question, each once; then answer."""
        made = {search.found.mode for search in decision.searches}
        why = "no reply was an action that can be carried out"
        for memory in self._memories:
            # A question describes no image.
            if memory not in made and memory != VISUAL:
                return use_tool(memory, why, decision.question.text)
        return Action(kind="answer", reason=why)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        question = decision.question
        history = history_of(search.found for search in decision.searches)
        shown = self._pictures(decision, RESPOND_SHARE)
        refs = [piece.ref for piece in decision.held]
        reply = self._ask(
            decision,
            "respond",
            respond_system(images=bool(shown.images)),
            respond_page(question, history, decision.complaint),
            respond_form(len(question.options), refs, narrow=self._calls.in_process),
            shown=shown,
            last=True,
        )
        return reply.conclusion(options=bool(question.options))
