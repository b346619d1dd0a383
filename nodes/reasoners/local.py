"""The reasoner without a language model: rules decide, and answers quote memory.

Deterministic: the same memory and question give the same decisions, whatever the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from domain.asking import Action, Evidence, Mode, Question, Subtask
from domain.ledger import Draft, Edits
from domain.ranking import Extract, OptionSupport, Ranking
from domain.skills import policy_of
from domain.trajectory import Neighbour, Resolution
from domain.view import MemoryView
from nodes.reasoners.port import Assessment, Conclusion, Turn
from nodes.reasoners.wording import Kind, as_query, decompose, kind_of, several

NOTE = (
    "Answered without a language model: the text is quoted from memory, not phrased as an answer."
)
QUOTED = 3
"""Pieces of evidence that an answer quotes at most."""
NEAR_BEST = 0.75
"""A quotation must score at least this share of the best one."""
MOMENTS = 20
CAUSAL = frozenset({"causes", "enables", "requires", "prevents"})


class Ranker(Protocol):
    """Ranks all moments of a view by a question (``memory.retrieval.Retrievers``)."""

    def rank(self, view: MemoryView, question: Question, limit: int = 10) -> Ranking:
        """The moments, best first, and how they support the options."""


class LocalReasoner:
    """Decides by rules over what the harness shows, and ranks the whole view to conclude."""

    name = "local"
    note = NOTE

    def __init__(self, ranker: Ranker) -> None:
        self._ranker = ranker

    def plan(self, turn: Turn) -> tuple[Draft, ...]:
        """Split the question by its words, unless a skill says to leave it whole."""
        if policy_of(turn.skills).split is False:
            return (Draft(text=turn.question.text),)
        return decompose(turn.question.text, turn.question.options)

    def act(self, turn: Turn) -> Action:
        """Search for the current subtask; answering is left to the conclusion."""
        text = turn.current.text if turn.current else turn.question.text
        mode = turn.forced or there(choose_mode(turn), turn)
        if mode is Mode.NEIGHBOR:
            label = cause_of(turn.neighbours) or first_label(turn.neighbours)
            if label:
                return Action(kind="search", reason="along an edge", mode=mode, query=label)
            mode = there(Mode.EVENT, turn)
        return Action(kind="search", reason=reason(mode), mode=mode, query=as_query(text))

    def assess(self, turn: Turn) -> Assessment:
        """A close look that found something close answers its subtask with a quotation."""
        task, found = turn.current, turn.found
        if task is None or found is None or not closes(task, found.mode):
            return Assessment()
        best = quotable(found.evidence)
        if not best:
            return Assessment()
        claim = Resolution(subtask=task.id, answer=quotation(best), refs=tuple(e.ref for e in best))
        return Assessment(resolved=(claim,))

    def replan(self, turn: Turn, reasons: tuple[str, ...]) -> Edits:  # noqa: ARG002
        """Rules have no better plan than their first."""
        return Edits()

    def conclude(self, turn: Turn) -> Conclusion:
        """Rank the whole view by the question; the options' evidence, or a quotation, decides.

        A question of several parts is answered part by part, a broad one by its event.
        """
        if turn.question.options:
            return by_options(turn.question, self._rank(turn, turn.question.text))
        parts = several(turn.question.text) or (turn.question.text,)
        rankings = [self._rank(turn, part) for part in parts]
        if kind_of(turn.question.text) is Kind.BROAD and (event := broadest(turn.evidence)):
            return by_event(event, rankings[0])
        return by_quotation(rankings)

    def _rank(self, turn: Turn, text: str) -> Ranking:
        asked = turn.question.model_copy(update={"text": text})
        return self._ranker.rank(turn.view, asked, MOMENTS)


def choose_mode(turn: Turn) -> Mode:
    """First the event, then a closer look at it; for what something looks like, its images.

    A cause is looked for along a causal edge where there is one. A skill may know better.
    """
    task = turn.current
    first = task is None or task.attempts <= 1
    known = policy_of(turn.skills).modes
    if known and task is not None:
        return known[min(max(1, task.attempts), len(known)) - 1]
    if turn.focus is None or task is None:
        return Mode.EVENT if first else Mode.VIDEO
    kind = kind_of(task.text)
    if kind is Kind.CAUSE and first and cause_of(turn.neighbours):
        return Mode.NEIGHBOR
    if kind is Kind.LOOKS and task.attempts > 2:
        return Mode.KEYFRAME
    if first:
        return Mode.EVENT
    return Mode.VIDEO if task.attempts == 2 else Mode.EVENT


def there(mode: Mode, turn: Turn) -> Mode:
    """The mode, or VIDEO where it is switched off."""
    return mode if mode in turn.modes else Mode.VIDEO


def cause_of(neighbours: Sequence[Neighbour]) -> str:
    """The label of what caused the focus, "" where no edge says so."""
    causes = [n for n in neighbours if n.relation in CAUSAL and not n.outgoing]
    return first_label(causes)


def first_label(neighbours: Sequence[Neighbour]) -> str:
    """The first label there is to move to."""
    return next((n.label for n in neighbours), "")


def reason(mode: Mode) -> str:
    """Why a mode is chosen, for whoever reads the trajectory."""
    reasons = {
        Mode.EVENT: "find the event first",
        Mode.VIDEO: "look closer at what was said and done",
        Mode.KEYFRAME: "look at the images",
    }
    return reasons.get(mode, "")


def closes(task: Subtask, mode: Mode) -> bool:
    """Whether such a search can answer such a subtask: events answer only broad ones."""
    return mode in (Mode.VIDEO, Mode.KEYFRAME) or kind_of(task.text) is Kind.BROAD


def quotable(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The best pieces of evidence, at most three, none far behind the best; best first."""
    ranked = sorted(evidence, key=lambda e: (-e.score, e.span.start_ms))
    return [e for e in ranked if e.score >= NEAR_BEST * ranked[0].score][:QUOTED]


