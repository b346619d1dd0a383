"""What is under way, named by product code: watching, asking, searching, calling a model.

Here nothing is written and nothing is sent. Whoever wants to know, as a log or a tracer, is one of
the ``observers``; with none, only the ids are carried along. Fields are ids, numbers and words of
the code, never content: what was said, asked or answered has no place in them.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

Value = str | int | float | bool
Fields = Mapping[str, Value]
Words = Callable[[], Mapping[str, str]]

IDS = ("video", "clip", "trajectory", "flow_run", "round")
"""The fields that everything below a span has too."""


class Work(StrEnum):
    """What a span is about."""

    FLOW = "flow"
    CLIP = "clip"
    STAGE = "stage"
    QUESTION = "question"
    ROUND = "round"
    SEARCH = "search"
    CALL = "call"


class Number(StrEnum):
    """What is counted, and what is measured from time to time."""

    CLIPS = "clips"
    FAILURES = "failures"
    LAG_S = "lag"


@dataclass
class Span:
    """Something under way. ``fields`` may grow until it ends; ``kept`` is the observers' own.

    ``words`` gives content, for an observer that was asked for content in so many words; nobody
    else calls it.
    """

    work: Work
    name: str
    fields: dict[str, Value]
    about: Fields
    words: Words | None = None
    kept: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return time.monotonic() - self.began

    @contextmanager
    def inside(self) -> Iterator[Span]:
        """What happens inside belongs to it, in whichever thread."""
        with ExitStack() as stack:
            stack.enter_context(within(**self.about))
            for observer in observers:
                stack.enter_context(observer.inside(self))
            yield self

    def end(self, error: BaseException | None = None) -> None:
        """It is over, with an error if there was one."""
        for observer in observers:
            observer.ended(self, error)


class Observer(Protocol):
    """Is told what happens; must neither raise nor wait."""

    def began(self, span: Span) -> None:
        """Something begins, within what is under way here."""

    def inside(self, span: Span) -> AbstractContextManager[object]:
        """Surrounds a part of it."""

    def ended(self, span: Span, error: BaseException | None) -> None:
        """It is over."""

    def number(self, number: Number, value: float, fields: Fields) -> None:
        """So many more of what is counted; or how much it is now, of what is measured."""


observers: list[Observer] = []

_about: ContextVar[Fields] = ContextVar("about", default={})  # noqa: B039 - never changed in place


def about() -> Fields:
    """The ids of what is under way here."""
    return _about.get()


@contextmanager
def within(**ids: Value) -> Iterator[None]:
    """What happens inside is about these ids too."""
    token = _about.set({**_about.get(), **{key: unnamed(value) for key, value in ids.items()}})
    try:
        yield
    finally:
        _about.reset(token)


def begin(work: Work, name: str = "", **fields: Value) -> Span:
    """Begins what goes on in several pieces (``Span.inside``) until ``Span.end``."""
    ids = {key: unnamed(value) for key, value in fields.items() if key in IDS}
    own = {key: value for key, value in fields.items() if key not in IDS}
    together = {**_about.get(), **ids}
    found = Span(work, name or work, own, together)
    for observer in observers:
        observer.began(found)
    return found


@contextmanager
def span(work: Work, name: str = "", **fields: Value) -> Iterator[Span]:
    """Observes what happens inside, told by ``work`` and, where there are several, by ``name``."""
    found = begin(work, name, **fields)
    try:
        with found.inside():
            yield found
    except BaseException as error:
        found.end(error)
        raise
    found.end()


def tell(number: Number, value: float = 1, **fields: Value) -> None:
    """One more of something; or, of what is measured, how much it is now."""
    for observer in observers:
        observer.number(number, value, {**_about.get(), **fields})


_NUMBER = re.compile(r"[0-9a-f]{16}|x[0-9a-f]{15}|[0-9a-f-]{36}")


def unnamed(name: Value) -> Value:
    """An id as it may be told: captions are known by their file's name, which says too much."""
    if not isinstance(name, str) or _NUMBER.fullmatch(name):
        return name
    return f"x{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:15]}"
