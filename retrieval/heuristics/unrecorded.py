"""Detection of questions about looks, numbers and actions that memory cannot answer (English)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from domain.memories import MemorySource
from domain.search import Asks, Structure
from domain.texts import has_number
from retrieval.query_context import QueryContext
from retrieval.terms import content_words, terms
from retrieval.view_lines import ViewLine


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COLOURS = _word_set(
    "red green blue yellow orange purple violet pink brown black white grey gray golden silver "
    "beige turquoise colour color dark bright"
)
_CLOTHES = _word_set(
    "wear wore worn dress clothes clothing shirt hat cap jacket suit tie shoes trousers coat skirt "
    "glasses sweater uniform scarf hair beard bald tall backpack rucksack handbag"
)
_QUESTION_WORDS = _word_set(
    "colour color wear wearing dress dressed look like kind sort type gesture expression"
)
_PEOPLE = _word_set("people person persons man men woman women child children kids")
_COLOUR = re.compile("colou?r", re.IGNORECASE)
_NOUN_ENDS = re.compile(
    r"\s(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|of|in|on|with|at"
    r"|for|from|per|that|who|which|there|wear|wears|be|by|to)\b",
    re.IGNORECASE,
)
_WITH = re.compile(r"\bwith (?:an? |the |his |her |their )?[\w-]+(?: [\w-]+)?", re.IGNORECASE)
"""By what a question tells a person from others: it does not ask for that."""
WHY = {
    Asks.LOOKS: "what things and people look like was not described",
    Asks.NUMBER: "this was not counted, and nobody says the number",
    Asks.ACTION: "what people do was not described",
    Asks.THINGS: "nothing like it was recognised on the images, and nobody names it",
}


def unrecorded_reason(context: QueryContext, structure: Structure) -> str:
    """Return why memory cannot hold the answer; "" if it may, and is searched as usual."""
    return "" if may_be_said(context, structure) else WHY[structure.asks]


def may_be_said(context: QueryContext, structure: Structure) -> bool:
    """Check whether the video is described, or a line may state what is asked for."""
    rows = context.rows
    return any(row.described for row in rows) or any(_may_answer(row, structure) for row in rows)


def _may_answer(row: ViewLine, structure: Structure) -> bool:
    """Check whether a line may state the requested attribute of the question's subject."""
    line_terms = set(terms(row.line.text))
    if structure.asks is Asks.NUMBER:
        return _states_number(row, line_terms, structure.subject)
    looks = structure.asks is Asks.LOOKS
    asked = _WITH.sub("", structure.subject) if looks else structure.subject
    about = _stems(w for w in content_words(asked) if w not in _QUESTION_WORDS)
    if looks:
        return _states_appearance(
            row, line_terms, about, colour=bool(_COLOUR.search(structure.subject))
        )
    if row.sound:
        return bool(row.sound & about)
    return row.spoken and len(line_terms & about) >= min(2, len(about)) and bool(about)


def _states_appearance(
    row: ViewLine, line_terms: set[str], about: set[str], *, colour: bool
) -> bool:
    """Check whether a line describes the looks of the subject, or detected objects match."""
    descriptors = _stems(_COLOURS if colour else _CLOTHES)
    if row.line.source == MemorySource.OBJECTS:
        return not colour and bool(line_terms & about & descriptors)
    return bool(line_terms & about - descriptors) and bool(line_terms & descriptors)


def _states_number(row: ViewLine, line_terms: set[str], subject: str) -> bool:
    """Check whether a line has a number and the counted noun; for people also the predicate."""
    noun = content_words(_NOUN_ENDS.split(f"{subject} ", maxsplit=1)[0])
    predicate = _stems(word for word in content_words(subject) if word not in noun)
    if not noun or not _stems(noun[-1:]) & line_terms:
        return False
    if not has_number(row.line.text) and row.line.source != MemorySource.OBJECTS:
        return False
    return noun[-1] not in _PEOPLE or not predicate or bool(predicate & line_terms)


def _stems(words: Iterable[str]) -> set[str]:
    return {term for word in words for term in terms(word)}
