"""A language model that writes and searches WorldMM's memory by what its prompts say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.support.event_memory_model import EventMemoryModel, event_memory_purpose
from tests.support.memdreamer_model import is_step, obedient_step
from tests.support.moment_model import MomentModel, moment_purpose
from tests.support.obedient_model import obedient, texts_of

PURPOSES = {
    "Write the caption of this stretch": "caption",
    "Write the entities and triples": "triples",
    "Write what lasts": "semantic",
    "Which are replaced": "consolidate",
    "Which triples bear on the query": "filter",
    "Choose at most": "choose",
    "Search one memory, or answer": "decide",
    "Answer the question": "respond",
}
_SENTENCE = re.compile(r"(<?\w+>?) (\w+) ([\w' ]+)")
_NUMBERED = re.compile(r"^(\d+)\. (.*)$", re.M)


def purpose_of(request: dict[str, Any]) -> str:
    """What a request is for, by its first user message."""
    asked = texts_of(request)[1]
    return next(purpose for mark, purpose in PURPOSES.items() if mark in asked)


def within(mark: str, text: str) -> str:
    found = re.search(rf"<{mark}>\n(.*?)\n</{mark}>", text, re.S)
    return found[1] if found else ""


def triple(line: str) -> dict[str, str]:
    subject, predicate, target = line.split(" | ")
    return {"subject": subject, "predicate": predicate, "object": target}


class WorldModel:
    """Writes what it is shown, and counts what it was asked for in ``asked``.

    Captions are the lines; triples are the first words of each; the first triple of some minutes
    lasts; a new one replaces those with the same subject and predicate.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> Any:
        purpose = purpose_of(request)
        self.asked[purpose] += 1
        answer: Any = getattr(self, purpose)(texts_of(request)[1])
        return answer

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


def obedient_to_all(request: dict[str, Any]) -> Any:
    if moment_purpose(request):
        return MomentModel()(request)
    if event_memory_purpose(request):
        return EventMemoryModel()(request)
    asked = texts_of(request)
    if len(asked) > 1 and is_step(request):
        return obedient_step(request)
    known = len(asked) > 1 and any(mark in asked[1] for mark in PURPOSES)
    return WorldModel()(request) if known else obedient(request)


def answering(model: WorldModel, **instead: Any) -> Callable[[dict[str, Any]], Any]:
    """The model, but for some purposes with these answers, in order; its own for each None."""
    left = {purpose: list(answers) for purpose, answers in instead.items()}

    def answer(request: dict[str, Any]) -> Any:
        waiting = left.get(purpose_of(request), [])
        given = waiting.pop(0) if waiting else None
        return model(request) if given is None else given

    return answer
