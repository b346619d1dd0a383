"""Models that write MemDreamer's hierarchy: a sensible one, and one that replies anything."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

from agent.builder import Reply
from agent.reasoners.port import Unreadable
from models.messages import Message

_LINE = re.compile(r"^(\d+)\.", re.MULTILINE)
Answer = Callable[[str, str], "dict[str, Any] | None"]
"""Returns the reply to a purpose and page; None: one that cannot be read."""


class WritingModel:
    """A model whose replies a function makes; ``asked`` are the purposes of the calls."""

    sees = False

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[str] = []

    def ask(
        self, purpose: str, messages: Sequence[Message], schema: type[Reply], **_: Any
    ) -> Reply:
        self.asked.append(purpose)
        reply = self._answer(purpose, "\n".join(message.content for message in messages[1:]))
        if reply is None:
            raise Unreadable("no JSON")
        return schema.model_validate(reply)


def numbers_in(page: str) -> list[int]:
    return [int(number) for number in _LINE.findall(page)]


def sensible(purpose: str, page: str) -> dict[str, Any] | None:
    """Return a reply as it should be: episodes of twenty lines, super events of three."""
    numbers = numbers_in(page)
    kind = purpose.removesuffix("-repair")
    if kind == "episodes":
        cuts = numbers[::20]
        return {"episodes": [_run(a, min(a + 19, numbers[-1])) for a in cuts]}
    if kind == "graph":
        return _graph(numbers)
    if kind == "supers":
        cuts = numbers[::3]
        runs = [_run(a, min(a + 2, numbers[-1]), "description") for a in cuts]
        outer = [_edge(a, "LEADS_TO", b) for a, b in pairwise(cuts)]
        inner = [_edge(a, "CAUSES", a + 1) for a in cuts if a + 1 <= numbers[-1]]
        return {"supers": runs, "inner": inner, "outer": outer}
    return {"title": "A day", "description": "They work.", "themes": ["work"], "tone": "calm"}


def _run(first: int, last: int, text: str = "summary") -> dict[str, Any]:
    told = f"What happens from {first} to {last}."
    return {"first": first, "last": last, "label": f"Part {first}", text: told}


def _edge(subject: int, label: str, target: int) -> dict[str, Any]:
    return {"subject": subject, "label": label, "object": target, "reason": "It is said."}


def _graph(numbers: Sequence[int]) -> dict[str, Any]:
    event = {"type": "wash", "first": 0, "last": min(1, numbers[-1]), "subject": "Ann"}
    later = {"type": "sing", "first": numbers[-1], "last": numbers[-1], "subject": "Ann"}
    return {
        "entities": [
            {"name": "Ann", "kind": "PERSON", "description": "Ann works.", "best": 0},
            {"name": "garage", "kind": "LOCATION", "description": "A garage.", "best": 0},
        ],
        "events": [
            {**event, "object": "", "description": "Ann washes the car."},
            {**later, "object": "", "description": "Ann sings."},
        ],
        "edges": [
            {"subject": "E0", "label": "HAPPENS_IN", "object": "garage"},
            {"subject": "E0", "label": "CAUSES", "object": "E1"},
        ],
    }


def anything(seed: int) -> Answer:
    """Return a model that replies anything: overlaps, gaps, the same twice, forty or none."""

    def answer(purpose: str, page: str) -> dict[str, Any] | None:
        rng = random.Random(crc32(f"{seed} {purpose} {page}".encode()))
        numbers = numbers_in(page) or [0]
        kind = purpose.removesuffix("-repair")
        if rng.random() < 0.1:
            return None
        if kind == "episodes":
            return {"episodes": [_any_run(rng, numbers, "summary") for _ in _any_count(rng)]}
        if kind == "graph":
            return _any_graph(rng, numbers)
        if kind == "supers":
            return {
                "supers": [_any_run(rng, numbers, "description") for _ in _any_count(rng)],
                "inner": [_any_edge(rng, numbers) for _ in _any_count(rng)],
                "outer": [_any_edge(rng, numbers) for _ in _any_count(rng)],
            }
        return {"title": _any_text(rng), "description": _any_text(rng), "themes": [], "tone": ""}

    return answer


def _any_count(rng: random.Random) -> range:
    return range(rng.choice((0, 1, 2, 3, 5, 40)))


def _any_number(rng: random.Random, numbers: Sequence[int]) -> int:
    return rng.choice((-1, numbers[0], numbers[-1] + 7, *numbers))


def _any_text(rng: random.Random) -> str:
    texts = ("", " ", "Ann works", "<face_9> works", "a\nb", "LEADS_TO super 3: so", "word " * 900)
    return rng.choice(texts)


def _any_run(rng: random.Random, numbers: Sequence[int], text: str) -> dict[str, Any]:
    first, last = _any_number(rng, numbers), _any_number(rng, numbers)
    return {"first": first, "last": last, "label": _any_text(rng), text: _any_text(rng)}


def _any_edge(rng: random.Random, numbers: Sequence[int]) -> dict[str, Any]:
    labels = ("LEADS_TO", "CAUSES", "enables", "BEFORE", "LIKES", "RESOLVES")
    ends = _any_number(rng, numbers), _any_number(rng, numbers)
    return {
        "subject": ends[0],
        "label": rng.choice(labels),
        "object": ends[1],
        "reason": _any_text(rng),
    }


def _any_graph(rng: random.Random, numbers: Sequence[int]) -> dict[str, Any]:
    names = ("Ann", "garage", "E0", "E1", "T0", "T9", "<face_9>", "nobody", "Ann  B")
    labels = ("PERFORMS", "happens in", "CAUSES", "LIKES", "NEXT_TO", "ANNOTATES", "MENTIONED")
    return {
        "entities": [
            {
                "name": rng.choice(names),
                "kind": rng.choice(("PERSON", "OBJECT", "LOCATION", "GROUP")),
                "description": _any_text(rng),
                "best": _any_number(rng, numbers),
            }
            for _ in _any_count(rng)
        ],
        "events": [
            {
                "type": "do",
                "first": _any_number(rng, numbers),
                "last": _any_number(rng, numbers),
                "subject": rng.choice(names),
                "object": rng.choice(names),
                "description": _any_text(rng).strip() or "something",
            }
            for _ in _any_count(rng)
        ],
        "edges": [
            {"subject": rng.choice(names), "label": rng.choice(labels), "object": rng.choice(names)}
            for _ in _any_count(rng)
        ],
    }
