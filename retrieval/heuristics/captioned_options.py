"""Choice among options over a short video whose memory is mostly captions (English).

A vision model's captions repeat the same scene every few seconds, in the third person. Over the few
clips of a short video z-scores separate nothing, and question words (why, what ... after) dominate
the vector of a question restated with an option. So an option is compared line by line as an
action of the question's subject: "why did the boy in red run away?" and "to catch a ball" give "the
boy to catch a ball". Word frequency is added. Signals that did not hold in folds over videos were
left out: the cosine of option and question, a reranker, the line before or after an event.

It is used if memory is mostly captions without a first-person narrator, the view is short, and
options are neither times nor people.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from domain.memories import MemorySource
from domain.settings import DoingSettings
from retrieval.line_set import Floats, LineSet, Matrix, Scores, search_text
from retrieval.terms import terms

if TYPE_CHECKING:
    from retrieval.ranking import CandidateLines, PreparedQuestion
    from retrieval.signals.people import Roster

SHORT = 20
"""Maximum number of clips; longer views are ranked by z-scores (``retrieval.ranking``)."""
CAPTIONED = 0.5
"""Minimum share of captions among the lines."""

LOGITS = 6.0
"""Logits per unit of score: fitted (conditional logit), and rounded."""


_DOES = r"(?:does|did|do|is|are|was|were|has|have|had|can|could|will|would)"
_WHEN = re.compile(
    r"\b(?:after|before|when|while|whenever|as|during|upon|once|until)\b .*", re.DOTALL
)
_PLACE = re.compile(
    r"\b(?:(?:at|in|near|towards?|from|by) (?:the )?(?:very )?"
    r"(?:start|beginning|middle|end)\b.*|(?:halfway|midway)\b.*|at first$)",
    re.DOTALL,
)
_ACTION = re.compile(rf"^(?:what|how) {_DOES} (.+?) (?:do|doing|did|done|react|respond|feel)\b")
_ANY = re.compile(rf"^(?:why|how|where|what|who|when) {_DOES} (.+)$")
_BARE = re.compile(r"^(?:who|what|which|how many|how) (.+)$")
_LOOKS = re.compile(r"\s(?:in|with|on|at|wearing|of)\b .*", re.DOTALL)
_DETERMINERS = frozenset(
    {"the", "a", "an", "his", "her", "their", "this", "that", "these", "those"}
    | {"one", "two", "three", "four", "some", "all"}
)


def subject_of(question: str) -> str:
    """Return a question's subject, roughly: "the boy" of "why did the boy in red run away?"."""
    text = _PLACE.sub("", " ".join(question.rstrip("?. ").lower().split())).strip()
    text = _WHEN.sub("", text).strip() or text
    if action := _ACTION.match(text):
        return _LOOKS.sub("", action[1]) or action[1]
    match = _ANY.match(text) or _BARE.match(text)
    words = (match[1] if match else text).split()
    return " ".join(words[: 2 if words[0] in _DETERMINERS else 1]) if words else ""


def option_actions(question: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return each option as an action of the question's subject."""
    who = subject_of(question)
    return tuple(f"{who} {option}".strip() for option in options)


def is_captioned(lines: LineSet, question: PreparedQuestion, roster: Roster) -> bool:
    """Check whether options are compared as actions over these lines, all of the view."""
    if not question.options or not 0 < lines.cell_count <= SHORT or question.timed:
        return False
    rows = [row for _, row in lines.rows]
    captions = sum(row.source == MemorySource.CAPTION for row in rows)
    if roster.narrated or captions < CAPTIONED * len(rows):
        return False
    return not roster.people(
        [question.people.with_former_names(option) for option in question.options]
    )


def captioned_support(
    candidates: CandidateLines,
    question: PreparedQuestion,
    actions: Matrix,
    statements: Floats,
    weights: DoingSettings,
) -> Scores:
    """Return the support of each option by each line, in logits, shape (O, M).

    Args:
        candidates: All lines of a short view.
        actions: The vectors of the options as actions, (O, D).
        statements: The cosines of every line with each statement, (O, M).
        weights: The weight of each signal.
    """
    lines = weights.statement * statements + weights.doing * candidates.lines.cosines(actions)
    words = weights.words * _words(candidates.lines, question)
    return np.asarray(LOGITS * (lines + words[:, None]), dtype=np.float64)


def _words(lines: LineSet, question: PreparedQuestion) -> Scores:
    """Return the frequency of each option's terms that the question lacks, (O,), in [0, 1].

    It is the mean over terms of the square root of a term's count divided by the number of lines.
    """
    known = set(terms(question.text))
    option_terms = [sorted(set(terms(option)) - known) for option in question.options]
    counts = Counter(chain.from_iterable(terms(search_text(row)) for _, row in lines.rows))

    def share(word: str) -> float:
        return float(np.sqrt(min(1.0, counts[word] / lines.line_count)))

    return np.array([np.mean([share(word) for word in words] or [0.0]) for words in option_terms])
