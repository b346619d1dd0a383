"""Text from outside as plain lines, without control or hidden characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from views.translation import translate, translate_count

if TYPE_CHECKING:
    from domain.time import TimeSpan

_IRREGULAR = {"person": "people", "piece of evidence": "pieces of evidence"}

WORD_JOINER = "\u2060"
"""Invisible and without width; a web address that contains it is not linked."""

_MARKUP = re.compile(
    r"""(https?://(?=[-.\w]) | www(?=\.) | @(?=[-\w])   # a link
    | :(?=material/|[-+]1:|100:|1234:|(?=[-+\w]++:)[-+\w]*?[a-z_])  # a picture; 0:02:05 is a time
    | (?<!\S)[<>~-](?=(?:->|[->=])(?!\S)))              # an arrow
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What Streamlit transforms even when each of its characters is escaped."""


_PADDED = re.compile(
    r"""(?<![:\d])0(?=\d:\d\d-\d) | (?<=\d-)0(?=\d:\d\d(?!:?\d))
    | (?<=\bat\ )0(?=\d:\d\d(?!:?\d))""",
    re.VERBOSE,
)
"""The zero that ``domain.time.format_clock`` writes before single minutes."""


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
    one, many = f"{{number}} {noun}", f"{{number}} {plural(noun)}"
    return translate_count(one, many, number)


def capitalized(text: str) -> str:
    """Return a text with its first letter as a capital."""
    return text[:1].upper() + text[1:]


def join_words(parts: Sequence[str]) -> str:
    """Join parts of a sentence: ``Ann``, ``Ann and Bob``, ``Ann, Bob and Eve``."""
    if len(parts) < 2:
        return "".join(parts)
    return translate("{first} and {last}").format(first=", ".join(parts[:-1]), last=parts[-1])


def plural(noun: str) -> str:
    """Return the plural of an English noun."""
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def without_markup(text: str) -> str:
    """Return ``text`` so that Streamlit and others make no links, pictures or arrows of it."""
    return _MARKUP.sub(rf"\1{WORD_JOINER}", text)


def format_time(ms: int) -> str:
    """Format milliseconds: ``2:05``, ``1:02:05``, or ``d2 1:00:00`` on the second day."""
    days, seconds = divmod(ms // 1000, 86_400)
    minutes, secs = divmod(seconds, 60)
    hours, rest = divmod(minutes, 60)
    if days:
        return f"d{days + 1} {hours}:{rest:02d}:{secs:02d}"
    return f"{hours}:{rest:02d}:{secs:02d}" if hours else f"{rest}:{secs:02d}"


def format_span(span: TimeSpan) -> str:
    """Format a span as ``2:05-2:09``; an empty one as a single time."""
    start, end = format_time(span.start_ms), format_time(span.end_ms)
    return start if start == end else f"{start}-{end}"


def short_times(text: str) -> str:
    """Return ``text`` with ``0:35`` for the times ``00:35`` of spans, and of moments after "at"."""
    return _PADDED.sub("", text)


def shortened(text: str, width: int = 120) -> str:
    """Return ``text`` on one clean line of at most ``width`` characters."""
    line = plain_line(text)
    return line if len(line) <= width else line[: width - 3].rstrip() + "..."
