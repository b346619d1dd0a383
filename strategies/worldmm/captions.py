"""Captions of the finest windows without a language model: the lines in them; pure."""

from __future__ import annotations

from collections.abc import Iterable

from domain.base import Frozen
from domain.time import TimeSpan
from retrieval.extracts import BREAK


class SeenLine(Frozen):
    """A line of a video: what was said, with its speaker, or seen, with ``speaker`` empty."""

    span: TimeSpan
    text: str
    speaker: str = ""

    @property
    def sentence(self) -> str:
        """The text, with who said it."""
        text = " ".join(self.text.split())
        return f"{self.speaker}: {text}" if self.speaker else text


def finest_caption(lines: Iterable[SeenLine]) -> str:
    """Return the caption of a window of the finest scale: its lines in order, each once."""
    ordered = sorted(lines, key=lambda line: (line.span.start_ms, line.span.end_ms))
    return BREAK.join(dict.fromkeys(line.sentence for line in ordered if line.text.strip()))
