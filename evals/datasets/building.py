"""Turns records into the questions of a data set: what every reader needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import ascii_uppercase
from typing import Any

from pydantic import ValidationError

from domain.errors import InputError
from evals.dataset import Dataset, EvalQuestion, EvalVideo

_LABEL = re.compile(r"\s*\(?([A-Z])(?:[.):]|\s*$)\s*", re.ASCII)


def question(place: str, **fields: Any) -> EvalQuestion:
    """One question from the record at ``place``.

    Raises:
        InputError: a field is not what it must be.
    """
    try:
        found = EvalQuestion(**fields)
        words = (found.id, found.video, found.question, found.answer, *found.options, *found.types)
        if any("\0" in one or not _is_text(one) for one in words):
            raise InputError(f"{place}: a NUL or half a character is in these words")
        return found
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the question"
        raise InputError(f"{place}: {field}: {first['msg']}") from error


def _is_text(words: str) -> bool:
    """Whether UTF-8, and so the database, can hold it: JSON may escape half a character."""
    return not any("\ud800" <= character <= "\udfff" for character in words)


def dataset(name: str, videos: Iterable[EvalVideo], asked: Sequence[EvalQuestion]) -> Dataset:
    """The data set, of each video once, if it asks anything and no id comes twice.

    Raises:
        InputError: there is no question, or two share an id.
    """
    if not asked:
        raise InputError(f"{name}: there is no question in these files")
    seen: set[str] = set()
    for one in asked:
        if one.id in seen:
            raise InputError(f"{name}: the question id {one.id!r} comes twice")
        seen.add(one.id)
    once = {video.name: video for video in videos}
    return Dataset(name, tuple(once.values()), tuple(asked))


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
