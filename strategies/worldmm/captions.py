"""Windows of the time scales, and captions and triples of them without a language model; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pydantic import NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.memories import Line, MemorySource
from domain.sentences import StatedFacts
from domain.time import TimeSpan
from models.sentences import SentenceParser
from retrieval.chapters import BREAK, caption_sentences
from retrieval.english import Known, joined_facts, stated_facts
from strategies.worldmm.settings import SECOND

# How what WorldMM builds is stored: the levels of nodes and relations.

SEMANTIC = "semantic"
"""The level of relations that last."""
MENTIONED = "is mentioned"
"""The predicate that joins an entity, as both ends, to a caption that states nothing of it."""


def level_of(scale_ms: int) -> str:
    return f"{scale_ms // SECOND} s"


# Windows of the time scales: without overlap, from the start of the video; pure.


class ScaleWindow(Frozen):
    """Window ``number`` (from 0) of a scale: ``[number * scale_ms, (number + 1) * scale_ms)``."""

    scale_ms: PositiveInt
    number: NonNegativeInt

    @property
    def span(self) -> TimeSpan:
        """When it is, as if the video went on to its end."""
        return TimeSpan.of(self.number * self.scale_ms, self.end_ms)

    @property
    def end_ms(self) -> int:
        return (self.number + 1) * self.scale_ms


def window_at(scale_ms: int, time_ms: int) -> ScaleWindow:
    return ScaleWindow(scale_ms=scale_ms, number=time_ms // scale_ms)


def due_windows(
    scales_ms: Sequence[int],
    times_ms: Iterable[int],
    built_ms: int,
    seen_ms: int,
    *,
    ended: bool = False,
) -> tuple[ScaleWindow, ...]:
    """Return the windows that have become complete since the last time.

    Args:
        scales_ms: the scales of the video.
        times_ms: when something was seen or said, at least all times whose windows are due: windows
            in which there was nothing are not due.
        built_ms: through when windows were built already.
        seen_ms: through when the video is known.
        ended: nothing follows, so that the last windows are complete as they are.

    Returns:
        In the order in which they become complete, finer ones first, so that what a coarser one
        summarises is there.
    """
    times = tuple(times_ms)
    due = {
        window
        for scale in scales_ms
        for window in (window_at(scale, time) for time in times)
        if is_due(window, built_ms, seen_ms, ended=ended)
    }
    return tuple(sorted(due, key=lambda window: (window.end_ms, window.scale_ms)))


def is_due(window: ScaleWindow, built_ms: int, seen_ms: int, *, ended: bool = False) -> bool:
    """Check whether a window is complete at ``seen_ms`` and was not at ``built_ms``.

    With ``ended``, what has begun is complete.
    """
    if window.end_ms <= built_ms:
        return False
    return window.end_ms <= seen_ms or (ended and window.span.start_ms < seen_ms)


def summarised_scale(scales_ms: Sequence[int], scale_ms: int) -> int | None:
    """Return the scale whose captions a coarser one summarises; None for the finest.

    It is the coarsest finer one whose windows do not cross the windows' bounds: 10 min are made of
    30 s, since 3 min do not divide them.
    """
    finer = [one for one in scales_ms if one < scale_ms and scale_ms % one == 0]
    return max(finer, default=None)


def finer_windows(window: ScaleWindow, scale_ms: int) -> Iterator[ScaleWindow]:
    """Yield the windows of a finer scale that lie in a window, in order."""
    first, after = window.span.start_ms // scale_ms, window.end_ms // scale_ms
    for number in range(first, after):
        yield ScaleWindow(scale_ms=scale_ms, number=number)


# Captions of the finest windows without a language model: the lines in them; pure.


def speaker_of(line: Line) -> str:
    """Return who says a line; "" where it is not said."""
    return (line.speaker or "") if line.source is MemorySource.SAID else ""


def finest_caption(lines: Iterable[Line]) -> str:
    """Return the caption of a window of the finest scale: its lines in order, each once."""
    ordered = sorted(lines, key=lambda line: (line.span.start_ms, line.span.end_ms))
    texts = ((speaker_of(line), " ".join(line.text.split())) for line in ordered)
    return BREAK.join(
        dict.fromkeys(f"{who}: {text}" if who else text for who, text in texts if text)
    )


# Entities and triples of captions without a language model.


def extract(parser: SentenceParser, captions: Sequence[str], known: Known) -> list[StatedFacts]:
    """Return the entities and triples of each caption.

    Args:
        captions: sentences; one that begins with a name and a colon is said by that person.
        known: who is known of the video.

    Raises:
        WeightsMissing: the parser's files are not there.
    """
    sentences = [caption_sentences(caption) for caption in captions]
    # Captions of coarser scales quote those of finer ones: each sentence is read once.
    distinct = list(dict.fromkeys(one for caption in sentences for one in caption))
    facts = dict(zip(distinct, stated_facts(parser, distinct, known), strict=True))
    return [joined_facts(facts[one] for one in caption) for caption in sentences]
