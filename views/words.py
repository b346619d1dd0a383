"""Text from outside as plain lines, without control or hidden characters."""

from __future__ import annotations


def clean(text: str) -> str:
    """Return ``text`` on one line, without characters that could control a terminal."""
    return steady(text).strip()


def steady(text: str) -> str:
    """Return ``text`` with spaces for unprintable characters, and ``?`` for lone surrogates."""
    return "".join(character if character.isprintable() else " " for character in whole(text))


def whole(text: str) -> str:
    """Return ``text`` with ``?`` for each lone surrogate."""
    return text.encode("utf-8", "replace").decode("utf-8")


def short(text: str, width: int = 120) -> str:
    """Return ``text`` on one clean line of at most ``width`` characters."""
    line = clean(text)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
