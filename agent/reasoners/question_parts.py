"""Questions analysed by rules: their kind, their parts, and their parts as statements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from string import ascii_uppercase

from agent.harness.constrain import is_asked, words
from domain.asking import Question, Subtask
from domain.ledger import SubtaskDraft
from retrieval.heuristics.restate import statement

SUBTASKS = 5
"""Parts that a question has at most, unless settings say otherwise."""
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


class QuestionKind(StrEnum):
    """What a question is after, which decides how it is searched."""

    BROAD = "broad"
    CAUSE = "cause"
    LOOKS = "looks"
    FACT = "fact"


def kind_of(text: str) -> QuestionKind:
    """Return the kind of a question or subtask, by its words."""
    if _WHY.search(text):
        return QuestionKind.CAUSE
    if _LOOKS.search(text):
        return QuestionKind.LOOKS
    return QuestionKind.BROAD if _BROAD.search(text) else QuestionKind.FACT


def as_statement(text: str) -> str:
    """Turn a question into a statement with a gap: ``Why did Ann leave?`` is ``Ann leave``."""
    statement_ = text.strip().rstrip("?？.! ").strip()
    yes_no = _YES_NO.fullmatch(statement_)
    bare = yes_no.group(1) if yes_no else _OPENING.sub("", statement_, count=1)
    return bare.strip() or statement_


def question_parts_of(question: str) -> tuple[str, ...]:
    """Split a question that asks several things into parts; empty if it asks one."""
    parts = [part.strip() for part in _PARTS.split(question.strip()) if words(part)]
    return tuple(parts) if len(parts) > 1 else ()


def decompose(
    question: str, options: tuple[str, ...], most: int = SUBTASKS
) -> tuple[SubtaskDraft, ...]:
    """Split a question into subtasks by rule (SPEC section 2, Plan).

    One subtask for each option, at most ``most``: with more options, several share a subtask.
    """
    if options:
        return tuple(_for_options(options, group) for group in _grouped(options, most))
    if parts := question_parts_of(question):
        return tuple(SubtaskDraft(text=part) for part in parts)
    return (SubtaskDraft(text=question),)


def _grouped(options: Sequence[str], most: int) -> list[range]:
    """Split the positions of the options into at most ``most`` groups, as evenly as possible."""
    groups = min(max(1, most), len(options))
    starts = [len(options) * i // groups for i in range(groups + 1)]
    return [range(start, stop) for start, stop in pairwise(starts)]


def _for_options(options: Sequence[str], places: Iterable[int]) -> SubtaskDraft:
    letters = tuple(ascii_uppercase[place] for place in places)
    return SubtaskDraft(text=option_text(options, letters), options=letters)


def option_text(options: Sequence[str], letters: Sequence[str]) -> str:
    """Return the text of a subtask that looks for evidence for some options."""
    chosen = (f"{letter}: {options[ascii_uppercase.index(letter)]}" for letter in letters)
    return f"Evidence for {'; '.join(chosen)}"


def has_rule_wording(task: Subtask, question: Question) -> bool:
    """Check whether a subtask still has the wording that the rules gave it."""
    drafts = (option_text(question.options, task.options),) if task.options else ()
    parts = decompose(question.text, ())
    return task.text in (*drafts, question.text, *(part.text for part in parts))


def query_of(task: Subtask, question: Question) -> str:
    """Return a subtask as a query; for options, the question restated with each of them."""
    if not task.options or not has_rule_wording(task, question):
        return as_query(task.text)
    chosen = (question.options[ascii_uppercase.index(letter)] for letter in task.options)
    restated = "; ".join(_restated(question.text, option) for option in chosen)
    return restated if words(restated) != words(task.text) else f"the video tells {restated}"


def _restated(question: str, option: str) -> str:
    restated = statement(question, option)
    return as_query(restated) if is_asked(restated) or len(words(restated)) < 2 else restated


def ranking_text_of(task: Subtask, question: Question) -> str:
    """Return the text that a subtask's search is ranked by.

    The question itself where the query only restates it: it ranks better than a statement with a
    gap.
    """
    if not has_rule_wording(task, question):
        return query_of(task, question)
    return question.text if task.options else task.text


def answer_claim(question: Question, option: str | None) -> str:
    """Return the claim that an answer's citations must support.

    The question restated with the option. An open answer is quoted from its citations or worded by
    a model: these must bear on the question.
    """
    if option is None:
        return question.text
    return statement(question.text, question.options[ascii_uppercase.index(option)])


def subtask_claim(task: Subtask, question: Question) -> str:
    """Return the claim that evidence for a subtask must support."""
    if not task.options:
        return ranking_text_of(task, question)
    return "; ".join(answer_claim(question, letter) for letter in task.options)


def as_query(text: str) -> str:
    """Turn a subtask into a query that the guard accepts: a statement of at least two words."""
    statement_ = as_statement(text)
    query = statement_ if len(words(statement_)) >= 2 else f"{statement_} in the video"
    is_copy = is_asked(query) or words(query) == words(text)
    return f"the video tells {query.rstrip('?')}" if is_copy else query
