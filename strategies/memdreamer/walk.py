"""MemDreamer's policy by rules: a fixed walk of a search, what it is in, and what is next to it."""

from __future__ import annotations

from collections.abc import Iterator

from agent.reasoners.port import DecisionContext
from agent.reasoners.question_parts import QuestionKind, kind_of
from agent.strategy import PolicyParts
from domain.asking import Action
from domain.trajectory import EvidenceRetrieved
from strategies.memdreamer.names import GET_RELATIONS, GET_SUBGRAPH, GET_SUMMARY, SEARCH_NODES
from strategies.memdreamer.shown import macros_named
from strategies.memdreamer.usable import usable_tools
from strategies.policy_parts import RuleWalk

OPENED, NOTED = 2, 8
"""Macro events that are opened, and refs that are noted, at most."""


class FixedWalk(RuleWalk):
    """Searches nodes, opens the macro events of the nearest, and follows the edges of the nearest.

    Args:
        parts: what a policy may use; the profile's rules answer.
    """

    def __init__(self, parts: PolicyParts) -> None:
        super().__init__(parts)
        self._usable = {tool.name for tool in usable_tools(parts.tools, parts.without)}

    def act(self, decision: DecisionContext) -> Action:
        """Take the next step of the walk; then answer."""
        note = _noted(decision.searches[-1].found) if decision.searches else ""
        made = {(one.found.mode, _place(one.found.arguments)) for one in decision.searches}
        for step in self._steps(decision):
            if (step.mode, _place(step.arguments)) not in made:
                return step.model_copy(update={"note": note})
        return Action(kind="answer", reason="the walk is over", note=note)

    def _steps(self, decision: DecisionContext) -> Iterator[Action]:
        question, found = decision.question, {s.found.mode: s.found for s in decision.searches}
        scoring = {"options": list(question.options)} if question.options else {}
        if self._is_broad(decision):
            yield Action(kind="search", reason="the whole", mode=GET_SUMMARY)
            if found.get(GET_SUMMARY) and found[GET_SUMMARY].evidence:
                return
        yield Action(
            kind="search",
            reason="the nearest nodes",
            mode=SEARCH_NODES,
            query=question.text,
            arguments=scoring,
        )
        nodes = found.get(SEARCH_NODES)
        if nodes is None or not nodes.evidence or (nodes.nothing_close and not nodes.weighed):
            return
        for tool, reason, place in self._places(nodes):
            if tool in self._usable:
                yield Action(
                    kind="search",
                    reason=reason,
                    mode=tool,
                    query=question.text,
                    arguments={**place, **scoring},
                )

    def _is_broad(self, decision: DecisionContext) -> bool:
        asked = decision.question
        broad = not asked.options and kind_of(asked.text) is QuestionKind.BROAD
        return broad and GET_SUMMARY in self._usable

    def _places(self, nodes: EvidenceRetrieved) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield what is opened and followed from the nodes that were found, nearest first."""
        macros = dict.fromkeys(ref for piece in nodes.evidence for ref in macros_named(piece)[:1])
        for ref in list(macros)[:OPENED]:
            yield GET_SUBGRAPH, "what the nearest is in", {"macro_id": ref}
        yield GET_RELATIONS, "what is next to the nearest", {"node_id": nodes.evidence[0].ref}


def _place(arguments: dict[str, object]) -> object:
    return arguments.get("macro_id") or arguments.get("node_id")


def _noted(found: EvidenceRetrieved) -> str:
    """Return a note of the refs that were found, nearest first."""
    best = sorted(found.evidence, key=lambda piece: -piece.score)[:NOTED]
    return " ".join(piece.ref for piece in best)
