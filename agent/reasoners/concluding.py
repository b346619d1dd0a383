"""Conclusions by rule, from the evidence of the ledger and the scores of the searches."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from string import ascii_uppercase

from agent.harness.constrain import is_asked, words
from agent.reasoners.port import CompletedSearch, Conclusion, DecisionContext
from domain.asking import (
    QUOTED,
    Evidence,
    Mode,
    Question,
    Quote,
    Subtask,
    SubtaskState,
    Support,
    answering,
    quote_of,
)
from domain.ledger import SubtaskDraft
from domain.trajectory import EvidenceRetrieved
from retrieval.heuristics.questions import statement

# Questions analysed by rules: their kind, their parts, and their parts as statements.

SUBTASKS = 5
"""Parts that a question has at most, unless settings say otherwise."""
_ASK = r"what|who|whom|whose|where|when|why|how|which"
_DO = r"is|are|was|were|did|does|do|has|have|had|can|could|will|would|should"
_YES_NO = re.compile(rf"(?:{_DO})(?:n't|n’t)?\s+(.+)", re.I | re.S)
_OPENING = re.compile(
    rf"(?:(?:in|on|at|of|to|for|with|from|by|about)\s+)?(?:{_ASK})\b"
    rf"(?:\s+(?:many|much|long|often|far|old|kind\s+of|kinds\s+of|sort\s+of|type\s+of))?"
    rf"(?:\s+(?:{_DO})\b(?:n't|n’t)?)?\s*",
    re.I,
)
_WHY = re.compile(r"(?:why|for what reason|what (?:is|was) the reason|what causes?d?)\b", re.I)
_PARTS = re.compile(rf"(?:[,;]|(?<!\s))\s++and\s++(?=(?:{_ASK})\b)|\?\s++(?=\w)", re.I)
_BROAD = re.compile(
    r"\b(?:about|topic|subject|summar\w*|overall|mainly|main|gist|overview|in general)\b", re.I
)
_LOOKS = re.compile(
    r"\b(?:colou?r|wear\w*|look(?:s|ed)? like|dressed|shown|screen|slide|logo|written|sign|caption"
    r"|background|picture|image|visible)\b",
    re.I,
)


class QuestionKind(StrEnum):
    """What a question is after, which decides how it is searched."""

    BROAD = "broad"
    CAUSE = "cause"
    LOOKS = "looks"
    FACT = "fact"


def kind_of(text: str) -> QuestionKind:
    if _WHY.search(text):
        return QuestionKind.CAUSE
    if _LOOKS.search(text):
        return QuestionKind.LOOKS
    return QuestionKind.BROAD if _BROAD.search(text) else QuestionKind.FACT


def as_statement(text: str) -> str:
    """Turn a question into a statement with a gap: ``Why did Ann leave?`` is ``Ann leave``."""
    statement_ = text.strip().rstrip("?？.! ").strip()
    yes_no = _YES_NO.fullmatch(statement_)
    bare = yes_no.group(1) if yes_no else _OPENING.sub("", statement_, count=1)
    return bare.strip() or statement_


def decompose(question: str, options: tuple[str, ...]) -> tuple[SubtaskDraft, ...]:
    """Split a question into subtasks by rule (SPEC section 2, Plan).

    One subtask for each option, at most ``SUBTASKS``: with more options, several share a subtask.
    """
    if options:
        # Groups of them that are as even as possible.
        groups = min(SUBTASKS, len(options))
        starts = [len(options) * i // groups for i in range(groups + 1)]
        each = [tuple(ascii_uppercase[start:stop]) for start, stop in pairwise(starts)]
        return tuple(SubtaskDraft(text=option_text(options, one), options=one) for one in each)
    # A question may ask several things.
    parts = [part.strip() for part in _PARTS.split(question.strip()) if words(part)]
    if len(parts) > 1:
        return tuple(SubtaskDraft(text=part) for part in parts)
    return (SubtaskDraft(text=question),)


def option_text(options: Sequence[str], letters: Sequence[str]) -> str:
    """Return the text of a subtask that looks for evidence for some options."""
    chosen = (f"{letter}: {options[ascii_uppercase.index(letter)]}" for letter in letters)
    return f"Evidence for {'; '.join(chosen)}"


def has_rule_wording(task: Subtask, question: Question) -> bool:
    """Check whether a subtask still has the wording that the rules gave it."""
    drafts = (option_text(question.options, task.options),) if task.options else ()
    parts = decompose(question.text, ())
    return task.text in (*drafts, question.text, *(part.text for part in parts))


def query_of(task: Subtask, question: Question) -> str:
    """Return a subtask as a query; for options, the question restated with each of them."""
    if not task.options or not has_rule_wording(task, question):
        return as_query(task.text)
    chosen = (question.options[ascii_uppercase.index(letter)] for letter in task.options)
    stated = [statement(question.text, option) for option in chosen]
    restated = "; ".join(
        as_query(one) if is_asked(one) or len(words(one)) < 2 else one for one in stated
    )
    return restated if words(restated) != words(task.text) else f"the video tells {restated}"


def ranking_text_of(task: Subtask, question: Question) -> str:
    """Return the text that a subtask's search is ranked by."""
    if not has_rule_wording(task, question):
        return query_of(task, question)
    # Where the query only restates the question, the question ranks better: a statement has a gap.
    return question.text if task.options else task.text


