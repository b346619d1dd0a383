"""A small memory and a scripted reasoner, to run the real machine on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agent.model_calls import RunBudget
from agent.reasoners.port import Assessment, Conclusion, DecisionContext
from agent.recorder import Recorder
from agent.run_context import RunContext
from domain.asking import Action, Aim, Citation, Evidence, Mode, Question
from domain.errors import ReplayMiss
from domain.ledger import Edits, SubtaskDraft
from domain.media import Clip, ClipState, Video
from domain.memories import Edge, MemoryView, Relation, Segment
from domain.moments import ResolvedRefs, Retrieval, UnknownLabel
from domain.settings import AskSettings
from domain.time import TimeSpan
from domain.trajectory import Event, Resolution
from graphs.ask_result import AskResult
from graphs.replay import replay
from graphs.runner import Runner
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from store.queries.clips import mark_clip
from store.queries.trajectories import list_trajectories
from store.queries.videos import add_video
from tests.support.listeners import collect_events

VIDEO = "0123456789abcdef"
WORDS = (
    "a red car stops at the gate",
    "Ann opens the door of the house",
    "Bob pours coffee into a blue cup",
    "the lecturer draws a circle on the board",
    "two children run over the grass",
    "rain falls and everybody leaves the garden",
)


def evidence(number: int, text: str = "", score: float = 0.6, clip: int | None = None) -> Evidence:
    """Memory ``m<number>``, five seconds long."""
    start = number * 5_000
    return Evidence(
        ref=f"m{number}",
        video=VIDEO,
        span=TimeSpan.of(start, start + 5_000),
        text=text or WORDS[number % len(WORDS)],
        score=score,
        clip=number if clip is None else clip,
    )


def segment(number: int, label: str = "") -> Segment:
    """Segment ``s<number>`` over one clip."""
    return Segment(
        id=number,
        video=VIDEO,
        number=number,
        label=label or f"segment {number}",
        summary=f"what happens in part {number}",
        clips=(number,),
        span=TimeSpan.of(number * 30_000, (number + 1) * 30_000),
    )


def found(
    *items: Evidence, focus: int | None = 1, close: bool = True, **more: Any
) -> Callable[[Mode, str], Retrieval]:
    """What a search gives, whatever its mode and query."""

    def retrieval(mode: Mode, query: str) -> Retrieval:
        return Retrieval(
            mode=mode,
            query=query,
            focus=segment(focus) if focus else None,
            evidence=items,
            nothing_close=not close,
            searched="the test's memory",
            **more,
        )

    return retrieval


@dataclass
class ScriptedMemory:
    """Gives ``finds`` one after the other, the last again and again; notes what was searched.

    ``supports``: how well passages support any claim; 0.9 where they are not in it.
    """

    finds: list[Callable[[Mode, str], Retrieval]]
    labels: tuple[str, ...] = ("segment 2",)
    searches: list[tuple[Mode, str, int | None]] = field(default_factory=list)
    aims: list[Aim | None] = field(default_factory=list)
    supports: dict[str, float] = field(default_factory=dict)
    claims: list[str] = field(default_factory=list)

    def search(
        self,
        view: MemoryView,
        mode: Mode,
        query: str,
        focus: int | None = None,
        seen: frozenset[str] = frozenset(),
        aim: Aim | None = None,
        span: TimeSpan | None = None,
    ) -> Retrieval:
        at = min(len(self.searches), len(self.finds) - 1)
        self.searches.append((mode, query, focus))
        self.aims.append(aim)
        if mode is Mode.NEIGHBOR and query not in self.labels:
            raise UnknownLabel(query, self.labels)
        return self.finds[at](mode, query)

    def support(self, claim: str, passages: Sequence[str]) -> tuple[float, ...]:
        self.claims.append(claim)
        return tuple(self.supports.get(passage, 0.9) for passage in passages)

    def cite(self, refs: Sequence[str]) -> ResolvedRefs:
        once = tuple(dict.fromkeys(refs))  # As the real one does.
        known = [r for r in once if r[1:].isdigit() and int(r[1:]) < 900]
        return ResolvedRefs(
            citations=tuple(_citation(ref) for ref in known),
            unknown=tuple(ref for ref in once if ref not in known),
        )


def _citation(ref: str) -> Citation:
    shown = evidence(int(ref[1:]))
    return Citation(ref=ref, video=VIDEO, span=shown.span, text=shown.text, clip=shown.clip)


def edge(source: int, target: int) -> Edge:
    return Edge(
        id=1,
        source=source,
        target=target,
        relation=Relation.CAUSES,
        explicit=True,
        confidence=0.9,
        rationale="it says so",
    )


Decision = Any
"""A value, an error to raise, or a function of the turn that gives either."""


class ScriptedReasoner:
    """Decides by script: each list is used up in order, its last entry again and again."""

    name = "scripted"
    note = ""

    def __init__(self, **scripts: Iterable[Decision]) -> None:
        self._scripts = {name: list(script) for name, script in scripts.items()}
        self.turns: list[tuple[str, DecisionContext]] = []
        self.decided: list[tuple[str, Decision]] = []

    def _next(self, name: str, turn: DecisionContext, default: Decision) -> Any:
        self.turns.append((name, turn))
        script = self._scripts.get(name) or [default]
        decision = script.pop(0) if len(script) > 1 else script[0]
        if callable(decision):
            decision = decision(turn)
        self.decided.append((name, decision))
        if isinstance(decision, Exception):
            raise decision
        return decision

    def plan(self, turn: DecisionContext) -> tuple[SubtaskDraft, ...]:
        return tuple(self._next("plan", turn, (SubtaskDraft(text=turn.question.text),)))

    def act(self, turn: DecisionContext) -> Action:
        made: Action = self._next("act", turn, varied)
        return made

    def assess(self, turn: DecisionContext) -> Assessment:
        made: Assessment = self._next("assess", turn, Assessment())
        return made

    def replan(self, turn: DecisionContext, reasons: tuple[str, ...]) -> Edits:
        made: Edits = self._next("replan", turn, Edits())
        return made

    def conclude(self, turn: DecisionContext) -> Conclusion:
        made: Conclusion = self._next("conclude", turn, _first)
        return made


class DecidedReasoner(ScriptedReasoner):
    """Decides what another one did, in order: its decisions are the record of a replay."""

    def __init__(self, decided: Sequence[tuple[str, Decision]]) -> None:
        super().__init__()
        self._left = list(decided)

    def _next(self, name: str, turn: DecisionContext, default: Decision) -> Any:
        if not self._left or self._left[0][0] != name:
            raise ReplayMiss(f"the record has no decision to {name} at this place")
        _, decision = self._left.pop(0)
        if isinstance(decision, Exception):
            raise decision
        return decision


def varied(turn: DecisionContext) -> Action:
    """A search that is worded unlike all before it."""
    text = " ".join(f"word{turn.round}{letter}" for letter in "abc")
    return search(text, turn.forced or Mode.EVENT)


def claimed(turn: DecisionContext, *support: str) -> Assessment:
    """The current subtask is called resolved, by what was found last unless told otherwise."""
    assert turn.current is not None
    refs = support or (turn.evidence[-1].ref,)
    claim = Resolution(subtask=turn.current.id, answer=f"so is {turn.current.text}", refs=refs)
    return Assessment(resolved=(claim,))


def fresh(count: int) -> list[Callable[[Mode, str], Retrieval]]:
    """Searches that always find something new, on another segment."""
    return [
        found(evidence(i), evidence(20 + i, f"alpha{i} beta{i} gamma{i}"), focus=i)
        for i in range(1, count + 1)
    ]


FINDS = [found(evidence(i, f"alpha{i} beta{i} gamma{i}"), focus=i) for i in range(1, 15)]
"""Searches that find something new, a memory each."""


def _first(turn: DecisionContext) -> Conclusion:
    if not turn.evidence:
        return Conclusion(text="", not_in_memory=True, option="A")
    best = turn.evidence[0]
    return Conclusion(text=best.text, option="A", refs=(best.ref,))


def search(query: str, mode: Mode = Mode.EVENT) -> Action:
    return Action(kind="search", mode=mode, query=query)


def answer(text: str, *refs: str, missing: bool = False) -> Action:
    return Action(kind="answer", answer=text, citations=refs, not_in_memory=missing)


@dataclass
class ScriptedContexts:
    """Contexts over the scripted reasoner and memory."""

    reasoner: ScriptedReasoner
    memory: ScriptedMemory
    settings: AskSettings = field(default_factory=AskSettings)
    meters: list[RunBudget] = field(default_factory=list)

    def __call__(
        self, view: MemoryView, recorder: Recorder, budget: RunBudget, settings: AskSettings
    ) -> RunContext:
        self.meters.append(budget)
        return RunContext(
            reasoner=self.reasoner,
            memory=self.memory,
            cite=self.memory.cite,
            settings=self.settings,
            recorder=recorder,
            budget=budget,
        )


def watched(store: Store, clips: int = 6) -> None:
    """A video of ``clips`` clips, all done."""
    video = Video(id=VIDEO, title="garden", path=None, duration_ms=clips * 30_000)
    spans = [TimeSpan.of(i * 30_000, (i + 1) * 30_000) for i in range(clips)]
    made = [Clip(index=i, span=span) for i, span in enumerate(spans)]
    with store.begin() as session:
        add_video(session, video, made, {})
        for clip in made:
            mark_clip(session, VIDEO, clip.index, ClipState.DONE)


@dataclass
class Ran:
    """An answer, the events it left, and what was asked of reasoner and memory."""

    asked: AskResult
    events: list[Event]
    reasoner: ScriptedReasoner
    memory: ScriptedMemory

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@contextmanager
def runner_for(store: Store, contexts: ScriptedContexts) -> Iterator[Runner]:
    toolbox = Toolbox(load_profile("local", None), Home.default().weights)
    with Runner(store, toolbox, contexts) as runner:
        yield runner


def run(
    store: Store,
    reasoner: ScriptedReasoner,
    memory: ScriptedMemory,
    *,
    question: str = "What does Ann open?",
    options: Sequence[str] = (),
    settings: AskSettings | None = None,
) -> Ran:
    events: list[Event] = []
    contexts = ScriptedContexts(reasoner, memory, settings or AskSettings())
    asked = Question(text=question, videos=(VIDEO,), options=tuple(options))
    with runner_for(store, contexts) as runner:
        try:
            result = runner.ask(asked, collect_events(events))
        finally:
            if events:
                # Run the latest trajectory again from its record: every event must be the same.
                with store.begin() as session:
                    latest = list_trajectories(session)[0].id
                made = replay(store, latest, lambda *_: DecidedReasoner(reasoner.decided))
                assert made.divergence is None, made.divergence
    return Ran(result, events, reasoner, memory)
