"""What strategies ask of a language model: calls and tokens a video hour, and a question.

    python -m benchmarks.model_use

An hour of made-up captions, four a clip, is written and asked by a scripted model behind a local
server that speaks OpenAI's protocol and counts its requests. It reports no tokens, so they are
those that Homer estimates. Its replies are short; a real model's are longer.
"""

from __future__ import annotations

import tempfile
from itertools import cycle, islice
from pathlib import Path

from sqlalchemy import update

from agent.strategy import Strategy
from domain.asking import Question
from domain.trajectory import ModelCalled, RunEvent
from flows.build import build
from flows.workspace import Workspace
from graphs.runner import Runner
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.tables.schema import VideoRow
from strategies.registry import all_strategies
from tests.support.asking import PARTY
from tests.support.obedient_model import LlmToolbox
from tests.support.openai_server import EVERYTHING, OpenAIServer
from tests.support.prompted_models import obedient_to_all
from tests.support.remembered import Said, watch

CLIPS, LINES = 120, 4
"""Clips of an hour, and captions in each."""
COUNTED = EVERYTHING - {"usage"}
PEOPLE = ("Ann", "Bob", "Cleo", "Dan", "Eva")
DEEDS = ("paints", "carries", "washes", "repairs", "opens", "moves", "hides")
THINGS = ("the fence", "the red bike", "the garden gate", "the old lamp", "the box of apples")
QUESTIONS = (
    "Who paints the fence?",
    "What does Bob carry?",
    "Who opens the garden gate?",
    "What does Eva usually do?",
    "When is the old lamp repaired?",
)


def main() -> None:
    """Print a line for each strategy."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store, OpenAIServer(obedient_to_all, COUNTED) as server:
                remember_hour(store)
                for strategy in all_strategies():
                    print(_measured(home, store, server, strategy), flush=True)
        finally:
            EmbeddedPostgres(home).stop()


def remember_hour(store: Store) -> None:
    """Store an hour of captions, as if it had been watched."""
    parts = zip(cycle(PEOPLE), cycle(DEEDS), cycle(THINGS), strict=False)
    told = islice((f"{who} {deed} {what}" for who, deed, what in parts), CLIPS * LINES)
    clips = [
        [Said(next(told), 7.0 * line, source="caption") for line in range(LINES)]
        for _ in range(CLIPS)
    ]
    watch(store, PARTY, clips)
    with store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))


def _measured(home: Home, store: Store, server: OpenAIServer, strategy: Strategy) -> str:
    toolbox = LlmToolbox(server, writer="llm")
    workspace = Workspace(home, store, toolbox.profile, toolbox)
    return f"{strategy.name}: {_written(workspace, server, strategy)}; " + _asked(
        workspace, server, strategy
    )


def _written(workspace: Workspace, server: OpenAIServer, strategy: Strategy) -> str:
    if strategy.builder is None:
        return "asks nothing to build"
    before = len(server.requests)
    use = build(workspace, PARTY, strategy, lambda *_: None).use
    if use is None or len(server.requests) - before != use.calls:
        raise RuntimeError("the record and the server differ in their calls")
    return f"a video hour {use.calls} calls, {use.tokens_in} tokens in, {use.tokens_out} out"


def _asked(workspace: Workspace, server: OpenAIServer, strategy: Strategy) -> str:
    before, calls = len(server.requests), list[ModelCalled]()

    def note(event: RunEvent) -> None:
        if isinstance(event, ModelCalled):
            calls.append(event)

    with Runner(workspace.store, workspace.toolbox) as runner:
        for text in QUESTIONS:
            runner.ask(Question(text=text, videos=(PARTY,)), note, strategy=strategy.name)
    if len(server.requests) - before != len(calls):
        raise RuntimeError("the record and the server differ in their calls")
    count = len(QUESTIONS)
    tokens = sum(call.tokens_in for call in calls) / count
    return f"a question {len(calls) / count:.1f} calls, {tokens:.0f} tokens in"


if __name__ == "__main__":
    main()