def answer_claim(question: Question, option: str | None) -> str:
    """Return the claim that an answer's citations must support."""
    if option is None:
        # An open answer is quoted from its citations or worded by a model: these must bear on the
        # question.
        return question.text
    return statement(question.text, question.options[ascii_uppercase.index(option)])


def as_query(text: str) -> str:
    """Turn a subtask into a query that the guard accepts: a statement of at least two words."""
    statement_ = as_statement(text)
    query = statement_ if len(words(statement_)) >= 2 else f"{statement_} in the video"
    is_copy = is_asked(query) or words(query) == words(text)
    return f"the video tells {query.rstrip('?')}" if is_copy else query


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


def by_options(decision: DecisionContext) -> Conclusion:
    """Choose the option with the largest share of the support; the first without evidence."""
    count, held = len(decision.question.options), {e.ref: e for e in decision.held}
    scores = weights(decision.searches, held, count)
    if not scores:
        return Conclusion(text="A", option="A", share=1 / count)
    totals = [_soft_maximum(_by_clip(scores, held, n)) for n in range(count)]
    shares = shares_of(totals)
    best = shares.index(max(shares))
    clips = [ref for ref in _by_clip(scores, held, best) if ref in held]
    letter = ascii_uppercase[best]
    # The evidence found to support an option, at most three pieces, best first.
    claim = answer_claim(decision.question, letter)
    scored = [
        support for event in decision.support if event.claim == claim for support in event.scores
    ]
    known = {
        support.ref: support.score
        for support in scored
        if support.ref in held and support.score >= SUPPORTS
    }
    # Pieces scored close to the best; and all pieces by their support of the likely options.
    near = [held[ref] for ref in clips[:QUOTED]]
    least = NEAR_BEST * max((e.score for e in near), default=0.0)
    lean = [LEAN * math.log(max(share, LEAST_SHARE)) for share in shares]
    merits = {
        ref: max(score + more for score, more in zip(each, lean, strict=True))
        for ref, each in scores.items()
        if ref in held
    }
    return Conclusion(
        text=letter,
        option=letter,
        refs=tuple(sorted(known, key=lambda ref: -known[ref])[:QUOTED])
        or tuple(e.ref for e in near if e.score >= least),
        ranked=tuple(_best_of_clips(held, merits)),
        share=shares_of(
            [
                total / max(search.found.temperature for search in decision.searches)
                for total in totals
            ]
        )[best],
    )


