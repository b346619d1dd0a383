"""Concluding by rule, from the evidence of the ledger and what the searches said of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase

from agent.reasoners.port import CompletedSearch, Conclusion, DecisionContext
from agent.reasoners.question_parts import AGAINST, EVENT, answer_claim
from domain.asking import Evidence, Subtask, SubtaskState
from domain.ranking import Extract
from domain.trajectory import EvidenceRetrieved

QUOTED = 3
"""Pieces of evidence that an answer quotes at most."""
NEAR_BEST = 0.75
"""A quotation must score at least this share of the best one."""
TOP_CLIPS = 50
"""Clips that have a say for an option: repeated support counts, a long tail does not."""
SUPPORTS = 0.1
"""Support from which evidence is cited before what only ranks high."""
LEAN = 0.5
"""How much the logarithm of an option's share counts where evidence is put in order."""
LEAST_SHARE, LEAST_SCORE = 1e-3, 1e-3

Held = Mapping[str, Evidence]
"""The evidence of the ledger, by ref."""
Scores = Mapping[str, tuple[float, ...]]
"""How strongly each piece of evidence speaks for each option, by ref."""


def quotable(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The best pieces of evidence, at most three, none far behind the best; best first."""
    ranked = sorted(evidence, key=lambda e: (-e.score, e.span.start_ms))
    return [e for e in ranked if e.score >= NEAR_BEST * ranked[0].score][:QUOTED]


def by_options(turn: DecisionContext) -> Conclusion:
    """The option with the largest share of the support; the first where memory says nothing."""
    count, held = len(turn.question.options), {e.ref: e for e in turn.held}
    scores = weights(turn.searches, held, count)
    if not scores:
        return Conclusion(text="A", option="A", share=1 / count)
    totals = [_soft_maximum(_by_clip(scores, held, n)) for n in range(count)]
    shares = shares_of(totals)
    best = shares.index(max(shares))
    told = _by_clip(scores, held, best)
    letter = ascii_uppercase[best]
    return Conclusion(
        text=letter,
        option=letter,
        refs=_supporting(turn, held, letter) or _near_best([held[ref] for ref in [*told][:QUOTED]]),
        ranked=_ranked(scores, held, shares),
        share=shares_of([total / _temperature(turn) for total in totals])[best],
    )


def _temperature(turn: DecisionContext) -> float:
    """What the scores of these searches are divided by to be logits."""
    return max(search.found.temperature for search in turn.searches)


def _supporting(turn: DecisionContext, held: Held, letter: str) -> tuple[str, ...]:
    """The evidence that was found to support an option, at most three pieces, best first."""
    claim = answer_claim(turn.question, letter)
    scored = [one for event in turn.support if event.claim == claim for one in event.scores]
    known = {one.ref: one.score for one in scored if one.ref in held and one.score >= SUPPORTS}
    return tuple(sorted(known, key=lambda ref: -known[ref])[:QUOTED])


def _near_best(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The refs of evidence whose score is not far behind the best, in the order given."""
    best = max(e.score for e in evidence)
    return tuple(e.ref for e in evidence if e.score >= NEAR_BEST * best)


def weights(searches: Sequence[CompletedSearch], held: Held, count: int) -> Scores:
    """How strongly what the searches found speaks for each option, each piece at its best.

    What a person put in the place of a search's finding was not weighed: it counts for the options
    of that search as the strongest piece does, less where its own score is low.
    """
    known: dict[str, tuple[float, ...]] = {}
    for search in searches:
        found = {e.ref for e in search.found.evidence} & held.keys()
        for one in search.found.weighed:
            if one.ref in found:
                known[one.ref] = _higher(known.get(one.ref, one.scores), one.scores)
    every = [score for scores in known.values() for score in scores]
    span = (min(every, default=0.0), max(every, default=0.0))
    put = [
        (piece, search.found.options)
        for search in searches
        for piece in search.found.evidence
        if piece.ref in held and piece.ref not in known and not piece.ref.startswith("s")
    ]
    return known | {e.ref: _assumed(e, letters, span, count) for e, letters in put}


def _assumed(
    piece: Evidence, letters: Sequence[str], span: tuple[float, float], count: int
) -> tuple[float, ...]:
    """The scores of a piece that was not weighed, between the least and the most that is known."""
    least, most = span
    score = max(least, most + math.log(max(LEAST_SCORE, piece.score)))
    chosen = letters or ascii_uppercase
    return tuple(score if letter in chosen else least for letter in ascii_uppercase[:count])


def _higher(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(max(pair) for pair in zip(one, other, strict=True))


def _by_clip(scores: Scores, held: Held, option: int) -> dict[str, float]:
    """The best piece of each clip for an option, best first."""
    return _one_a_clip(held, {ref: each[option] for ref, each in scores.items()})


def _one_a_clip(held: Held, scores: Mapping[str, float]) -> dict[str, float]:
    kept: dict[object, str] = {}
    for ref in sorted(scores, key=lambda ref: (-scores[ref], held[ref].span.start_ms, ref)):
        piece = held[ref]
        kept.setdefault(ref if piece.clip is None else (piece.video, piece.clip), ref)
    return {ref: scores[ref] for ref in kept.values()}


def _soft_maximum(scores: Mapping[str, float]) -> float:
    """The log of the sum of the exponentials of the highest scores: each piece adds to it."""
    best = list(scores.values())[:TOP_CLIPS]
    return best[0] + math.log(sum(math.exp(score - best[0]) for score in best))


def shares_of(scores: Sequence[float]) -> list[float]:
    """Positive shares that sum to 1, falling with the distance from the best."""
    weight = [math.exp(score - max(scores)) for score in scores]
    return [one / sum(weight) for one in weight]


def _ranked(scores: Scores, held: Held, shares: Sequence[float]) -> tuple[str, ...]:
    """The pieces by what they say for the likely options, best first, one a clip."""
    lean = [LEAN * math.log(max(share, LEAST_SHARE)) for share in shares]
    best = {
        ref: max(score + more for score, more in zip(each, lean, strict=True))
        for ref, each in scores.items()
    }
    return tuple(_one_a_clip(held, best))


def by_quotation(turn: DecisionContext) -> Conclusion:
    """What answers each part, quoted; not in memory where nothing is close to any."""
    held = {e.ref: e for e in turn.held}
    parts = [found_for(task, turn.searches) for task in asked(turn.ledger.subtasks)]
    quotes = [quote for part in parts if (quote := quote_of(part, held))]
    ranked = _best_first(e for part in parts for found in part for e in found.evidence)
    order = tuple(e.ref for e in ranked if e.ref in held)
    if not quotes:
        return Conclusion(text="", not_in_memory=True, ranked=order)
    cited = dict.fromkeys(ref for quote in quotes for ref in quote.refs)
    text = " ".join(dict.fromkeys(quote.text for quote in quotes))
    return Conclusion(text=text, refs=tuple(cited), ranked=order)


def by_event(turn: DecisionContext, event: Evidence) -> Conclusion:
    """A broad question is answered with what the event's summary says."""
    order = [event.ref, *(e.ref for e in _best_first(turn.held) if e.ref != event.ref)]
    return Conclusion(text=event.text, refs=(event.ref,), ranked=tuple(order))


def asked(subtasks: Sequence[Subtask]) -> list[Subtask]:
    """The subtasks whose findings answer: not what only leads up to a cause, or speaks against."""
    alive = [task for task in subtasks if task.state is not SubtaskState.ABANDONED]
    return [task for task in alive if not task.text.startswith((EVENT, AGAINST))] or alive


def found_for(task: Subtask, searches: Sequence[CompletedSearch]) -> list[EvidenceRetrieved]:
    """The searches for a subtask that found something close."""
    own = (search.found for search in searches if search.subtask == task.id)
    return [found for found in own if not found.nothing_close]


def quote_of(searches: Iterable[EvidenceRetrieved], held: Held) -> Extract | None:
    """The sentence that answers, else the best line; None where nothing close was found."""
    quotes = [quote for found in searches for quote in _quotes(found, held)]
    return max(quotes, key=lambda quote: quote.score, default=None)


def _quotes(found: EvidenceRetrieved, held: Held) -> list[Extract]:
    """What a search gives to quote, its own extract first."""
    lines = [e for e in found.evidence if e.ref in held and not e.ref.startswith("s")]
    if found.extract is not None and held.keys() >= set(found.extract.refs):
        return [found.extract]
    best = max(lines, key=lambda e: e.score, default=None)
    return [] if best is None else [_line(best)]


def _line(piece: Evidence) -> Extract:
    return Extract(
        text=piece.text, refs=(piece.ref,), video=piece.video, span=piece.span, score=piece.score
    )


def _best_first(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Lines and images by score, each once; of equal scores the first stays first."""
    once: dict[str, Evidence] = {}
    for one in sorted(evidence, key=lambda e: -e.score):
        if not one.ref.startswith("s"):
            once.setdefault(one.ref, one)
    return tuple(once.values())
