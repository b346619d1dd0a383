"""Reads the first three lines of a video, then the next three, and answers from them."""

from __future__ import annotations

from agent.reasoners.port import Conclusion, DecisionContext
from agent.strategy import PolicyParts, RunTool, Strategy, Tool, ToolArguments, ToolUse
from domain.asking import Action, Evidence
from domain.memories import MemoryView
from domain.moments import Retrieval
from models.toolbox import Toolbox
from store.database import Store
from store.queries.memories import memories_of_clips


class NextLines(ToolArguments):
    """From which line on to read."""

    first: int


def open_tools(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    def run(view: MemoryView, arguments: NextLines, use: ToolUse) -> Retrieval:
        scope, first = view.scopes[0], arguments.first
        with store.begin() as session:
            clips = range(scope.last_clip + 1)
            rows = memories_of_clips(session, scope.video, clips, scope.last_clip)
        evidence = tuple(
            Evidence(ref=f"m{m.id}", video=scope.video, span=m.span, text=m.text, score=0.9)
            for m in (row.memory for row in rows[first : first + 3])
        )
        return Retrieval(mode="next_lines", query=arguments.query, evidence=evidence)

    return {"next_lines": run}


class ReadsTwice:
    tool = "next_lines"

    def __init__(self, parts: PolicyParts) -> None:
        self._responder = parts.responder
        self.name, self.note = parts.responder.name, parts.responder.note

    def act(self, decision: DecisionContext) -> Action:
        made = len(decision.searches)
        if made == 2:
            return self.rescue(decision)
        return Action(kind="search", mode=self.tool, arguments={"first": 3 * made})

    def rescue(self, decision: DecisionContext) -> Action:
        return Action(kind="answer")

    def conclude(self, decision: DecisionContext) -> Conclusion:
        return self._responder.conclude(decision)


STRATEGY = Strategy(
    name="next-lines",
    title="reads line after line",
    paper="none",
    builds="nothing",
    needs="nothing",
    version=1,
    machine="tool_loop",
    tools=(Tool("next_lines", "Reads three lines.", NextLines),),
    open_tools=open_tools,
    policy=ReadsTwice,
    rounds=3,
)
