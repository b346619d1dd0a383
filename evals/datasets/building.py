"""Builds the questions and videos of a data set from records, for every reader."""

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
    """Build one question from the record at ``place``; repeated types count once.

    Raises:
        InputError: a field is invalid.
    """
    with _named_errors(place, "the question"):
        types = tuple(dict.fromkeys(fields.pop("types", ())))
        built = EvalQuestion(types=types, **fields)
        words = (built.id, built.video, built.question, built.answer, *built.options, *built.types)
        _check_storable(*words)
        return built


def video(place: str, **fields: Any) -> EvalVideo:
    """Build one video from the record at ``place``.

    Raises:
        InputError: a field is invalid.
    """
    with _named_errors(place, "the video"):
        built = EvalVideo(**fields)
        _check_storable(built.name, built.url)
        return built


@contextmanager
def _named_errors(place: str, what: str) -> Iterator[None]:
    """Raise errors as one line that names the record and the field."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or what
        raise InputError(f"{place}: {field}: {first['msg']}") from error
    except ValueError as error:
        raise InputError(f"{place}: {what}: {error}") from error


def _check_storable(*words: str) -> None:
    """Refuse text that UTF-8 or the database cannot hold: JSON may escape half a character."""
    if any("\0" in text or _HALF.search(text) for text in words):
        raise ValueError("a NUL or half a character is in its words")


def dataset(
    name: str, place: str, videos: Iterable[EvalVideo], questions: Sequence[EvalQuestion]
) -> Dataset:
    """Build the data set, each video once; repeated question ids get a suffix.

    Raises:
        InputError: there is no question.
    """
    if not questions:
        raise InputError(f"{place} holds no question of {name}")
    by_name = {video.name: video for video in videos}
    return Dataset(name, tuple(by_name.values()), tuple(_with_unique_ids(questions)))


def _with_unique_ids(questions: Iterable[EvalQuestion]) -> Iterator[EvalQuestion]:
    """Yield questions with unique ids: the second of an id gets ``#2``, and so on."""
    seen: set[str] = set()
    for item in questions:
        ids = chain([item.id], (f"{item.id}#{n}" for n in count(2)))
        free = next(name for name in ids if name not in seen)
        seen.add(free)
        yield item if free == item.id else item.model_copy(update={"id": free})


def reject_duplicate_ids(place: str, questions: Iterable[EvalQuestion]) -> None:
    """Refuse repeated ids, where they are the user's own.

    Raises:
        InputError: names the id.
    """
    repeated = [name for name, times in Counter(item.id for item in questions).items() if times > 1]
    if repeated:
        raise InputError(f"{place}: the question id {repeated[0]!r} comes twice")


def without_labels(options: Sequence[str]) -> tuple[str, ...]:
    """Return options without their letters (``A. Red``, ``(B) Blue``), if all have their own."""
    marks = [_LABEL.match(option) for option in options]
    letters = [mark[1] if mark else "" for mark in marks]
    if letters != list(ascii_uppercase[: len(options)]):
        return tuple(options)
    return tuple(option[mark.end() :] for option, mark in zip(options, marks, strict=True) if mark)


def letter(index: int) -> str:
    """Return the letter of the option at ``index`` from 0; an invalid index matches no option."""
    return ascii_uppercase[index] if 0 <= index < len(ascii_uppercase) else str(index)


def ms(seconds: float) -> int:
    """Convert seconds to whole milliseconds."""
    return round(seconds * 1000)


def instant(start_ms: int) -> TimeSpan:
    """Return the second that begins there, for a set that gives a moment without a length."""
    return TimeSpan.of(start_ms, start_ms + 1000)


def youtube(key: str) -> str:
    """Return the address of a YouTube video."""
    return f"https://www.youtube.com/watch?v={key}"
