"""Verify: how much of a search's result is new (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.asking import Mode
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved
from retrieval.terms import STOP, pieces, plain_words


def fingerprint(texts: Iterable[str], query: str) -> frozenset[str]:
    """Return the words of a payload without stop words and words of the query."""
    text_pieces = {piece for text in texts for piece in _pieces(text)}
    return frozenset(text_pieces - STOP - set(_pieces(query)))


def _pieces(text: str) -> list[str]:
    return [piece for word in plain_words(text) for piece in pieces(word)]


def payload_words(retrieval: EvidenceRetrieved) -> frozenset[str]:
    """Return the fingerprint of one retrieval."""
    return fingerprint((e.text for e in retrieval.evidence), retrieval.query)


def increment(retrieval: EvidenceRetrieved, earlier: Sequence[EvidenceRetrieved]) -> float:
    """Return the share of the payload's words that no earlier retrieval had, in [0, 1].

    A payload without words gives 0.
    """
    words = payload_words(retrieval)
    known = (
        frozenset().union(*(payload_words(previous) for previous in earlier))
        if earlier
        else frozenset()
    )
    return len(words - known) / len(words) if words else 0.0


def is_low(
    retrieval: EvidenceRetrieved,
    earlier: Sequence[EvidenceRetrieved],
    share: float,
    settings: AskSettings,
) -> bool:
    """Check whether a retrieval found too little that is new.

    The threshold is higher where the focus was seen before. The first VIDEO and the first KEYFRAME
    retrieval with content are exempt: they look closer at what was only summarised before.
    """
    closer = retrieval.mode in (Mode.VIDEO, Mode.KEYFRAME)
    first = not any(previous.mode is retrieval.mode and previous.evidence for previous in earlier)
    if closer and first and retrieval.evidence:
        return False
    seen = retrieval.focus is not None and any(
        previous.focus == retrieval.focus for previous in earlier
    )
    return share < (settings.low_increment_seen if seen else settings.low_increment)