def weights(searches: Sequence[CompletedSearch], held: Held, count: int) -> Scores:
    """Return how strongly what was found supports each option, each piece at its best.

    Pieces count that a search weighed, even if it does not show them.
    """
    known: dict[str, tuple[float, ...]] = {}
    for search in searches:
        shown = {e.ref for e in search.found.evidence}
        for weighed in search.found.weighed:
            if weighed.ref in held or weighed.ref not in shown:
                first = known.get(weighed.ref, weighed.scores)
                known[weighed.ref] = tuple(
                    max(pair) for pair in zip(first, weighed.scores, strict=True)
                )
    all_scores = [score for scores in known.values() for score in scores]
    span = (min(all_scores, default=0.0), max(all_scores, default=0.0))
    # Evidence that a person put in place of a search's result has no scores: it counts for the
    # options of that search as the strongest piece does, less where its own score is low.
    unscored = [
        (piece, search.found.options)
        for search in searches
        if search.found.options or not known  # else it would count for each option alike
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


def _by_clip(scores: Scores, held: Held, option: int) -> dict[str, float]:
    """Return the score of each clip's best piece for an option, best first."""
    return _best_of_clips(held, {ref: each[option] for ref, each in scores.items()})


def _best_of_clips(held: Held, scores: Mapping[str, float]) -> dict[str, float]:
    """Return the score of each clip's best piece, best first; one that is not held is by itself."""
    starts = {ref: held[ref].span.start_ms if ref in held else 0 for ref in scores}
    best_refs: dict[object, str] = {}
    for ref in sorted(scores, key=lambda ref: (-scores[ref], starts[ref], ref)):
        piece = held.get(ref)
        clip = None if piece is None or piece.clip is None else (piece.video, piece.clip)
        best_refs.setdefault(clip or ref, ref)
    return {ref: scores[ref] for ref in best_refs.values()}


def _soft_maximum(scores: Mapping[str, float]) -> float:
    """Return the log-sum-exp of the highest scores."""
    best = list(scores.values())[:TOP_CLIPS]
    return best[0] + math.log(sum(math.exp(score - best[0]) for score in best))


def shares_of(scores: Sequence[float]) -> list[float]:
    """Return positive shares that sum to 1: the softmax of the scores."""
    weight = [math.exp(score - max(scores)) for score in scores]
    return [value / sum(weight) for value in weight]


def by_quotation(decision: DecisionContext) -> Conclusion:
    """Quote the answer to each part; "not in memory" where nothing is close to any.

    Where few videos were searched, it is quoted of each of them, after its title.
    """
    held = {e.ref: e for e in decision.held}
    close = [search for search in decision.searches if not search.found.nothing_close]
    parts = [
        [search.found for search in close if search.subtask == task.id]
        for task in answering_subtasks(decision.ledger.subtasks)
    ]
    # Lines and images by score, each once; ties keep their order.
    evidence = (e for part in parts for search in part for e in search.evidence)
    by_ref: dict[str, Evidence] = {}
    for piece in sorted(evidence, key=lambda e: -e.score):
        if not piece.ref.startswith("s"):
            by_ref.setdefault(piece.ref, piece)
    best = tuple(by_ref.values())
    order = tuple(e.ref for e in best if e.ref in held)
    titles = {q.video: q.title for part in parts for search in part for q in search.by_video}
    chosen = {
        video: list(dict.fromkeys(q for part in parts for q in quotes_for(part, held, video)))
        for video in titles or (ALL,)
    }
    quotes = [quote for each in chosen.values() for quote in each]
    if not quotes:
        return Conclusion(text="", not_in_memory=True, ranked=order)
    texts = {video: " ".join(quote.text for quote in each) for video, each in chosen.items()}
    lines = [f"{title}: {texts[video] or NOTHING}" for video, title in titles.items()]
    # What is cited first is what each quote rests on most.
    firsts = [quote.refs[0] for quote in sorted(quotes, key=lambda quote: -quote.score)]
    refs = tuple(dict.fromkeys([*firsts, *(ref for quote in quotes for ref in quote.refs)]))
    ranked = tuple(dict.fromkeys([*refs, *order]))
    sure = max(quote.score for quote in quotes)
    text = "\n".join(lines) if titles else texts[ALL]
    return Conclusion(text=text, refs=refs, ranked=ranked, sure=sure, support=supports(quotes))


def supports(quotes: Iterable[Quote]) -> tuple[Support, ...]:
    """Return the support by each line of quotes: how likely its quote answers."""
    scores: dict[str, float] = {}
    for quote in quotes:
        for ref in quote.refs:
            scores[ref] = max(scores.get(ref, 0.0), quote.score)
    return tuple(Support(ref=ref, score=score) for ref, score in scores.items())


def quotes_for(
    searches: Sequence[EvidenceRetrieved], held: Held, video: str = ALL
) -> tuple[Quote, ...]:
    """Return what answers a part of a question, in one video or in all as one, best first."""
    quotes: list[Quote] = []
    for search in searches:
        own = [q for one in search.by_video if one.video == video for q in one.quotes]
        offered = search.quotes if video == ALL else own
        quotes += [quote for quote in offered if held.keys() >= set(quote.refs)]
        lines = [e for e in search.evidence if e.ref in held and not e.ref.startswith("s")]
        tool = search.mode not in {*Mode}
        if tool and not search.quotes and lines:
            best = max(lines, key=lambda e: e.score)
            quotes.append(quote_of(best, best.text, best.score))
    # A strategy's tool says itself whether anything is close, on a scale of its own: its best quote
    # counts, or its best line.
    by_tools = any(search.mode not in {*Mode} for search in searches)
    nearest = sorted(quotes, key=lambda quote: -quote.score)[: int(by_tools)]
    return answering(quotes) or tuple(nearest)


def answering_subtasks(subtasks: Sequence[Subtask]) -> list[Subtask]:
    return [task for task in subtasks if task.state is not SubtaskState.ABANDONED]
