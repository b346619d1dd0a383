"""A model that searches for five rounds and resolves nothing, so that there is much to see."""

from __future__ import annotations

from typing import Any

from domain.asking import Question
from graphs.ask_result import AskResult
from store.database import Store
from tests.support.asking import PARTY, remember_party
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of, texts_of
from tests.support.openai_server import OpenAIServer
from tests.support.runs import ask

PLAY = Question(text="What does Bob play, and who sings?", videos=(PARTY,))
PLAN = {"subtasks": [{"text": "what Bob plays"}, {"text": "who sings", "depends": ["t1"]}]}


def searching(request: dict[str, Any]) -> Any:
    """Plans two subtasks, words each search anew and resolves nothing."""
    purpose = purpose_of(request)
    if purpose == "plan":
        return PLAN
    if purpose == "assess":
        return {"resolved": [], "reopened": []}
    made = obedient(request)
    if purpose == "act":
        words = ("piano song", "slow music", "kitchen guests", "plates wash", "garden rain")
        return made | {"query": f"somebody and the {words[len(texts_of(request)) // 2 % 5]}"}
    return made


def ask_at_party(store: Store) -> AskResult:
    remember_party(store)
    with OpenAIServer(searching) as server:
        return ask(store, LlmToolbox(server), PLAY)
