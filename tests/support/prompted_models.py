"""Language models that write and search strategies' memories by what their prompts say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tests.support.memdreamer_model import is_step, obedient_step
from tests.support.obedient_model import obedient, texts_of

_SENTENCE = re.compile(r"(<?\w+>?) (\w+) ([\w' ]+)")
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.M)
_QUESTION = re.compile(r"<question>(.*?)</question>", re.S)
_RESULT = re.compile(r"^(\d+)\. \[([a-z]\d+)\]", re.M)
_REF = re.compile(r"^\[([a-z]\d+)\]", re.M)


class PromptedModel:
    """Answers a request by the method that ``purposes`` names for words of its prompt.

    ``asked`` counts the purposes.
    """

    purposes: ClassVar[Mapping[str, str]]

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    @classmethod
    def purpose(cls, request: dict[str, Any]) -> str:
        """What a request is for, by its first user message; "" if it is none of this model's."""
        asked = texts_of(request)[1] if len(texts_of(request)) > 1 else ""
        return next((purpose for mark, purpose in cls.purposes.items() if mark in asked), "")

    def __call__(self, request: dict[str, Any]) -> Any:
        purpose = self.purpose(request)
        self.asked[purpose] += 1
        answer: Any = getattr(self, purpose)(texts_of(request)[1])
        return answer


def within(mark: str, text: str) -> str:
    found = re.search(rf"<{mark}>\n(.*?)\n</{mark}>", text, re.S)
    return found[1] if found else ""


def triple(line: str) -> dict[str, str]:
    subject, predicate, target = line.split(" | ")
    return {"subject": subject, "predicate": predicate, "object": target}


class WorldModel(PromptedModel):
    """Writes and searches WorldMM's memory.

    Captions are the lines; triples are the first words of each; the first triple of some minutes
    lasts; a new one replaces those with the same subject and predicate.
    """

    purposes: ClassVar = {
        "Write the caption of this stretch": "caption",
        "Write the entities and triples": "triples",
        "Write what lasts": "semantic",
        "Which are replaced": "consolidate",
        "Which triples bear on the query": "filter",
        "Choose at most": "choose",
        "Search one memory, or answer": "decide",
        "Answer the question": "respond",
    }

    def caption(self, text: str) -> Any:
        lines = [line.rstrip(".") for line in within("lines", text).splitlines()]
        return {"caption": ". ".join(dict.fromkeys(lines)) + "."}

    def triples(self, text: str) -> Any:
        found = _SENTENCE.findall(within("caption", text))
        names = dict.fromkeys(end for who, _, what in found for end in (who, what))
        return {
            "entities": [{"name": name, "kind": "CONCEPT"} for name in names],
            "triples": [
                {"subject": who, "predicate": verb, "object": what} for who, verb, what in found
            ],
        }

    def semantic(self, text: str) -> Any:
        (number, line), *_ = _NUMBERED.findall(within("triples", text))
        return {"triples": [{**triple(line), "evidence": [int(number)]}]}

    def consolidate(self, text: str) -> Any:
        new = triple(within("new", text))
        olds = [(int(n), triple(line)) for n, line in _NUMBERED.findall(within("existing", text))]
        same = [n for n, old in olds if {**old, "object": ""} == {**new, "object": ""}]
        return {"replaced": same, "triple": new}

    def filter(self, text: str) -> Any:
        return {"kept": [int(number) for number, _ in _NUMBERED.findall(within("triples", text))]}

    def choose(self, text: str) -> Any:
        numbers = [int(number) for number, _ in _NUMBERED.findall(within("captions", text))]
        return {"reason": "they come first", "chosen": numbers[:3]}

    def decide(self, text: str) -> Any:
        if "<found>" in text:
            return {"reason": "it was found", "action": "answer"}
        question = re.findall(r"<question>(.*?)</question>", text)[0]
        return {"reason": "first", "action": "search", "memory": "episodic", "query": question}

    def respond(self, text: str) -> Any:
        refs = re.findall(r"^\[(\w+)\]", text, re.M)
        options = re.findall(r"<option>([A-Z])\.", text)
        return {
            "found": bool(refs),
            "option": options[0] if options else None,
            "answer": "what was found",
            "evidence": refs[:1],
        }


class MomentModel(PromptedModel):
    """Writes VAM's documents, searches once and answers; ``route_said`` is said to the router."""

    purposes: ClassVar = {
        "Write the lines of this event": "document",
        "How is it answered?": "route",
        "Take one action.": "plan",
        "Answer the question now": "conclude",
        "Write the summary": "summarize",
        "What do the frames show of this": "inspect",
    }

    def __init__(self, route: str = "retrieve") -> None:
        super().__init__()
        self.route_said = route

    def document(self, text: str) -> Any:
        return {"lines": ["Written: " + line for line in within("lines", text).splitlines()]}

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


class EventMemoryModel(PromptedModel):
    """Writes EventMemAgent's memory, captions with the first line, searches once and answers."""

    purposes: ClassVar = {
        "Write the caption and the changes of this event": "event",
        "Write one thought, and take one action": "react",
        "Give the answer in the box now": "conclude",
    }

    def event(self, text: str) -> Any:
        first = within("event", text).partition("\n")[0]
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


def obedient_to_all(request: dict[str, Any]) -> Any:
    for kind in (MomentModel, EventMemoryModel):
        if kind.purpose(request):
            return kind()(request)
    if len(texts_of(request)) > 1 and is_step(request):
        return obedient_step(request)
    return WorldModel()(request) if WorldModel.purpose(request) else obedient(request)


def answering(model: WorldModel, **instead: Any) -> Callable[[dict[str, Any]], Any]:
    """The model, but for some purposes with these answers, in order; its own for each None."""
    left = {purpose: list(answers) for purpose, answers in instead.items()}

    def answer(request: dict[str, Any]) -> Any:
        waiting = left.get(model.purpose(request), [])
        given = waiting.pop(0) if waiting else None
        return model(request) if given is None else given

    return answer
