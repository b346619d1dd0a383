"""Conclusions by rule, from the evidence of the ledger and the scores of the searches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from string import ascii_uppercase

from agent.reasoners.port import CompletedSearch, Conclusion, DecisionContext
from agent.reasoners.question_parts import AGAINST, EVENT, answer_claim
from domain.asking import Evidence, Subtask, SubtaskState
from domain.search import Extract
from domain.trajectory import EvidenceRetrieved

QUOTED = 3
"""Pieces of evidence that an answer quotes at most."""
NEAR_BEST = 0.75
"""A quotation must score at least this share of the best one."""
TOP_CLIPS = 50
"""Clips that count for an option: repeated support counts, a long tail does not."""
SUPPORTS = 0.1
"""Support from which evidence is cited before what only ranks high."""
LEAN = 0.5
"""How much the logarithm of an option's share counts where evidence is put in order."""
LEAST_SHARE, LEAST_SCORE = 1e-3, 1e-3
NOTHING = "nothing close was found."
"""What an answer says of a video of several in which nothing is close."""
ALL = ""
"""Instead of a video: all that were searched, as one."""

Held = Mapping[str, Evidence]
"""The evidence of the ledger, by ref."""
Scores = Mapping[str, tuple[float, ...]]
"""How strongly each piece of evidence supports each option, by ref."""


