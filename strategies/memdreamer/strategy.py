"""The MemDreamer strategy as it is registered, and its policies.

Seven tools look into a hierarchy above graphs: a language model uses one a round, or rules walk:
a search, what it is in, and what is next to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent.model_calls import Calls
from agent.reasoners.concluding import QuestionKind, kind_of
from agent.reasoners.port import Conclusion, DecisionContext, Unreadable
from agent.reasoners.replies import ConcludeReply, conclude_form
from agent.strategy import AgentPolicy, PolicyParts, Strategy, Tool
from domain.asking import Action
from domain.built import OutlineLevel
from domain.later import Later
from domain.trajectory import EvidenceRetrieved
from models.messages import prompts_beside
from strategies.memdreamer import settings
from strategies.memdreamer.hierarchy_view import macros_named
from strategies.memdreamer.levels import EVENT, MACRO, ROOT, SUPER, VERTEX_KINDS
from strategies.memdreamer.steps import conclude_page, step_form, step_page, step_system, unopened
from strategies.policy_parts import AskingPolicy, RuleWalk

NAME = "memdreamer"
SETTINGS = settings.HierarchySettings()
# They import scipy and models, which lists of strategies do without.
LOOK, BUILD = Later("strategies.memdreamer.tools"), Later("strategies.memdreamer.builder")
REPAIRS = 1
"""How often a reply that cannot be used is sent back."""


prompt = prompts_beside(__file__)

# MemDreamer's policy with a language model: a tool a round, and one note that goes on.
#
# Each request has the question, the newest note, the list of searches and what the last one showed;
# what earlier ones showed is gone.

WHOLE_VIDEO = "what the video is as a whole, before the first round"
STUCK = "no reply was an action that can be carried out"


class NotePolicy(AskingPolicy):
    """Decides and answers by calls to the language model.

    Args:
        parts: what a policy may use.
    """

    def __init__(self, parts: PolicyParts, calls: Calls) -> None:
        super().__init__(parts, calls)
        self._rounds = parts.settings.rounds - 1
        self._tools = settings.usable_tools(parts.tools, parts.without)
        self._names = tuple(tool.name for tool in self._tools)
        self._scored = frozenset(self._names) - {settings.SEARCH_NODES}

    def act(self, decision: DecisionContext) -> Action:
        """Look at the whole by code; then use the tool that the model names, or answer."""
        if not decision.searches:
            # The look at root and super events; without the hierarchy, a search.
            mode = (
                settings.GET_SUMMARY
                if settings.GET_SUMMARY in self._names
                else settings.SEARCH_NODES
            )
            return Action(
                kind="search", reason=WHOLE_VIDEO, mode=mode, query=decision.question.text
            )
        if all(search.found.refused for search in decision.searches):
            return Action(kind="answer", reason="nothing can be searched", not_in_memory=True)
        question = decision.question
        refs = [piece.ref for piece in decision.held]
        page = step_page(
            question,
            decision.notes[-1] if decision.notes else "",
            decision.searches,
            decision.round - 1,
            self._rounds,
            decision.complaint,
        )
        reply = self._ask(
            decision,
            "step",
            step_system(self._tools, self._rounds, options=bool(question.options)),
            page,
            step_form(question, self._names, refs, narrow=self._calls.in_process),
        )
        if wrong := reply.complaints(self._names):
            raise Unreadable("; ".join(wrong))
        return reply.decision(question, self._scored)

    def rescue(self, decision: DecisionContext) -> Action:
        """Search with the question, then open the macro events that were named; then answer."""
        question, made = decision.question, {search.found.mode for search in decision.searches}
        if settings.SEARCH_NODES not in made:
            return Action(
                kind="search", reason=STUCK, mode=settings.SEARCH_NODES, query=question.text
            )
        left = unopened(decision.searches) if settings.GET_SUBGRAPH in self._names else []
        if not left:
            return Action(kind="answer", reason=STUCK)
        return Action(
            kind="search",
            reason=STUCK,
            mode=settings.GET_SUBGRAPH,
            query=question.text,
            arguments={"macro_id": left[0]},
        )

    def conclude(self, decision: DecisionContext) -> Conclusion:
        """Take the answer of the last round; without one, ask for it."""
        answered = decision.answered
        gave = answered is not None and (answered.answer or answered.not_in_memory)
        if answered is not None and gave and not decision.complaint:
            return Conclusion(
                text=answered.answer,
                option=answered.answer or None,
                refs=answered.citations,
                not_in_memory=answered.not_in_memory,
            )
        question = decision.question
        note = decision.notes[-1] if decision.notes else ""
        page = conclude_page(question, note, decision.searches, decision.complaint)
        form = conclude_form(decision, self._calls.in_process)
        reply: ConcludeReply = self._ask(
            decision, "conclude", prompt("conclude_system"), page, form, last=True
        )
        return reply.conclusion()


# MemDreamer's policy by rules: a fixed walk of a search, what it is in, and what is next to it.

OPENED, NOTED = 2, 8
"""Macro events that are opened, and refs that are noted, at most."""


class FixedWalk(RuleWalk):
    """Searches nodes, opens the macro events of the nearest, and follows the edges of the nearest.

    Args:
        parts: what a policy may use; the profile's rules answer.
    """

    def __init__(self, parts: PolicyParts) -> None:
        super().__init__(parts)
        self._usable = {tool.name for tool in settings.usable_tools(parts.tools, parts.without)}

    def act(self, decision: DecisionContext) -> Action:
        """Take the next step of the walk; then answer."""
        note = ""
        if decision.searches:  # It has the refs that were found, nearest first.
            pieces = sorted(decision.searches[-1].found.evidence, key=lambda piece: -piece.score)
            note = " ".join(piece.ref for piece in pieces[:NOTED])
        made = {(one.found.mode, _place(one.found.arguments)) for one in decision.searches}
        for step in self._steps(decision):
            if (step.mode, _place(step.arguments)) not in made:
                return step.model_copy(update={"note": note})
        return Action(kind="answer", reason="the walk is over", note=note)

    def _steps(self, decision: DecisionContext) -> Iterator[Action]:
        question, found = decision.question, {s.found.mode: s.found for s in decision.searches}
        scoring = {"options": list(question.options)} if question.options else {}
        asked = decision.question
        broad = not asked.options and kind_of(asked.text) is QuestionKind.BROAD
        is_broad = broad and settings.GET_SUMMARY in self._usable
        if is_broad:
            yield Action(kind="search", reason="the whole", mode=settings.GET_SUMMARY)
            if found.get(settings.GET_SUMMARY) and found[settings.GET_SUMMARY].evidence:
                return
        yield Action(
            kind="search",
            reason="the nearest nodes",
            mode=settings.SEARCH_NODES,
            query=question.text,
            arguments=scoring,
        )
        nodes = found.get(settings.SEARCH_NODES)
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

    def _places(self, nodes: EvidenceRetrieved) -> Iterator[tuple[str, str, dict[str, str]]]:
        """Yield what is opened and followed from the nodes that were found, nearest first."""
        macros = dict.fromkeys(ref for piece in nodes.evidence for ref in macros_named(piece)[:1])
        for ref in list(macros)[:OPENED]:
            yield settings.GET_SUBGRAPH, "what the nearest is in", {"macro_id": ref}
        yield (
            settings.GET_RELATIONS,
            "what is next to the nearest",
            {"node_id": nodes.evidence[0].ref},
        )


def _place(arguments: dict[str, object]) -> object:
    return arguments.get("macro_id") or arguments.get("node_id")


TOOLS = (
    Tool(
        name=settings.GET_SUMMARY,
        description="what the whole video is, and its super events.",
        arguments=settings.SummaryArguments,
    ),
    Tool(
        name=settings.GET_SUPER_EVENTS,
        description="all super events and how they lead to each other, or one with what is in it.",
        arguments=settings.SuperEventsArguments,
    ),
    Tool(
        name=settings.GET_MACRO_EVENTS,
        description="summaries and key entities of the macro events of a super event, or of these.",
        arguments=settings.MacroEventsArguments,
    ),
    Tool(
        name=settings.GET_SUBGRAPH,
        description="opens a macro event: its entities, events, screen text and their edges.",
        arguments=settings.SubgraphArguments,
    ),
    Tool(
        name=settings.SEARCH_NODES,
        description="finds entities, events and screen text near to the query, with neighbours.",
        arguments=settings.NodesArguments,
    ),
    Tool(
        name=settings.SEARCH_BY_TIME,
        description="what there is between two times, such as 12:30 and 12:50.",
        arguments=settings.TimeArguments,
    ),
    Tool(
        name=settings.GET_RELATIONS,
        description="what edges lead from and to a node or an entity.",
        arguments=settings.RelationsArguments,
    ),
)


def walk(parts: PolicyParts) -> AgentPolicy:
    """Return the policy: the language model's, else a fixed walk."""
    if parts.calls is not None:
        return NotePolicy(parts, parts.calls)
    return FixedWalk(parts)


LEVELS = (
    OutlineLevel(ROOT, "whole video"),
    OutlineLevel(SUPER, "super event"),
    OutlineLevel(MACRO, "macro event"),
    OutlineLevel(EVENT, "event", titled=False),
)
"""The levels of outlines, coarse ones first."""

STRATEGY = Strategy(
    name=NAME,
    title="a hierarchy of events above graphs of who does what with what",
    paper="MemDreamer",
    builds="macro events with their graphs, super events above them, and the whole",
    needs="homer build VIDEO; its rules read English",
    version=2,
    machine="tool_loop",
    tools=TOOLS,
    open_tools=lambda store, toolbox: LOOK.HierarchyTools(store, toolbox, NAME).by_name(),
    policy=walk,
    builder=lambda: BUILD.hierarchy_builder(SETTINGS),
    rounds=SETTINGS.rounds + 1,
    retries=REPAIRS,
    tokens=(SETTINGS.rounds + 1) * SETTINGS.round_tokens,
    parts=settings.PARTS,
    levels=LEVELS,
    node_types={kind: level for level, kind in VERTEX_KINDS.items()},
)
"""The look at the whole before the first round is a round of the machine."""
