"""Credits of films: texts on screen that say who did what (English)."""

from __future__ import annotations

import re

from domain.memories import MemorySource
from retrieval.view_lines import ViewLine

_CREDITS = re.compile(r"(?:(?:opening|closing|end|final) )?credits", re.IGNORECASE)
_ROLES = re.compile(
    r"\b(?:(?:directed|written|produced|edited|composed|presented|narrated|story|music|screenplay)"
    r" by|(?:executive |line |co-)?producers?|director of|cinematography|sound design|costumes"
    r"|starring|special thanks|original score)\b",
    re.IGNORECASE,
)


def asks_for_credits(subject: str) -> bool:
    """Check whether a subject is the credits of a film."""
    return _CREDITS.fullmatch(subject) is not None


def shows_credits(row: ViewLine) -> bool:
    """Check whether a line is text on screen that names roles of a film."""
    return row.line.source == MemorySource.READ and bool(_ROLES.search(row.line.text))