def quotable(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the best pieces of evidence, at most three, close to the best; best first."""
    ranked = sorted(evidence, key=lambda e: (-e.score, e.span.start_ms))
    return [e for e in ranked if e.score >= NEAR_BEST * ranked[0].score][:QUOTED]


def by_options(decision: DecisionContext) -> Conclusion:
    """Choose the option with the largest share of the support; the first without evidence."""
    count, held = len(decision.question.options), {e.ref: e for e in decision.held}
    scores = weights(decision.searches, held, count)
    if not scores:
        return Conclusion(text="A", option="A", share=1 / count)
    totals = [_soft_maximum(_by_clip(scores, held, n)) for n in range(count)]
    shares = shares_of(totals)
    best = shares.index(max(shares))
    clips = _by_clip(scores, held, best)
    letter = ascii_uppercase[best]
    return Conclusion(
        text=letter,
        option=letter,
        refs=_supporting(decision, held, letter)
        or _near_best([held[ref] for ref in [*clips][:QUOTED]]),
        ranked=_ranked(scores, held, shares),
        share=shares_of([total / _temperature(decision) for total in totals])[best],
    )


def _temperature(decision: DecisionContext) -> float:
    """Return the divisor that turns the scores of these searches into logits."""
    return max(search.found.temperature for search in decision.searches)


def _supporting(decision: DecisionContext, held: Held, letter: str) -> tuple[str, ...]:
    """Return the evidence found to support an option, at most three pieces, best first."""
    claim = answer_claim(decision.question, letter)
    scored = [
        support for event in decision.support if event.claim == claim for support in event.scores
    ]
    known = {
        support.ref: support.score
        for support in scored
        if support.ref in held and support.score >= SUPPORTS
    }
    return tuple(sorted(known, key=lambda ref: -known[ref])[:QUOTED])


def _near_best(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return the refs of evidence scored close to the best, in the given order."""
    best = max(e.score for e in evidence)
    return tuple(e.ref for e in evidence if e.score >= NEAR_BEST * best)


def weights(searches: Sequence[CompletedSearch], held: Held, count: int) -> Scores:
    """Return how strongly what was found supports each option, each piece at its best.

    Evidence that a person put in place of a search's result has no scores: it counts for the
    options of that search as the strongest piece does, less where its own score is low.
    """
    known: dict[str, tuple[float, ...]] = {}
    for search in searches:
        search_refs = {e.ref for e in search.found.evidence} & held.keys()
        for weighed in search.found.weighed:
            if weighed.ref in search_refs:
                known[weighed.ref] = _higher(known.get(weighed.ref, weighed.scores), weighed.scores)
    all_scores = [score for scores in known.values() for score in scores]
    span = (min(all_scores, default=0.0), max(all_scores, default=0.0))
    unscored = [
        (piece, search.found.options)
        for search in searches
        for piece in search.found.evidence
        if piece.ref in held and piece.ref not in known and not piece.ref.startswith("s")
    ]
    return known | {e.ref: _assumed(e, letters, span, count) for e, letters in unscored}


def _assumed(
    piece: Evidence, letters: Sequence[str], span: tuple[float, float], count: int
) -> tuple[float, ...]:
    """Return scores for an unscored piece, between the lowest and highest known score."""
    least, most = span
    score = max(least, most + math.log(max(LEAST_SCORE, piece.score)))
    chosen = letters or ascii_uppercase
    return tuple(score if letter in chosen else least for letter in ascii_uppercase[:count])


def _higher(first: tuple[float, ...], second: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(max(pair) for pair in zip(first, second, strict=True))


def _by_clip(scores: Scores, held: Held, option: int) -> dict[str, float]:
    """Return the score of each clip's best piece for an option, best first."""
    return _best_of_clips(held, {ref: each[option] for ref, each in scores.items()})


def _best_of_clips(held: Held, scores: Mapping[str, float]) -> dict[str, float]:
    best_refs: dict[object, str] = {}
    for ref in sorted(scores, key=lambda ref: (-scores[ref], held[ref].span.start_ms, ref)):
        piece = held[ref]
        best_refs.setdefault(ref if piece.clip is None else (piece.video, piece.clip), ref)
    return {ref: scores[ref] for ref in best_refs.values()}


def _soft_maximum(scores: Mapping[str, float]) -> float:
    """Return the log-sum-exp of the highest scores."""
    best = list(scores.values())[:TOP_CLIPS]
    return best[0] + math.log(sum(math.exp(score - best[0]) for score in best))


def shares_of(scores: Sequence[float]) -> list[float]:
    """Return positive shares that sum to 1: the softmax of the scores."""
    weight = [math.exp(score - max(scores)) for score in scores]
    return [value / sum(weight) for value in weight]


def _ranked(scores: Scores, held: Held, shares: Sequence[float]) -> tuple[str, ...]:
    """Return the refs by their support of the likely options, best first, one per clip."""
    lean = [LEAN * math.log(max(share, LEAST_SHARE)) for share in shares]
    best = {
        ref: max(score + more for score, more in zip(each, lean, strict=True))
        for ref, each in scores.items()
    }
    return tuple(_best_of_clips(held, best))


def by_quotation(decision: DecisionContext) -> Conclusion:
    """Quote the answer to each part; "not in memory" where nothing is close to any.

    Where few videos were searched, it is quoted of each of them, after its title.
    """
    held = {e.ref: e for e in decision.held}
    parts = [
        found_for(task, decision.searches) for task in answering_subtasks(decision.ledger.subtasks)
    ]
    ranked = _best_first(e for part in parts for search in part for e in search.evidence)
    order = tuple(e.ref for e in ranked if e.ref in held)
    found = quote_parts(parts, held, searched_videos(decision))
    if found is None:
        return Conclusion(text="", not_in_memory=True, ranked=order)
    text, refs = found
    return Conclusion(text=text, refs=refs, ranked=order)


def quote_parts(
    parts: Sequence[Sequence[EvidenceRetrieved]], held: Held, titles: Mapping[str, str]
) -> tuple[str, tuple[str, ...]] | None:
    """Return what answers parts of a question, and its refs; None where nothing is close to any.

    Args:
        parts: the searches for each part.
        held: what may be quoted, by ref.
        titles: of the videos that are each quoted after their title; empty: quoted as one.
    """
    quotes = {
        video: [quote for part in parts if (quote := quote_of(part, held, video))]
        for video in titles or (ALL,)
    }
    if not any(quotes.values()):
        return None
    cited = dict.fromkeys(ref for each in quotes.values() for one in each for ref in one.refs)
    texts = {video: " ".join(dict.fromkeys(q.text for q in each)) for video, each in quotes.items()}
    return under_titles(titles, texts) if titles else texts[ALL], tuple(cited)


def searched_videos(decision: DecisionContext) -> dict[str, str]:
    """Return the titles of the few videos that are answered for one by one, by id; else none."""
    return {q.video: q.title for search in decision.searches for q in search.found.by_video}


def under_titles(titles: Mapping[str, str], texts: Mapping[str, str]) -> str:
    """Return what answers for each video, a line each, after its title."""
    return "\n".join(f"{title}: {texts[video] or NOTHING}" for video, title in titles.items())


def by_events(decision: DecisionContext) -> Conclusion | None:
    """Answer a broad question with the summary of the best event of each of a few videos.

    None where they were not searched one by one, or no event is close in any.
    """
    held = {e.ref: e for e in decision.held}
    titles = searched_videos(decision)
    best: dict[str, Evidence] = {}
    for search in decision.searches:
        for quote in search.found.by_video:
            if quote.event in held:
                best.setdefault(quote.video, held[quote.event])
    if not best:
        return None
    text = under_titles(titles, {one: best[one].text if one in best else "" for one in titles})
    refs = tuple(best[video].ref for video in titles if video in best)
    more = (e.ref for e in _best_first(decision.held) if e.ref not in refs)
    return Conclusion(text=text, refs=refs, ranked=(*refs, *more))


def by_event(decision: DecisionContext, event: Evidence) -> Conclusion:
    """Answer a broad question with the event's summary."""
    order = [event.ref, *(e.ref for e in _best_first(decision.held) if e.ref != event.ref)]
    return Conclusion(text=event.text, refs=(event.ref,), ranked=tuple(order))


def answering_subtasks(subtasks: Sequence[Subtask]) -> list[Subtask]:
    """Return the subtasks whose findings answer: not lead-ups to a cause, nor counter-evidence."""
    alive = [task for task in subtasks if task.state is not SubtaskState.ABANDONED]
    return [task for task in alive if not task.text.startswith((EVENT, AGAINST))] or alive


def found_for(task: Subtask, searches: Sequence[CompletedSearch]) -> list[EvidenceRetrieved]:
    """Return the searches for a subtask that found something close."""
    results = (search.found for search in searches if search.subtask == task.id)
    return [result for result in results if not result.nothing_close]


def quote_of(searches: Iterable[EvidenceRetrieved], held: Held, video: str = ALL) -> Extract | None:
    """Return the sentence that answers, else the best line; None if nothing close was found.

    With a video, only what is in it counts.
    """
    offered = _quotes if video == ALL else partial(_quotes_of_video, video)
    quotes = [quote for search in searches for quote in offered(search, held)]
    return max(quotes, key=lambda quote: quote.score, default=None)


def _quotes(retrieval: EvidenceRetrieved, held: Held) -> list[Extract]:
    """Return what a search offers to quote, its own extract first."""
    return _offered(retrieval.extract, _lines(retrieval, held), held)


def _quotes_of_video(video: str, retrieval: EvidenceRetrieved, held: Held) -> list[Extract]:
    """Return what a search offers to quote of a video.

    Of a search that was not made video by video only lines close to its best one count.
    """
    lines = _lines(retrieval, held)
    own = next((one for one in retrieval.by_video if one.video == video), None)
    if own is None:
        least = NEAR_BEST * max((e.score for e in lines), default=0.0)
        return _offered(None, [e for e in lines if e.video == video and e.score >= least], held)
    return _offered(own.extract, [e for e in lines if e.video == video and own.close], held)


def _lines(retrieval: EvidenceRetrieved, held: Held) -> list[Evidence]:
    return [e for e in retrieval.evidence if e.ref in held and not e.ref.startswith("s")]


def _offered(extract: Extract | None, lines: Sequence[Evidence], held: Held) -> list[Extract]:
    if extract is not None and held.keys() >= set(extract.refs):
        return [extract]
    best = max(lines, key=lambda e: e.score, default=None)
    return [] if best is None else [_line(best)]


def _line(piece: Evidence) -> Extract:
    return Extract(
        text=piece.text, refs=(piece.ref,), video=piece.video, span=piece.span, score=piece.score
    )


def _best_first(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return lines and images by score, each once; ties keep their order."""
    by_ref: dict[str, Evidence] = {}
    for piece in sorted(evidence, key=lambda e: -e.score):
        if not piece.ref.startswith("s"):
            by_ref.setdefault(piece.ref, piece)
    return tuple(by_ref.values())
