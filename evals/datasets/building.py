"""Turns records into the questions of a data set: what every reader needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from string import ascii_uppercase
from typing import Any

from pydantic import ValidationError

from domain.errors import InputError
from domain.time import TimeSpan
from evals.dataset import Dataset, EvalQuestion, EvalVideo

_HALF = re.compile("[\ud800-\udfff]")
_LABEL = re.compile(r"\s*\(?([A-Z])(?:[.):]|\s*$)\s*", re.ASCII)


def question(place: str, **fields: Any) -> EvalQuestion:
    """One question from the record at ``place``; a type that comes twice counts once.

    Raises:
        InputError: a field is not what it must be.
    """
    with _told(place, "the question"):
        types = tuple(dict.fromkeys(fields.pop("types", ())))
        found = EvalQuestion(types=types, **fields)
        words = (found.id, found.video, found.question, found.answer, *found.options, *found.types)
        _check_storable(*words)
        return found


def video(place: str, **fields: Any) -> EvalVideo:
    """One video from the record at ``place``.

    Raises:
        InputError: a field is not what it must be.
    """
    with _told(place, "the video"):
        found = EvalVideo(**fields)
        _check_storable(found.name, found.url)
        return found


@contextmanager
def _told(place: str, what: str) -> Iterator[None]:
    """Says in one line which record is wrong, and where."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or what
        raise InputError(f"{place}: {field}: {first['msg']}") from error
    except ValueError as error:
        raise InputError(f"{place}: {what}: {error}") from error


def _check_storable(*words: str) -> None:
    """Refuses what UTF-8 and the database cannot hold: JSON may escape half a character."""
    if any("\0" in one or _HALF.search(one) for one in words):
        raise ValueError("a NUL or half a character is in its words")


def dataset(
    name: str, place: str, videos: Iterable[EvalVideo], asked: Sequence[EvalQuestion]
) -> Dataset:
    """The data set, each video once. Questions that others published under one id are told apart.

    Raises:
        InputError: there is no question.
    """
    if not asked:
        raise InputError(f"{place} holds no question of {name}")
    once = {video.name: video for video in videos}
    return Dataset(name, tuple(once.values()), tuple(_told_apart(asked)))


def _told_apart(asked: Iterable[EvalQuestion]) -> Iterator[EvalQuestion]:
    """The second of an id has ``#2`` behind it, and so on."""
    seen: set[str] = set()
    for one in asked:
        ids = chain([one.id], (f"{one.id}#{n}" for n in count(2)))
        free = next(name for name in ids if name not in seen)
        seen.add(free)
        yield one if free == one.id else one.model_copy(update={"id": free})


def refuse_twins(place: str, asked: Iterable[EvalQuestion]) -> None:
    """Refuses ids that come twice, where they are the user's own.

    Raises:
        InputError: names the id.
    """
    twins = [name for name, times in Counter(one.id for one in asked).items() if times > 1]
    if twins:
        raise InputError(f"{place}: the question id {twins[0]!r} comes twice")


def unlabelled(options: Sequence[str]) -> tuple[str, ...]:
    """Options without their letters (``A. Red``, ``(B) Blue``), if every one has its own."""
    marks = [_LABEL.match(option) for option in options]
    letters = [mark[1] if mark else "" for mark in marks]
    if letters != list(ascii_uppercase[: len(options)]):
        return tuple(options)
    return tuple(option[mark.end() :] for option, mark in zip(options, marks, strict=True) if mark)


def letter(index: int) -> str:
    """The letter of the option at ``index`` from 0; an odd index gives what no option has."""
    return ascii_uppercase[index] if 0 <= index < len(ascii_uppercase) else str(index)


def ms(seconds: float) -> int:
    """Seconds as whole milliseconds."""
    return round(seconds * 1000)


def instant(start_ms: int) -> TimeSpan:
    """The second that begins there, where a set tells a moment and no length."""
    return TimeSpan.of(start_ms, start_ms + 1000)


def youtube(key: str) -> str:
    """Where a video of YouTube can be watched."""
    return f"https://www.youtube.com/watch?v={key}"
