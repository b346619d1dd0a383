"""Verify: how much of a search's result is new (SPEC section 2), and how it supports a claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.run_context import RunContext
from domain.asking import Answer, Citation, Evidence, Mode, Standing, Support
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved, Resolution, SupportScored
from retrieval.terms import STOP, pieces, plain_words


def fingerprint(texts: Iterable[str], query: str) -> frozenset[str]:
    """Return the words of a payload without stop words and words of the query."""
    text_pieces = {piece for text in texts for piece in _pieces(text)}
    return frozenset(text_pieces - STOP - set(_pieces(query)))


def _pieces(text: str) -> list[str]:
    return [piece for word in plain_words(text) for piece in pieces(word)]


def payload_words(retrieval: EvidenceRetrieved) -> frozenset[str]:
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


# Support: scores how well evidence supports a claim, and records the scores.

Scores = Mapping[str, float]
"""How well each piece of evidence supports a claim, in [0, 1], by ref."""


def score(
    context: RunContext, number: int, claim: str, evidence: Sequence[Evidence | Citation]
) -> Scores:
    """Score evidence against a claim in round ``number``; recorded scores are used first.

    Raises:
        ReplayMiss: a replay's record has no such scores.
    """
    if not evidence:
        return {}
    known = context.recorder.replay_source.support(claim)
    if known is None:
        values = context.memory.support(claim, [piece.full_text for piece in evidence])
        pairs = zip(evidence, values, strict=True)
        scores = tuple(Support(ref=piece.ref, score=scored) for piece, scored in pairs)
        known = SupportScored(round=number, claim=claim, scores=scores)
    context.recorder.add(known.model_copy(update={"round": number}))
    return {support.ref: support.score for support in known.scores}


def bearing(claim: Resolution, scores: Scores, least: float) -> Resolution:
    """Return the claim with only those refs whose score reaches ``least``; unscored are dropped."""
    refs = tuple(ref for ref in claim.refs if scores.get(ref, 0.0) >= least)
    return claim.model_copy(update={"refs": refs})


def supported(answer: Answer, scores: Scores, settings: AskSettings) -> Answer:
    """Return the answer with the support of its citations, and its standing.

    Args:
        answer: without support.
        scores: of its citations; some may lack one.
        settings: the thresholds of weak and of no support.
    """
    cited = tuple(
        piece.model_copy(update={"support": scores.get(piece.ref)}) for piece in answer.citations
    )
    best = max(scores.values(), default=None)
    if best is None:
        standing = None if answer.citations or answer.option is None else Standing.GUESS
    elif best >= settings.weak_support:
        standing = Standing.SUPPORTED
    else:
        guessed = answer.option is not None and best < settings.bearing
        standing = Standing.GUESS if guessed else Standing.WEAK
    return answer.model_copy(update={"citations": cited, "standing": standing})
