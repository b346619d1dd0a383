"""Texts from outside, made fit to be kept."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import BeforeValidator

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_JOINERS = "\u200c\u200d"
"""Invisible, but they belong to words of some scripts."""


def storable(text: str) -> str:
    """``text`` without what no database and no file can hold: NUL and halves of characters."""
    return _UNSTORABLE.sub("�", text)


def visible(text: str) -> str:
    """``text`` without what cannot be seen, which only a machine would read; spaces stay spaces."""
    return text if text.isprintable() else "".join(map(_seen, text))


def _seen(char: str) -> str:
    if char in _JOINERS or unicodedata.category(char) not in ("Cc", "Cf"):
        return char
    return " " if char.isspace() else ""


def _kept(value: object) -> object:
    return storable(value) if isinstance(value, str) else value


Kept = Annotated[str, BeforeValidator(_kept)]
"""A text that may come from anywhere: a file's name, a command line, a page."""
