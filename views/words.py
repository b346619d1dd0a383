"""Words from outside as plain lines: nothing in them steers a terminal or hides."""

from __future__ import annotations


def clean(text: str) -> str:
    """``text`` on one line, without characters that could steer a terminal."""
    return steady(text).strip()


def steady(text: str) -> str:
    """``text`` with a space for all that cannot be seen, and ``?`` for half a character."""
    return "".join(c if c.isprintable() else " " for c in whole(text))


def whole(text: str) -> str:
    """Give ``text`` with ``?`` for each half of a character that has no other half."""
    return text.encode("utf-8", "replace").decode("utf-8")


def short(text: str, width: int = 120) -> str:
    """``text`` on one clean line of at most ``width`` characters."""
    line = clean(text)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
