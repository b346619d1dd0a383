"""Cuts long utterances into pieces of whole sentences, with times; pure."""

from __future__ import annotations

import re

from domain.media import Utterance
from domain.time import TimeSpan

LINE_WORDS = 40
"""An utterance with more words is cut at its sentence ends."""

_END = re.compile(r"(?:[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+[”’」）]*)\s*")
_LAST = re.compile(r"[.!?…。！？][\"'”’)\]」』]*\s*$")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|Sr|Jr|St|vs|etc|e\.g|i\.e|[A-Z])\.\s*$")


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order; joined they are the text but for white space."""
    found, start = [], 0
    for end in _END.finditer(text):
        if not _ABBREVIATION.search(text[: end.end()]):
            found.append(text[start : end.end()].strip())
            start = end.end()
    found.append(text[start:].strip())
    return [one for one in found if one]


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
