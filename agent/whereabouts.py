"""Where somebody was last seen: when it is asked, and how it is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent.reasoners.structure_questions import structure_of
from domain.search import Asks, Finding, Structure, StructurePart
from retrieval.terms import plain_words


def sought_person(query: str, texts: Iterable[str], found: Sequence[Finding]) -> Structure | None:
    """Return whom a search looks for who was asked for; None if it is not their last appearance.

    A language model words queries as it likes: one that names the person is enough, once.

    Args:
        query: of the search.
        texts: the query, the subtask and the question: what may ask where somebody was last seen.
        found: what earlier searches found.
    """
    asked = (structure_of(text) for text in texts)
    sought = (one for one in asked if one is not None and one.asks is Asks.WHEREABOUTS)
    person = next(sought, None)
    if person is None or _words(person.subject) not in _words(query):
        return None
    known = any(one.asks is person.asks and one.subject == person.subject for one in found)
    return None if known else person


def _words(text: str) -> str:
    """Return the words of a text between spaces, so that none is found within another."""
    return f" {' '.join(plain_words(text))} "


def last_seen_sentences(parts: Iterable[StructurePart]) -> Iterator[str]:
    """Yield a sentence for each person of the name, with the time and the video."""
    for part in parts:
        how, (span,) = ("seen", part.seen) if part.seen else ("heard", part.heard)
        yield f"{part.label} was last {how} at {span} of {part.text}."
