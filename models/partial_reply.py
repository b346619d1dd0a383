"""What a person can read of a reply that is still being written."""

from __future__ import annotations

from typing import Any

from models.json_repair import read_object


def said_so_far(text: str) -> str:
    """The words that come at this moment: the last ones of an object, else the last line."""
    if "{" not in text:
        return text.rstrip().rpartition("\n")[2]
    try:
        return _last(read_object(text))
    except ValueError:
        return ""


def _last(value: Any) -> str:
    match value:
        case dict():
            return _last(list(value.values())[-1]) if value else ""
        case list():
            return _last(value[-1]) if value else ""
        case str():
            return value
    return ""
