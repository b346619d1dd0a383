"""A policy by rules: each tool is used once with the question, then the answer is given."""

from __future__ import annotations

from collections.abc import Mapping

from agent.reasoners.port import Conclusion, DecisionContext
from agent.strategy import LONGEST_OPTION, PolicyParts
from domain.asking import Action


class SearchEach:
    """Uses each tool once with the question, and answers from everything that was found.

    Args:
        parts: what a policy may use; the profile's model or rules answer.
        reasons: why each tool is used, by its name, in the order of using them.
        done: why it answers then.
        note: what the user must know besides what the responder says.
    """

    def __init__(
        self, parts: PolicyParts, reasons: Mapping[str, str], done: str, note: str = ""
    ) -> None:
        self._responder, self._reasons, self._done = parts.responder, reasons, done
        self.name = parts.responder.name
        self.note = " ".join(part for part in (parts.responder.note, note) if part)

    def act(self, decision: DecisionContext) -> Action:
        """Use the next tool with the question and its options; then answer."""
        made = {search.found.mode for search in decision.searches}
        options = [option[:LONGEST_OPTION] for option in decision.question.options]
        for tool, reason in self._reasons.items():
            if tool not in made:
                return Action(
                    kind="search",
                    reason=reason,
                    mode=tool,
                    query=decision.question.text,
                    arguments={"options": options} if options else {},
                )
        return Action(kind="answer", reason=self._done)

    def rescue(self, decision: DecisionContext) -> Action:
        """Return the same: the rules do not depend on replies."""
        return self.act(decision)

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Answer with the profile's model or rules."""
        return self._responder.conclude(decision)
