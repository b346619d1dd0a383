"""Looks at the first lines of each video, then at the next ones, and answers from them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agent.builder import Embed, MemoryBuilder
from agent.strategy import RunTool, Strategy, Tool, ToolArguments, ToolUse
from domain.asking import Evidence
from domain.built import (
    BuiltMemory,
    Change,
    Entity,
    EntityKey,
    Node,
    Relation,
    WatchedClip,
)
from domain.memories import MemoryView
from domain.moments import Retrieval
from models.messages import user
from models.toolbox import Toolbox
from store.database import Store
from store.queries.memories import memories_of_clips
from tests.support.extra_strategies.next_lines.strategy import ReadsTwice

SECOND = "rest"


class Remark(BaseModel):
    """What a model says of the lines."""

    answer: str = ""


class Lines(ToolArguments):
    """How many lines to read from which one on."""

    first: int
    count: int = 3


def open_tools(store: Store, toolbox: Toolbox) -> dict[str, RunTool]:
    """Open the reading of lines; no model is needed."""

    def run(view: MemoryView, arguments: Lines, use: ToolUse) -> Retrieval:
        with store.begin() as session:
            scope = view.scopes[0]
            clips = range(scope.last_clip + 1)
            rows = memories_of_clips(session, scope.video, clips, scope.last_clip)
        chosen = [row.memory for row in rows][arguments.first : arguments.first + arguments.count]
        chosen = chosen[:1] if SECOND in use.without else chosen
        searched = ""
        if use.model is not None:
            asked = user(f"The search is over. <question>{len(chosen)} lines</question>")
            searched = use.model.ask("remark", [asked], Remark).answer or "no remark"
        evidence = tuple(
            Evidence(ref=f"m{row.id}", video=scope.video, span=row.span, text=row.text, score=0.9)
            for row in chosen
        )
        return Retrieval(mode="lines", query=arguments.query, evidence=evidence, searched=searched)

    return {"lines": run}


class TwoLooks(ReadsTwice):
    """Reads three lines twice, then answers."""

    tool = "lines"


class PairBuild:
    """Keeps the first line of every two clips, and what its first word does to its last."""

    def __init__(self, built: BuiltMemory, embed: Embed) -> None:
        self._number, self._embed = len(built.nodes), embed

    def step(self, clips: Sequence[WatchedClip], *, ended: bool) -> Change:
        lines = [line for clip in clips for line in clip.lines]
        if not lines:
            return Change()
        text, last = lines[0].text, clips[-1].clip
        node = Node("pair", self._number, text, lines[0].span, last, vector=self._embed([text])[0])
        who, whom = (EntityKey("WORD", word) for word in (text.split()[0], text.split()[-1]))
        said = Relation(
            "pair", who, "says", whom, lines[0].span, last, (last,), ("pair", self._number)
        )
        self._number += 1
        entities = [Entity(key, last) for key in dict.fromkeys((who, whom))]
        return Change([node], entities, [said])


PAIRS = MemoryBuilder(
    version=1,
    step_ms=60_000,
    look_back_ms=0,
    begin=lambda _, built, __, models: PairBuild(built, models.embed),
)
STRATEGY = Strategy(
    name="first-lines",
    title="reads the first lines",
    paper="none",
    builds="the first line of every two clips",
    needs="nothing",
    version=1,
    machine="tool_loop",
    tools=(Tool("lines", "Reads lines in order.", Lines),),
    open_tools=open_tools,
    policy=TwoLooks,
    parts={SECOND: "all lines but the first of each look"},
    builder=lambda: PAIRS,
    rounds=3,
)
