"""Whether memory could hold the answer at all: looks, counts and actions take a description."""

from __future__ import annotations

import re
from collections.abc import Iterable

from domain.memories import MemorySource
from domain.search import Asks, Structure
from domain.texts import has_number
from retrieval.query_context import QueryContext
from retrieval.terms import content_words, terms
from retrieval.view_lines import ViewLine


def _of(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COLOURS = _of(
    "red green blue yellow orange purple violet pink brown black white grey gray golden silver "
    "beige turquoise colour color dark bright"
)
_CLOTHES = _of(
    "wear wore worn dress clothes clothing shirt hat cap jacket suit tie shoes trousers coat skirt "
    "glasses sweater uniform scarf hair beard bald tall"
)
_ASKED_ONLY = _of(
    "colour color wear wearing dress dressed look like kind sort type gesture expression"
)
_PEOPLE = _of("people person persons man men woman women child children kids")
_COLOUR = re.compile("colou?r", re.IGNORECASE)
_NOUN_ENDS = re.compile(
    r"\s(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|of|in|on|with|at"
    r"|for|from|per|that|who|which|there|wear|wears|be|by|to)\b",
    re.IGNORECASE,
)
WHY = {
    Asks.LOOKS: "what things and people look like was not described",
    Asks.NUMBER: "this was not counted, and nobody says the number",
    Asks.ACTION: "what people do was not described",
}


def unrecorded(context: QueryContext, asked: Structure) -> str:
    """Why this cannot be told from memory; empty where it may be: then it is searched as ever."""
    rows = context.rows
    if any(row.described for row in rows):
        return ""
    said = any(_may_tell(row, asked) for row in rows)
    return "" if said else WHY[asked.asks]


def _may_tell(row: ViewLine, asked: Structure) -> bool:
    """Whether a line says something of the kind that is asked for, of what is asked about."""
    own = set(terms(row.line.text))
    if asked.asks is Asks.NUMBER:
        return _counts(row, own, asked.subject)
    about = _stems(w for w in content_words(asked.subject) if w not in _ASKED_ONLY)
    if asked.asks is Asks.LOOKS:
        return _shows(row, own, about, colour=bool(_COLOUR.search(asked.subject)))
    if row.sound:
        return bool(own & about)
    return row.spoken and len(own & about) >= min(2, len(about)) and bool(about)


def _shows(row: ViewLine, own: set[str], about: set[str], *, colour: bool) -> bool:
    """Whether a line says of the thing how it looks, or an image showed the clothes asked about."""
    telling = _stems(_COLOURS if colour else _CLOTHES)
    if row.line.source == MemorySource.OBJECTS:
        return not colour and bool(own & about & telling)
    return bool(own & about - telling) and bool(own & telling)


def _counts(row: ViewLine, own: set[str], subject: str) -> bool:
    """Whether a line has a number and the noun; of people also what is asked of them."""
    noun = content_words(_NOUN_ENDS.split(f"{subject} ", maxsplit=1)[0])
    rest = _stems(word for word in content_words(subject) if word not in noun)
    if not noun or not _stems(noun[-1:]) & own:
        return False
    if not has_number(row.line.text) and row.line.source != MemorySource.OBJECTS:
        return False
    return noun[-1] not in _PEOPLE or not rest or bool(rest & own)


def _stems(words: Iterable[str]) -> set[str]:
    return {term for word in words for term in terms(word)}