def quotation(evidence: Sequence[Evidence]) -> str:
    """Evidence as a text: quoted with its time, in the order of the video."""
    in_time = sorted(evidence, key=lambda e: (e.video, e.span.start_ms))
    return " ".join(f"[{e.span}] {e.text}" for e in in_time)


def by_quotation(rankings: Sequence[Ranking]) -> Conclusion:
    """What answers each part, quoted; not in memory where nothing is close to any."""
    quotes = [quote for ranking in rankings if (quote := quote_of(ranking))]
    found = best_first([e for r in rankings for e in r.evidence])
    if not quotes:
        return Conclusion(text="", not_in_memory=True, found=found)
    refs = tuple(dict.fromkeys(ref for quote in quotes for ref in quote.refs))
    text = " ".join(dict.fromkeys(quote.text for quote in quotes))
    return Conclusion(text=text, refs=refs, found=with_quoted(found, quotes))


def quote_of(ranking: Ranking) -> Extract | None:
    """The sentence that answers, else the best line; None where nothing is close."""
    if ranking.nothing_close or not ranking.evidence:
        return None
    best = ranking.evidence[0]
    return ranking.extract or Extract(
        text=best.text, refs=(best.ref,), video=best.video, span=best.span, score=best.score
    )


def with_quoted(found: Sequence[Evidence], quotes: Sequence[Extract]) -> tuple[Evidence, ...]:
    """What was found, and after it the lines that quotes run over and the ranking left out."""
    known = {e.ref for e in found}
    more = [
        Evidence(ref=ref, video=q.video, span=q.span, text=q.text, score=q.score)
        for q in quotes
        for ref in q.refs
        if ref not in known
    ]
    return (*found, *more)


def best_first(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Evidence by score, each ref once; of equal scores the first stays first."""
    once: dict[str, Evidence] = {}
    for one in sorted(evidence, key=lambda e: -e.score):
        once.setdefault(one.ref, one)
    return tuple(once.values())


def broadest(evidence: Sequence[Evidence]) -> Evidence | None:
    """The best event found, for a question about the whole."""
    events = [e for e in evidence if e.ref.startswith("s")]
    return max(events, key=lambda e: (e.score, -e.span.start_ms), default=None)


def by_event(event: Evidence, ranking: Ranking) -> Conclusion:
    """A broad question is answered with what the event's summary says."""
    return Conclusion(text=event.text, refs=(event.ref,), found=(event, *ranking.evidence))


def by_options(question: Question, ranking: Ranking) -> Conclusion:
    """The option with the largest share of the support; the first where memory says nothing."""
    if not ranking.options:
        share = 1 / len(question.options)
        return Conclusion(text="A", option="A", found=ranking.evidence, share=share)
    best = max(ranking.options, key=lambda o: o.share)
    return Conclusion(
        text=best.letter,
        option=best.letter,
        refs=supporting(best, ranking),
        found=ranking.evidence,
        share=best.share,
    )


def supporting(option: OptionSupport, ranking: Ranking) -> tuple[str, ...]:
    """What speaks for the option among the ranked moments, best first."""
    known = [e for e in ranking.evidence if e.ref in option.evidence]
    return tuple(e.ref for e in quotable(known or ranking.evidence))
