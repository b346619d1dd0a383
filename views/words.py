"""Text from outside as plain lines, without control or hidden characters."""

from __future__ import annotations


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


def shortened(text: str, width: int = 120) -> str:
    """Return ``text`` on one clean line of at most ``width`` characters."""
    line = plain_line(text)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
