"""Support: scores how well evidence supports a claim, and records the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.run_context import RunContext
from domain.asking import Answer, Citation, Evidence, Standing, Support
from domain.settings import AskSettings
from domain.trajectory import Resolution, SupportScored

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
