"""Questions taken apart by rules: what kind they are, their parts, and parts put as statements."""

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
    """The kind of a question or subtask, by its words."""
    if _WHY.search(text) or text.lower().startswith(CAUSE.lower()):
        return QuestionKind.CAUSE
    if _LOOKS.search(text):
        return QuestionKind.LOOKS
    return QuestionKind.BROAD if _BROAD.search(text) else QuestionKind.FACT


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


def decompose(
    question: str, options: tuple[str, ...], most: int = SUBTASKS
) -> tuple[SubtaskDraft, ...]:
    """Subtasks by rule (SPEC section 2, Plan), at most ``most``: of options one each.

    Where there are more options than that, several share a subtask.
    """
    if options:
        return tuple(_for_options(options, group) for group in _grouped(options, most))
    if parts := several(question):
        return tuple(SubtaskDraft(text=part) for part in parts)
    said = question.strip()
    if _WHY.match(said):
        return (
            SubtaskDraft(text=EVENT + stated(said)),
            SubtaskDraft(text=CAUSE + stated(said), depends=("t1",)),
        )
    if _YES_NO.fullmatch(said.rstrip("?？ ")):
        return (SubtaskDraft(text=FOR + stated(said)), SubtaskDraft(text=AGAINST + stated(said)))
    return (SubtaskDraft(text=question),)


def _grouped(options: Sequence[str], most: int) -> list[range]:
    """The places of the options in at most so many groups, as even as can be."""
    groups = min(max(1, most), len(options))
    starts = [len(options) * i // groups for i in range(groups + 1)]
    return [range(start, stop) for start, stop in pairwise(starts)]


def _for_options(options: Sequence[str], places: Iterable[int]) -> SubtaskDraft:
    letters = tuple(ascii_uppercase[place] for place in places)
    return SubtaskDraft(text=option_text(options, letters), options=letters)


def option_text(options: Sequence[str], letters: Sequence[str]) -> str:
    """The words of a subtask that looks for what speaks for some options."""
    chosen = (f"{one}: {options[ascii_uppercase.index(one)]}" for one in letters)
    return f"Evidence for {'; '.join(chosen)}"


def is_own(task: Subtask, question: Question) -> bool:
    """Whether a subtask is worded as the rules word it, and by nobody since."""
    drafts = (option_text(question.options, task.options),) if task.options else ()
    parts = decompose(question.text, ())
    return task.text in (*drafts, question.text, *(part.text for part in parts))


def query_of(task: Subtask, question: Question) -> str:
    """A subtask as a query: for options the question restated with each of them."""
    if not task.options or not is_own(task, question):
        return as_query(task.text)
    chosen = (question.options[ascii_uppercase.index(one)] for one in task.options)
    told = "; ".join(_restated(question.text, option) for option in chosen)
    return told if words(told) != words(task.text) else f"the video tells {told}"


def _restated(question: str, option: str) -> str:
    said = statement(question, option)
    return as_query(said) if is_asked(said) or len(words(said)) < 2 else said


def sought_by(task: Subtask, question: Question) -> str:
    """The words that a subtask's own query is read by: the question's, where it restates them.

    A question is read better as it was asked than as a statement with a gap.
    """
    if not is_own(task, question):
        return query_of(task, question)
    if task.text.startswith((EVENT, AGAINST)):
        return query_of(task, question)
    whole = task.options or task.text.startswith((CAUSE, FOR))
    return question.text if whole else task.text


def answer_claim(question: Question, option: str | None) -> str:
    """What an answer's citations are to support: the question restated with the option.

    An open answer is quoted from its citations or worded by a model: these must bear on the
    question.
    """
    if option is None:
        return question.text
    return statement(question.text, question.options[ascii_uppercase.index(option)])


def subtask_claim(task: Subtask, question: Question) -> str:
    """What evidence that settles a subtask must bear on.

    What leads up to a cause is judged by the question itself, which says more than its parts do.
    """
    if not task.options:
        led = task.text.startswith((EVENT, CAUSE, FOR, AGAINST))
        return question.text if led else sought_by(task, question)
    return "; ".join(answer_claim(question, letter) for letter in task.options)


def as_query(text: str) -> str:
    """A subtask as a query that the guard takes: a statement of at least two words, no copy."""
    said = stated(text)
    query = said if len(words(said)) >= 2 else f"{said} in the video"
    taken = is_asked(query) or words(query) == words(text)
    return f"the video tells {query.rstrip('?')}" if taken else query
