"""Texts from outside, made fit to be kept."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """``text`` without what no database and no file can hold: NUL and halves of characters."""
    return _UNSTORABLE.sub("�", text)


def _kept(value: object) -> object:
    return storable(value) if isinstance(value, str) else value


Kept = Annotated[str, BeforeValidator(_kept)]
"""A text that may come from anywhere: a file's name, a command line, a page."""
