"""Support: how well evidence bears out what is claimed of it, scored and put on record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.run_context import RunContext
from domain.asking import Answer, Citation, Evidence, Standing, Support
from domain.settings import AskSettings
from domain.trajectory import Resolution, SupportScored

Scores = Mapping[str, float]
"""How well each piece of evidence supports a claim, in [0, 1], by ref."""


def score(
    desk: RunContext, number: int, claim: str, evidence: Sequence[Evidence | Citation]
) -> Scores:
    """Score evidence against a claim, in round ``number``; the record's scores where it has them.

    Raises:
        ReplayMiss: it is a replay, and the record has no such scores.
    """
    if not evidence:
        return {}
    known = desk.recorder.past.support(claim)
    if known is None:
        found = desk.memory.support(claim, [piece.text for piece in evidence])
        pairs = zip(evidence, found, strict=True)
        scores = tuple(Support(ref=piece.ref, score=value) for piece, value in pairs)
        known = SupportScored(round=number, claim=claim, scores=scores)
    desk.recorder.add(known.model_copy(update={"round": number}))
    return {one.ref: one.score for one in known.scores}


def bearing(claim: Resolution, scores: Scores, least: float) -> Resolution:
    """The claim with only those refs that bear on it; refs without a score are not taken."""
    refs = tuple(ref for ref in claim.refs if scores.get(ref, 0.0) >= least)
    return claim.model_copy(update={"refs": refs})


def supported(answer: Answer, scores: Scores, settings: AskSettings) -> Answer:
    """The answer with the support of its citations, and how well it stands.

    Args:
        answer: as it is, without support.
        scores: of its citations; those that were not scored have none.
        settings: says which support is weak, and which is none.
    """
    cited = tuple(
        piece.model_copy(update={"support": scores.get(piece.ref)}) for piece in answer.citations
    )
    standing = standing_of(answer, max(scores.values(), default=None), settings)
    return answer.model_copy(update={"citations": cited, "standing": standing})


def standing_of(answer: Answer, best: float | None, settings: AskSettings) -> Standing | None:
    """How well an answer stands with this support at best; None: nothing was scored."""
    if answer.declined:
        return None
    if best is None:
        return None if answer.citations or answer.option is None else Standing.GUESS
    if best >= settings.weak_support:
        return Standing.SUPPORTED
    guessed = answer.option is not None and best < settings.bearing
    return Standing.GUESS if guessed else Standing.WEAK
