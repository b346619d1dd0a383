"""One structural search: from what is asked of structure to evidence and a finding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from domain.asking import Mode
from domain.search import NEEDS_DESCRIPTION, Asks, Finding, Structure
from models.ports import TextEmbedder
from retrieval.heuristics.unrecorded import unrecorded
from retrieval.query_context import QueryContext
from retrieval.result import Retrieval
from retrieval.structural.central import central
from retrieval.structural.ends import ends
from retrieval.structural.mentions import Near, beside, first_or_last
from retrieval.structural.people import people, speakers
from retrieval.structural.rows import evidence_of
from retrieval.view_lines import ViewLine

EXACT, LOOSE, FAR = 0.9, 0.5, 0.1
"""Scores of evidence: read off from structure, by likeness only, and the nearest of what is not."""
NEAREST = 12
"""Lines close in meaning that are looked at."""
SHOWN = 3
"""Moments that are shown with what cannot be told."""
_LOOKED = {
    Asks.PEOPLE: "who is seen and heard",
    Asks.COUNT: "who is seen and heard",
    Asks.SPEAKERS: "who speaks",
    Asks.ABOUT: "the most central sentences",
    Asks.BEGINNING: "the first lines",
    Asks.END: "the last lines",
    Asks.FIRST: "the first mention",
    Asks.LAST: "the last mention",
    Asks.AFTER: "what comes after the moment",
    Asks.BEFORE: "what comes before the moment",
}

Ordinary = Callable[[], Retrieval]
"""The search as it would be made without structure."""


def structural(
    context: QueryContext, asked: Structure, mode: Mode, text: TextEmbedder, ordinary: Ordinary
) -> Retrieval:
    """Answer from structure; the ordinary search where the view has nothing to answer from.

    Args:
        context: the search made ready.
        asked: what is asked of structure.
        mode: the mode of the round, which the result has.
        text: embeds the words of what is looked for.
        ordinary: makes the ordinary search.
    """
    if asked.asks in NEEDS_DESCRIPTION:
        return _declining(context, asked, ordinary())
    found = _found(context, asked, _near(context, text))
    if found is None:
        return _without(context, asked, mode) if asked.asks in _MENTIONED else ordinary()
    finding, rows = found
    score = FAR if finding.unrecorded else EXACT if finding.exact else LOOSE
    return Retrieval(
        mode=mode,
        query=context.query,
        evidence=evidence_of(context, rows, score),
        searched=context.searched(_LOOKED[asked.asks]),
        finding=finding,
    )


_MENTIONED = frozenset({Asks.FIRST, Asks.LAST})


def _found(
    context: QueryContext, asked: Structure, near: Near
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    if asked.asks in (Asks.PEOPLE, Asks.COUNT):
        return people(context, asked)
    if asked.asks is Asks.SPEAKERS:
        return speakers(context, asked)
    if asked.asks is Asks.ABOUT:
        return central(context, asked)
    if asked.asks in (Asks.BEGINNING, Asks.END):
        return ends(context, asked)
    if asked.asks in _MENTIONED:
        return first_or_last(context, asked, near)
    return beside(context, asked, near)


def _near(context: QueryContext, text: TextEmbedder) -> Near:
    def near(words: str) -> Sequence[tuple[ViewLine, float]]:
        lines = context.all_lines.cosines(text.embed([words]))
        known = {row.number: row for row in context.rows}
        best = np.argsort(-lines[0], kind="stable")[:NEAREST].tolist()
        return [(known[n], float(lines[0, n])) for n in best if n in known]

    return near


def _without(context: QueryContext, asked: Structure, mode: Mode) -> Retrieval:
    where = context.searched(_LOOKED[asked.asks])
    return Retrieval(mode=mode, query=context.query, nothing_close=True, searched=where)


def _declining(context: QueryContext, asked: Structure, found: Retrieval) -> Retrieval:
    """The ordinary search, as the nearest moments where memory cannot hold the answer."""
    why = unrecorded(context, asked)
    nearest = [e for e in found.evidence if not e.ref.startswith("s")][:SHOWN]
    if not why:
        return found
    low = tuple(e.model_copy(update={"score": min(e.score, FAR)}) for e in nearest)
    finding = Finding(asks=asked.asks, subject=asked.subject, exact=False, unrecorded=why)
    changes = {"evidence": low, "nothing_close": False, "extract": None, "finding": finding}
    return found.model_copy(update=changes)
