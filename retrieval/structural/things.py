"""Things that detectors found on the images, for questions about what is seen."""

from __future__ import annotations

from collections.abc import Collection

from domain.memories import MemorySource
from domain.search import Finding, Structure, StructurePart
from domain.things import labels_of_kind, things_on
from retrieval.query_context import QueryContext
from retrieval.terms import content_words, terms
from retrieval.view_lines import ViewLine

SHOWN = 3
"""Maximum number of moments of a finding."""
PERSON = "person"
_SHOWN_WORDS = frozenset(
    term for word in ("see", "seen", "show", "shown", "visible", "appear") for term in terms(word)
)
"""Terms of questions that ask for nothing beyond what is in view."""


def things_of_kind(
    context: QueryContext, structure: Structure
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """Return what was detected of the kind that a question names, nearest to it in meaning first.

    None if it names no kind of things, or nothing of it was detected. Where the question says more
    than the kind, what was detected is only likely to be meant.
    """
    labels = labels_of_kind(structure.subject)
    rows = [row for row in context.rows if labels & things_of(row).keys()] if labels else []
    if not rows:
        return None
    cosines = context.all_lines.cosines(context.vectors.question[None])[0]
    rows.sort(key=lambda row: (-float(cosines[row.number]), row.line.start_ms))
    parts = [
        StructurePart(text=", ".join(_phrases(row, labels)), refs=(row.ref,))
        for row in rows[:SHOWN]
    ]
    finding = Finding(
        asks=structure.asks,
        subject=structure.subject,
        parts=tuple(parts),
        exact=not _more_asked(structure.subject, labels),
    )
    return finding, tuple(rows[:SHOWN])


def may_show_thing(row: ViewLine, question: str) -> bool:
    """Check whether detectors found a thing that the question does not name itself."""
    asked = set(terms(question))
    return any(label != PERSON and asked.isdisjoint(terms(label)) for label in things_of(row))


def things_of(row: ViewLine) -> dict[str, str]:
    """Return the things of a line about objects by label; none for other lines."""
    return things_on(row.line.text) if row.line.source == MemorySource.OBJECTS else {}


def _phrases(row: ViewLine, labels: Collection[str]) -> list[str]:
    return [phrase for label, phrase in things_of(row).items() if label in labels]


def _more_asked(question: str, labels: Collection[str]) -> bool:
    """Check whether a question says more than a kind of things and that it is in view."""
    known = _SHOWN_WORDS | {term for label in labels for term in terms(label)}
    return any(not known & set(terms(word)) for word in content_words(question))
