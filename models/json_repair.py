"""Reading the JSON object in a language model's reply, also where it is not quite JSON.

Models wrap objects in prose or code fences, leave trailing commas, quote with single quotes, forget
to escape, write Python's ``True`` and ``None``, or stop in the middle. What can be read without
guessing at content is read; what was cut off is closed where it stopped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from domain.texts import make_storable

DEEPEST = 100
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
LITERALS: dict[str, Any] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
BARE_END = re.compile(r"[,\]}\n]|$")
KEY_END = re.compile(r"[:,}\]\n]|$")
AFTER_STRING = re.compile(r"\s*(?:[,:}\]]|$)")
FOUR_HEX = re.compile(r"[0-9a-fA-F]{4}")
_NOTHING: Any = object()


def read_object(text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``, repaired if need be.

    Args:
        text: A model's reply. Thoughts up to a ``</think>`` are skipped.

    Raises:
        ValueError: There is no object in it, or one nested more than ``DEEPEST`` levels.
    """
    answer = _after_thoughts(text)
    start = answer.find("{")
    if start < 0:
        raise ValueError("there is no JSON object in the answer")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(answer, start)
    except (ValueError, RecursionError):
        value = _JsonReader(answer, start).value(0)
    return dict(_storable(value))


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


@dataclass
class _JsonReader:
    """A tolerant recursive-descent parser of one value, from ``at`` on."""

    text: str
    at: int

    def value(self, depth: int) -> Any:
        """Parse the next value; ``_NOTHING`` where the text ends or a bracket closes instead."""
        if depth > DEEPEST:
            raise ValueError("the answer's JSON is nested too deeply")
        self._skip(" \t\r\n")
        char = self._peek()
        if char == "{":
            return self._object(depth)
        if char == "[":
            found = []
            self.at += 1
            while not self._closed("]"):
                before = self.at
                value = self.value(depth + 1)
                if value is not _NOTHING:
                    found.append(value)
                if self.at == before:
                    break
            return found
        if char in QUOTES:
            return self._string(QUOTES[char])
        # Parse a number, ``true`` and the like, or words that were not quoted.
        end = BARE_END.search(self.text, self.at)
        stop = end.start() if end else len(self.text)
        word = self._until(stop)
        if not word:
            return _NOTHING
        if word in LITERALS:
            return LITERALS[word]
        cut = stop == len(self.text) and [name for name in LITERALS if name.startswith(word)]
        if cut:
            return LITERALS[cut[0]]
        try:
            return json.loads(word)
        except ValueError:
            return word

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        while not self._closed("}"):
            if self._peek() in QUOTES:
                key = self._string(QUOTES[self._peek()])
            else:
                end = KEY_END.search(self.text, self.at)
                key = self._until(end.start() if end else len(self.text)) or self._step()
            self._skip(" \t\r\n")
            if self._peek() != ":":
                continue
            self.at += 1
            value = self.value(depth + 1)
            if value is not _NOTHING:
                found[key] = value
        return found

    def _closed(self, bracket: str) -> bool:
        """Skip separators; return True at the end of the value, its bracket consumed if there."""
        self._skip(" \t\r\n,")
        char = self._peek()
        if char == bracket:
            self.at += 1
            return True
        # Another bracket closes something further out: this value ends without its own.
        return not char or char in "}]"

    def _string(self, close: str) -> str:
        """Parse a quoted string. A quote that no separator follows is one that was not escaped."""
        self.at += 1
        parts = []
        while char := self._peek():
            self.at += 1
            if char == "\\":
                parts.append(self._escape())
            elif char == close and AFTER_STRING.match(self.text, self.at):
                break
            else:
                parts.append(char)
        return "".join(parts)

    def _escape(self) -> str:
        char = self._step()
        if char == "u" and FOUR_HEX.match(self.text, self.at):
            self.at += 4
            return chr(int(self.text[self.at - 4 : self.at], 16))
        return ESCAPES.get(char, char)

    def _until(self, stop: int) -> str:
        word = self.text[self.at : stop].strip()
        self.at = stop
        return word

    def _step(self) -> str:
        char = self._peek()
        self.at += 1
        return char

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, chars: str) -> None:
        while (char := self._peek()) and char in chars:
            self.at += 1
