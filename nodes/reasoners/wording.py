"""Questions taken apart by rules: what kind they are, their parts, and parts put as statements."""

from __future__ import annotations

import re
from enum import StrEnum

from domain.ledger import Draft
from nodes.harness.constrain import is_asked, words

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


class Kind(StrEnum):
    """What a question is after, which decides how it is searched."""

    BROAD = "broad"
    CAUSE = "cause"
    LOOKS = "looks"
    FACT = "fact"


def kind_of(text: str) -> Kind:
    """The kind of a question or subtask, by its words."""
    if _WHY.search(text) or text.lower().startswith(CAUSE.lower()):
        return Kind.CAUSE
    if _LOOKS.search(text):
        return Kind.LOOKS
    return Kind.BROAD if _BROAD.search(text) else Kind.FACT


CAUSE = "The cause: "
EVENT = "What happened: "
FOR = "Evidence that "
AGAINST = "Evidence against: "


def stated(text: str) -> str:
    """A question as a statement with a gap: ``Why did Ann leave?`` is ``Ann leave``."""
    said = text.strip().rstrip("?？.! ").strip()
    for label in (CAUSE, EVENT, FOR, AGAINST):
        said = said.removeprefix(label)
    yes_no = _YES_NO.fullmatch(said)
    bare = yes_no.group(1) if yes_no else _OPENING.sub("", said, count=1)
    return bare.strip() or said


def several(question: str) -> tuple[str, ...]:
    """The parts of a question that asks several things; nothing where it asks one."""
    parts = [part.strip() for part in _PARTS.split(question.strip()) if words(part)]
    return tuple(parts) if len(parts) > 1 else ()


def decompose(question: str, options: tuple[str, ...]) -> tuple[Draft, ...]:
    """Subtasks by rule (SPEC section 2, Plan).

    A question with options is one subtask: what tells them apart is its one missing fact, and the
    options are compared over all evidence at the end.
    """
    if options:
        return (Draft(text=question),)
    if parts := several(question):
        return tuple(Draft(text=part) for part in parts)
    said = question.strip()
    if _WHY.match(said):
        return (
            Draft(text=EVENT + stated(said)),
            Draft(text=CAUSE + stated(said), depends=("t1",)),
        )
    if _YES_NO.fullmatch(said.rstrip("?？ ")):
        return (Draft(text=FOR + stated(said)), Draft(text=AGAINST + stated(said)))
    return (Draft(text=question),)


def as_query(text: str) -> str:
    """A subtask as a query that the guard takes: a statement of at least two words, no copy."""
    said = stated(text)
    query = said if len(words(said)) >= 2 else f"{said} in the video"
    taken = is_asked(query) or words(query) == words(text)
    return f"the video tells {query.rstrip('?')}" if taken else query
