"""What a search is for, and what it quotes of memory as an answer."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, NonNegativeInt

from domain.asking import Evidence
from domain.base import Frozen
from domain.time import TimeSpan

STRUCTURE = "structure"
"""The kind of a sentence about how the video is built."""
TOLD = 0.9
"""The score of a sentence about structure that was measured, and that the question asks for."""
LIKELY = 0.6
"""The score up to which it answers only where nobody says anything of it."""
NEAR_BEST = 3.5
"""How much larger the odds of the best quote may be than those of others quoted beside it."""
QUOTED = 3
"""Quotes in an answer, at most."""


class Aim(Frozen):
    """What a search is for, besides its query.

    ``text`` is what the whole view is ranked by; ``options`` are those of the question, against
    which every piece of evidence is weighed; ``letters`` are those that this search is about, empty
    for all. At most ``moments`` of the whole view are listed; ``quotes``: whether sentences of them
    are quoted that may answer. ``asked`` are the texts that may ask how the video is built: the
    question, and what it was split into.
    """

    text: str = Field(min_length=1)
    options: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    moments: NonNegativeInt = 0
    quotes: bool = True
    asked: tuple[str, ...] = ()


class Weighed(Frozen):
    """How strongly one piece of evidence speaks for each option, in the order of the question.

    Sums of standard deviations; only the differences between them have a meaning.
    """

    ref: str
    scores: tuple[float, ...]


class Quote(Frozen):
    """Sentences of memory that may answer an open question, or one about how the video is built.

    ``refs`` are the lines they come from, the first of them the one to cite; ``kind`` is ``said``,
    ``read``, ``seen`` or, for a sentence about structure, ``structure``. ``score`` is how likely it
    answers, in [0, 1].
    """

    text: str
    refs: tuple[str, ...]
    video: str
    span: TimeSpan
    score: float = Field(ge=0, le=1)
    kind: str = "said"


def quote_of(piece: Evidence, text: str, score: float) -> Quote:
    return Quote(text=text, refs=(piece.ref,), video=piece.video, span=piece.span, score=score)


def answering(quotes: Iterable[Quote]) -> tuple[Quote, ...]:
    """Return the quotes that are likely to answer, those near to the best, at most three.

    What is told of structure, because it is asked for, answers alone; what is only likely, where
    nobody says anything of it.
    """
    ranked = sorted(quotes, key=lambda quote: -quote.score)
    told = tuple(quote for quote in ranked if quote.kind == STRUCTURE)
    said = any(quote.kind == "said" and quote.score >= 0.5 for quote in ranked)
    if told and (not said or told[0].score > LIKELY):
        return told
    best = ranked[0].score if ranked else 0.0
    least = max(0.5, best / (best + (1 - best) * NEAR_BEST))
    chosen: list[Quote] = []
    for quote in ranked:
        new = not any(quote.text in other.text or other.text in quote.text for other in chosen)
        if quote.score >= least and new:
            chosen.append(quote)
    return tuple(chosen[:QUOTED])


class VideoQuotes(Frozen):
    """What may answer an open question best in one of several videos; empty if nothing is close."""

    video: str
    title: str
    quotes: tuple[Quote, ...] = ()
