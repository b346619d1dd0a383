"""Text from outside as plain lines, without control or hidden characters."""

from __future__ import annotations

_IRREGULAR = {"person": "people", "piece of evidence": "pieces of evidence"}


def plain_line(text: str) -> str:
    """Return ``text`` on one line, without characters that could control a terminal."""
    return printable(text).strip()


def printable(text: str) -> str:
    """Return ``text`` with spaces for unprintable characters, and ``?`` for lone surrogates."""
    return "".join(
        character if character.isprintable() else " " for character in without_surrogates(text)
    )


def without_surrogates(text: str) -> str:
    """Return ``text`` with ``?`` for each lone surrogate."""
    return text.encode("utf-8", "replace").decode("utf-8")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 clip``, ``12 memories``, ``2 people``."""
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def shortened(text: str, width: int = 120) -> str:
    """Return ``text`` on one clean line of at most ``width`` characters."""
    line = plain_line(text)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
