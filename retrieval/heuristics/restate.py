"""Questions restated like lines of memory: without framing, or as statements (English)."""

from __future__ import annotations

import re

from retrieval.heuristics.language import is_english

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


def core_question(question: str) -> str:
    """Remove a question's question mark, its lead-in "Now I ..., ", and words of time and order.

    In another language than English, only the question mark.
    """
    text = question.strip().rstrip("?？. ")
    if not is_english(question):
        return re.sub(r"\s+", " ", text)
    now = _NOW.match(text)
    if now and len(now.group(1).split()) >= 4:
        text = now.group(1)
    for frame in (_ASKED_TIME, _ORDER, _DAY_WORDS):
        text = frame.sub("", text)
    return re.sub(r"\s+", " ", text).strip(" ,")


def statement(question: str, option: str) -> str:
    """Restate a question as a statement, with ``option`` in place of its question word, roughly.

    In another language than English, the option follows the question.
    """
    text, answer = core_question(question), option.strip().rstrip(".")
    if not is_english(question):
        return f"{text} {answer}"
    asks_object = _WHO_ASKS_OBJECT.match(text)
    if _SELF.fullmatch(answer):
        answer = "I" if _WHO.match(text) and not asks_object else "me"
    if re.match(r"because\b", answer, re.I):
        return f"{_WHY.sub('', text)} {answer}"
    if _WHOSE.match(text):
        owner = answer if answer.endswith("'s") else f"{answer}'s"
        return _WHOSE.sub(lambda _: owner, text)
    if asks_object:
        return f"{asks_object.group(1)} {answer}"
    return _WHO.sub(lambda _: answer, text) if _WHO.match(text) else f"{text} {answer}"
