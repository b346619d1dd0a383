"""A language model that writes VAM's documents and plans its actions by what its prompts say."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tests.support.obedient_model import texts_of

PURPOSES = {
    "Write the lines of this event": "document",
    "How is it answered?": "route",
    "Take one action.": "plan",
    "Answer the question now": "conclude",
    "Write the summary": "summarize",
    "What do the frames show of this": "inspect",
}
_LINES = re.compile(r"<lines>\n(.*?)\n</lines>", re.S)
_QUESTION = re.compile(r"<question>(.*?)</question>", re.S)
_RESULT = re.compile(r"^(\d+)\. \[([a-z]\d+)\]", re.M)


def moment_purpose(request: dict[str, Any]) -> str:
    """What a request is for; "" if it is none of VAM's."""
    asked = texts_of(request)[1] if len(texts_of(request)) > 1 else ""
    return next((purpose for mark, purpose in PURPOSES.items() if mark in asked), "")


class MomentModel:
    """Writes what it is shown, searches once and answers; ``asked`` counts the purposes.

    ``route`` is what it says to the router.
    """

    def __init__(self, route: str = "retrieve") -> None:
        self.asked: Counter[str] = Counter()
        self.route_said = route

    def __call__(self, request: dict[str, Any]) -> Any:
        purpose = moment_purpose(request)
        self.asked[purpose] += 1
        answer: Any = getattr(self, purpose)(texts_of(request)[1])
        return answer

    def document(self, text: str) -> Any:
        found = _LINES.search(text)
        return {"lines": ["Written: " + line for line in found[1].splitlines()] if found else []}

    def summarize(self, text: str) -> Any:
        return self.document(text)

    def route(self, text: str) -> Any:
        return {"reason": "it asks so", "route": self.route_said}

    def plan(self, text: str) -> Any:
        if _RESULT.search(text):
            return {"reason": "it is found", "action": self._answer(text)}
        query = {"q": _QUESTION.findall(text)[0], "top_k": 5, "threshold": 0.0}
        action = {"kind": "search", "queries": [query], "sources": ["event"]}
        return {"reason": "look it up", "action": action}

    def conclude(self, text: str) -> Any:
        return {"reason": "the end", "action": self._answer(text)}

    def inspect(self, text: str) -> Any:
        return {"shown": True, "frames": [{"number": 0, "seen": "a red wall"}]}

    def _answer(self, text: str) -> Any:
        option = "A" if "<option>" in text else None
        best = {"turn": 1, "result": 0}
        answer = {"kind": "answer", "found": True, "answer": "what was found", "option": option}
        return {**answer, "best_ref": best}
