"""Structural search: from a structure question to evidence and a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from domain.asking import Evidence, Mode
from domain.search import NEEDS_DESCRIPTION, Asks, Finding, Structure
from domain.things import labels_of_kind
from retrieval.heuristics.unrecorded import may_be_said, unrecorded_reason
from retrieval.query_context import QueryContext
from retrieval.result import Retrieval
from retrieval.structural.beginning_end import beginning_or_end
from retrieval.structural.central import central_sentences
from retrieval.structural.mentions import Near, before_or_after, first_or_last_mention
from retrieval.structural.people import people, speakers
from retrieval.structural.rows import evidence_of
from retrieval.structural.things import may_show_thing, things_of_kind
from retrieval.view_lines import ViewLine

EXACT, LOOSE, FAR = 0.9, 0.5, 0.1
"""Scores of evidence: exact, by similarity only, and nearest lines if memory has no answer."""
NEAREST = 12
"""Number of lines of a vector search."""
SHOWN = 3
"""Number of nearest lines shown if memory cannot hold the answer."""
_SEARCHED = {
    Asks.PEOPLE: "who is seen and heard",
    Asks.COUNT: "who is seen and heard",
    Asks.SPEAKERS: "who speaks",
    Asks.ABOUT: "the most central sentences",
    Asks.BEGINNING: "the first lines",
    Asks.END: "the last lines",
    Asks.FIRST: "the first mention",
    Asks.LAST: "the last mention",
    Asks.WHEREABOUTS: "where somebody was last seen",
    Asks.AFTER: "what comes after the moment",
    Asks.BEFORE: "what comes before the moment",
    Asks.THINGS: "the things recognised on images",
}

Ordinary = Callable[[], Retrieval]
"""Runs the ordinary search, without structure."""


def structural(
    context: QueryContext, structure: Structure, mode: Mode, ordinary: Ordinary
) -> Retrieval:
    """Answer from structure; run the ordinary search if the view has nothing to answer from.

    Args:
        context: The prepared search.
        structure: The structure question.
        mode: The mode of the round, which the result has.
        ordinary: Runs the ordinary search.
    """
    result = _search_structure(context, structure, _vector_search(context))
    if result is None and structure.asks in NEEDS_DESCRIPTION:
        return _decline(context, structure, ordinary())
    if result is None:
        return (
            _not_mentioned(context, structure, mode) if structure.asks in _MENTIONED else ordinary()
        )
    finding, rows = result
    score = FAR if finding.unrecorded else EXACT if finding.exact else LOOSE
    return Retrieval(
        mode=mode,
        query=context.query,
        evidence=evidence_of(context, rows, score),
        searched=context.searched(_SEARCHED[structure.asks]),
        finding=finding,
    )


_MENTIONED = frozenset({Asks.FIRST, Asks.LAST})


def _search_structure(
    context: QueryContext, structure: Structure, near: Near
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    if structure.asks in NEEDS_DESCRIPTION:
        recorded = structure.asks is not Asks.THINGS or may_be_said(context, structure)
        return None if recorded else things_of_kind(context, structure)
    if structure.asks in (Asks.PEOPLE, Asks.COUNT):
        return people(context, structure)
    if structure.asks is Asks.SPEAKERS:
        return speakers(context, structure)
    if structure.asks is Asks.ABOUT:
        return central_sentences(context, structure)
    if structure.asks in (Asks.BEGINNING, Asks.END):
        return beginning_or_end(context, structure)
    if structure.asks is Asks.WHEREABOUTS:
        return None  # It is answered from where people appear, not from lines.
    if structure.asks in _MENTIONED:
        return first_or_last_mention(context, structure, near)
    return before_or_after(context, structure, near)


def _vector_search(context: QueryContext) -> Near:
    def near(words: str) -> Sequence[tuple[ViewLine, float]]:
        lines = context.all_lines.cosines(context.encoders.embed_queries([words]))
        known = {row.number: row for row in context.rows}
        best = np.argsort(-lines[0], kind="stable")[:NEAREST].tolist()
        return [(known[n], float(lines[0, n])) for n in best if n in known]

    return near


def _not_mentioned(context: QueryContext, structure: Structure, mode: Mode) -> Retrieval:
    where = context.searched(_SEARCHED[structure.asks])
    return Retrieval(mode=mode, query=context.query, nothing_close=True, searched=where)


def _shows_thing(context: QueryContext, structure: Structure, nearest: Sequence[Evidence]) -> bool:
    """Check whether the nearest line names a thing that the question asks for."""
    by_ref = {row.ref: row for row in context.rows}
    row = by_ref.get(nearest[0].ref) if nearest else None
    kind = labels_of_kind(structure.subject)
    return row is not None and not kind and may_show_thing(row, structure.subject)


def _decline(context: QueryContext, structure: Structure, result: Retrieval) -> Retrieval:
    """Return the ordinary search; if memory cannot hold the answer, its nearest lines and why."""
    why = unrecorded_reason(context, structure)
    nearest = [e for e in result.evidence if not e.ref.startswith("s")][:SHOWN]
    if not why or (structure.asks is Asks.THINGS and _shows_thing(context, structure, nearest)):
        return result
    low = tuple(e.model_copy(update={"score": min(e.score, FAR)}) for e in nearest)
    finding = Finding(asks=structure.asks, subject=structure.subject, exact=False, unrecorded=why)
    changes = {"evidence": low, "nothing_close": False, "extract": None, "finding": finding}
    return result.model_copy(update=changes)
