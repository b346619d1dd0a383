"""Reading the JSON object in a language model's reply, also where it is not quite JSON.

Models wrap objects in prose or code fences, leave trailing commas, quote with single quotes, forget
to escape, write Python's ``True`` and ``None``, or stop in the middle. The library ``json_repair``
reads what is not quite JSON; what was cut off is closed where it stopped.
"""

from __future__ import annotations

import json
from typing import Any

from json_repair import repair_json

from domain.words import make_storable

# The library takes time by the square of some texts: 5 s for 16,000 characters of ``["["["``. A
# reply of 8,000 tokens is within this.
MOST_REPAIRED = 32_000


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``, repaired if need be.

    Args:
        text: A model's reply. Thoughts up to a ``</think>`` are skipped.

    Raises:
        ValueError: There is no object in it, or one nested too deeply; or it is no JSON and longer
            than ``MOST_REPAIRED``.
    """
    answer = _after_thoughts(text)
    start = answer.find("{")
    if start < 0:
        raise ValueError("there is no JSON object in the answer")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(answer, start)
    except (ValueError, RecursionError):
        value = _repaired(answer[start:])
    return dict(_storable(value))


def _repaired(text: str) -> dict[str, Any]:
    """Return the first object of a text that is not quite JSON."""
    if len(text) > MOST_REPAIRED:
        raise ValueError("the answer is no JSON, and too long to be repaired")
    try:
        found = repair_json(text, return_objects=True, skip_json_loads=True)
    except RecursionError as error:
        raise ValueError("the answer's JSON is nested too deeply") from error
    # What follows the object is read as well, into a list.
    values = found if isinstance(found, list) else [found]
    return next((one for one in values if isinstance(one, dict)), {})


def _after_thoughts(text: str) -> str:
    """Return ``text`` from the end of the thoughts on; a ``</think>`` in an object is no end."""
    before, _, after = text.rpartition("</think>")
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return after
    return text if end > len(before) else after


def is_complete_object(text: str) -> bool:
    """Check whether there is an object in ``text`` that needs no repair."""
    try:
        json.JSONDecoder(strict=False).raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return False
    return True


def _storable(value: Any) -> Any:
    match value:
        case str():
            return make_storable(value)
        case list():
            return [_storable(one) for one in value]
        case dict():
            return {make_storable(str(name)): _storable(one) for name, one in value.items()}
    return value


def latest_text(text: str) -> str:
    """Return the text that a streamed reply is writing at the moment, for people to read.

    That is the last text of its JSON object, else its last line.
    """
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
