"""WorldMM's policy with a language model: it searches one memory a round, or has it answered.

The whole history goes into each request. Another call answers from it.
"""

from __future__ import annotations

from agent.model_calls import Calls
from agent.pictures import LoadedPictures, affordable, load_pictures
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.strategy import PolicyParts
from domain.asking import Action
from models.messages import system, user
from strategies.worldmm.pages import decide_page, decide_system, history_of, respond_page
from strategies.worldmm.prompts import prompt
from strategies.worldmm.replies import decide_form, respond_form

DECIDE_SHARE, RESPOND_SHARE = 8, 4
"""The images of a call take at most one part in so many of the tokens that are left."""


class ModelPolicy:
    """Decides and answers by calls to the language model.

    Args:
        parts: what a policy may use.
        calls: to the language model.
    """

    def __init__(self, parts: PolicyParts, calls: Calls) -> None:
        self.name, self.note = parts.responder.name, parts.responder.note
        self._calls, self._settings, self._load = calls, parts.settings, parts.load_image
        self._memories = tuple(tool.name for tool in parts.tools)

    def act(self, decision: DecisionContext) -> Action:
        """Search one of the offered memories with one query, or answer."""
        rounds, searches = self._settings.rounds, decision.searches
        history = history_of(search.found for search in searches)
        page = decide_page(decision.question, history, decision.round, rounds, decision.complaint)
        loaded = self._pictures(decision, DECIDE_SHARE)
        reply = self._calls.ask(
            "decide",
            [system(decide_system(rounds, self._memories)), user(page)],
            decide_form(self._memories, searched=bool(searches), narrow=self._calls.in_process),
            round=decision.round,
            temperature=0.0,
            images=loaded.images,
            labels=loaded.labels,
        )
        if wrong := reply.complaints(self._memories):
            raise Unreadable("; ".join(wrong))
        return reply.decision()

    def rescue(self, decision: DecisionContext) -> Action:
        """Search the next memory with the question, each once; then answer."""
        made = {search.found.mode for search in decision.searches}
        why = "no reply was an action that can be carried out"
        for memory in self._memories:
            if memory not in made:
                query = decision.question.text
                return Action(kind="search", reason=why, mode=memory, query=query)
        return Action(kind="answer", reason=why)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer from the whole history."""
        question = decision.question
        history = history_of(search.found for search in decision.searches)
        loaded = self._pictures(decision, RESPOND_SHARE)
        refs = [piece.ref for piece in decision.held]
        reply = self._calls.ask(
            "respond",
            [
                system(prompt("respond_system")),
                user(respond_page(question, history, decision.complaint)),
            ],
            respond_form(len(question.options), refs, narrow=self._calls.in_process),
            round=decision.round,
            temperature=0.0,
            images=loaded.images,
            labels=loaded.labels,
            last=True,
        )
        return reply.conclusion(options=bool(question.options))

    def _pictures(self, decision: DecisionContext, share: int) -> LoadedPictures:
        """Load the latest pictures for a model that sees, within the budget."""
        if not self._calls.sees:
            return LoadedPictures()
        most = min(self._settings.images, affordable(decision.tokens, share))
        return load_pictures(decision.pictures[:most], self._load)
