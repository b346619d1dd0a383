"""Questions put as memory would put them: without their frame, or as a statement of an option."""

from __future__ import annotations

import re

_NOW = re.compile(  # "Now I cook, who ...", or a last line after a line that ends with a comma
    r"^(?:now|this time)\b(?:(?=.*$).*?[,，]\s*(?=\w)|.*[,，][^\S\n]*+\n\s*+(?=\w))(.*)$", re.I
)
_ASKED_TIME = re.compile(
    r"^(?:in|on|at)?\s*(?:when|what time)\s+(?:was|were|is|did)\s+"
    r"(?:the\s+)?(?:last|first)\s+time\s+(?:that\s+)?",
    re.I,
)
_ORDER = re.compile(r"\b(?:the\s+)?(?:last|first|previous)\s+time\b(?:\s+that)?", re.I)
_DAY_WORDS = re.compile(
    r"\b(?:last night|this morning|this afternoon|yesterday|today|tonight|just now|usually"
    r"|previously|before)\b",
    re.I,
)
_WHO_ASKS_OBJECT = re.compile(r"^who\s++(?:did|do|does)\s++(\w++\s++\w.*)$", re.I)
_WHOSE = re.compile(r"^whose\b", re.I)
_WHO = re.compile(r"^who\b", re.I)
_WHY = re.compile(r"^why\s+(?:did|do|does|didn't|doesn't|don't)?\s*", re.I)
_SELF = re.compile(r"me|mine|i", re.I)


def bare(question: str) -> str:
    """The question without question mark, "Now I ..., " in front, and words of time and order."""
    text = question.strip().rstrip("?？. ")
    now = _NOW.match(text)
    if now and len(now.group(1).split()) >= 4:
        text = now.group(1)
    for frame in (_ASKED_TIME, _ORDER, _DAY_WORDS):
        text = frame.sub("", text)
    return re.sub(r"\s+", " ", text).strip(" ,")


def statement(question: str, option: str) -> str:
    """The bare question with ``option`` in the place of what it asks for, roughly."""
    text, said = bare(question), option.strip().rstrip(".")
    asked = _WHO_ASKS_OBJECT.match(text)
    if _SELF.fullmatch(said):
        said = "I" if _WHO.match(text) and not asked else "me"
    if re.match(r"because\b", said, re.I):
        return f"{_WHY.sub('', text)} {said}"
    if _WHOSE.match(text):
        owner = said if said.endswith("'s") else f"{said}'s"
        return _WHOSE.sub(lambda _: owner, text)
    if asked:
        return f"{asked.group(1)} {said}"
    return _WHO.sub(lambda _: said, text) if _WHO.match(text) else f"{text} {said}"
