"""Cuts long utterances into pieces of whole sentences, with times; pure."""

from __future__ import annotations

import re

from domain.media import Utterance
from domain.time import TimeSpan

LINE_WORDS = 40
"""An utterance with more words is cut at its sentence ends."""

LONGEST_SENTENCE = 2_000
"""Characters of a sentence at most; a longer one is given in parts, cut between words.

The longest sentences that people say have a few hundred characters. What goes on for longer
without a full stop is a transcript without punctuation, or a text made to keep readers busy.
"""

_END = re.compile(r"((?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s)|[。！？]++[”’」）]*+)\s*+")
_PART = re.compile(
    rf"\S(?:.{{0,{LONGEST_SENTENCE - 2}}}\S)?(?!\S)|\S{{{LONGEST_SENTENCE}}}", re.DOTALL
)
_LAST = re.compile(r"[.!?…。！？][\"'”’)\]」』]*\s*$")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|[A-Z])\.\s*$")
_ABBREVIATED = 8
"""So many characters tell whether a full stop ends an abbreviation."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; joined they are the text but for white space.

    None is longer than ``LONGEST_SENTENCE``.
    """
    found, start = [], 0
    for end in _END.finditer(text):
        stop = end.end(1)
        if not _ABBREVIATION.search(text[max(0, stop - _ABBREVIATED) : stop]):
            found.append(text[start : end.end()])
            start = end.end()
    found.append(text[start:])
    return [part for one in found for part in _PART.findall(one)]


def ends_sentence(text: str) -> bool:
    """Whether a text ends where a sentence does."""
    return bool(_LAST.search(text)) and not _ABBREVIATION.search(text)


def pieces(said: Utterance) -> list[tuple[str, TimeSpan]]:
    """An utterance as lines of at most ``LINE_WORDS`` words where sentence ends allow it.

    The times of a piece are shared out by its letters, since speech runs evenly enough.
    """
    text = said.text.strip()
    if len(text.split()) <= LINE_WORDS:
        return [(text, said.span)] if text else []
    lines = _fill(sentences(text))
    return list(zip(lines, _share(said.span, [len(line) for line in lines]), strict=True))


def _fill(parts: list[str]) -> list[str]:
    lines: list[str] = []
    for part in parts:
        joined = f"{lines[-1]} {part}" if lines else part
        if lines and len(joined.split()) <= LINE_WORDS:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def _share(span: TimeSpan, lengths: list[int]) -> list[TimeSpan]:
    total, done, spans = sum(lengths), 0, []
    for length in lengths:
        start = span.start_ms + span.length_ms * done // total
        done += length
        spans.append(TimeSpan.of(start, span.start_ms + span.length_ms * done // total))
    return spans
