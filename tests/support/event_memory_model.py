"""A language model that writes EventMemAgent's memory and takes its turns as its prompts say."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from tests.support.obedient_model import texts_of

PURPOSES = {
    "Write the caption and the changes of this event": "event",
    "Write one thought, and take one action": "react",
    "Give the answer in the box now": "conclude",
}
_EVENT = re.compile(r"<event>\n(.*?)\n</event>", re.S)
_QUESTION = re.compile(r"<question>(.*?)</question>", re.S)
_REF = re.compile(r"^\[([a-z]\d+)\]", re.M)


def event_memory_purpose(request: dict[str, Any]) -> str:
    """What a request is for; "" if it is none of EventMemAgent's."""
    asked = texts_of(request)[1] if len(texts_of(request)) > 1 else ""
    return next((purpose for mark, purpose in PURPOSES.items() if mark in asked), "")


class EventMemoryModel:
    """Captions with the first line, searches once and answers; ``asked`` counts the purposes."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> Any:
        purpose = event_memory_purpose(request)
        self.asked[purpose] += 1
        answer: Any = getattr(self, purpose)(texts_of(request)[1])
        return answer

    def event(self, text: str) -> Any:
        found = _EVENT.search(text)
        first = found[1].splitlines()[0] if found else ""
        return {"caption": f"Written: {first}", "change": "it changes", "onward": "it goes on"}

    def react(self, text: str) -> Any:
        if "search_memory: " in text:
            return {"thought": "it is found", "action": self._answer(text)}
        action = {"tool": "search_memory", "query": _QUESTION.findall(text)[0]}
        return {"thought": "look it up", "action": action}

    def conclude(self, text: str) -> Any:
        return {"thought": "the end", "action": self._answer(text)}

    def _answer(self, text: str) -> Any:
        box = "A" if "<option>" in text else "what was found"
        return {"tool": "answer", "found": True, "boxed": box, "evidence": _REF.findall(text)[:1]}
