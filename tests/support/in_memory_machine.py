"""The real machine without a database: its events stay in memory. Fast enough for hypothesis."""

from __future__ import annotations

from typing import Any, cast

from agent.model_calls import RunBudget
from agent.reasoners.port import Reasoner
from agent.recorder import Recorder
from agent.run_context import RunContext
from agent.state import State, plain
from domain.asking import Question
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import EVENT, Ended, Event
from graphs.ask_result import AskResult
from graphs.machine import HOMER
from strategies.homer.strategy import STRATEGY
from tests.support.machine import VIDEO, Ran, ScriptedMemory, ScriptedReasoner


class InMemoryRecorder(Recorder):
    """Records events in memory only."""

    def __init__(self) -> None:
        super().__init__(None, "test", lambda *_: None, strategy=STRATEGY)  # type: ignore[arg-type]


def run_machine(workspace: RunContext, question: Question) -> tuple[State, list[Event]]:
    """Answer a question; return the last state and the events, each checked to survive JSON."""
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
    start: dict[str, Any] = {"question": plain(question), "view": plain(view), "next": "plan"}
    ended = HOMER.run(cast(State, start), workspace)
    events = workspace.recorder.events
    for event in events:
        assert EVENT.validate_json(EVENT.dump_json(event)) == event
    return ended, events


def context_of(
    reasoner: Reasoner,
    memory: ScriptedMemory,
    settings: AskSettings,
    meter: RunBudget | None = None,
    recorder: Recorder | None = None,
) -> RunContext:
    """Make the context of a run that records in memory only."""
    kept = recorder or InMemoryRecorder()
    return RunContext(reasoner, memory, memory.cite, settings, kept, meter or RunBudget(settings))


def play(memory: ScriptedMemory, **scripts: Any) -> Ran:
    """One question of a scripted reasoner; ``question``, ``options`` and ``settings`` as well."""
    text = scripts.pop("question", "What does Ann open?")
    options = tuple(scripts.pop("options", ()))
    settings = scripts.pop("settings", AskSettings())
    reasoner = ScriptedReasoner(**scripts)
    question = Question(text=text, videos=(VIDEO,), options=options)
    _, events = run_machine(context_of(reasoner, memory, settings), question)
    ended = events[-1]
    assert isinstance(ended, Ended)
    assert ended.answer is not None
    asked = AskResult("test", ended.answer, ended.rounds, ended.tokens, 0.0)
    return Ran(asked, events, reasoner, memory)
