"""What type of thing a question asks for, by its words (English), and which entities are of it."""

from __future__ import annotations

import re

NUMBERS = frozenset({"CARDINAL", "ORDINAL", "PERCENT", "MONEY", "QUANTITY", "DATE", "TIME"})
TIMES = frozenset({"DATE", "TIME"})
PEOPLE = frozenset({"PERSON", "ORG", "NORP"})
PLACES = frozenset({"GPE", "LOC", "FAC", "ORG"})
"""Labels of spaCy's named entities."""

_ASKED: tuple[tuple[frozenset[str], str], ...] = (
    (
        NUMBERS,
        r"how (?:many|much|long|old|far|big|tall|often|fast|heavy|large|high)\b"
        r"|\b(?:percentage|percent|number|share|price|amount|cost) of\b",
    ),
    (TIMES, r"\b(?:what|which) (?:year|date|day|month|century|decade)\b"),
    (PEOPLE, r"^who(?:m|se)?\b"),
    (
        PLACES,
        r"^where\b|\b(?:what|which) (?:city|country|state|town|place|university|school|company"
        r"|firm|bank|organi[sz]ation)\b",
    ),
)
_COMPILED = tuple((labels, re.compile(rule, re.IGNORECASE)) for labels, rule in _ASKED)


def asked_type(question: str) -> frozenset[str]:
    """Return the labels of the entities that may answer a question; none where any thing may."""
    return next((labels for labels, rule in _COMPILED if rule.search(question)), frozenset())
