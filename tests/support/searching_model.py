"""A model that searches for five rounds and resolves nothing, so that there is much to see."""

from __future__ import annotations

from typing import Any

from domain.asking import Question
from tests.support.asking import PARTY
from tests.support.obedient_model import obedient, purpose_of, texts_of

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
