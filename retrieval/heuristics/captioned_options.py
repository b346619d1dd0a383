"""Choosing among options over a short video that is known by what somebody sees in it.

A vision model's captions tell the same scene second after second, in the third person. Over the few
clips of a short video nothing stands out from the rest, and a question's own words (why, what ...
after) hide what its options say. So an option is compared as a doing of whom the question is about,
line by line: of "why did the boy in red run away?" and "to catch a ball" that is "the boy to catch
a ball". Beside that counts how often its own words come, and how well it fits the question.

Switched by what is in memory and by the options: captions, nobody telling in the first person, few
clips; options that are neither times nor people.
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
    from retrieval.ranking import PreparedQuestion, QuestionVectors, SearchedLines
    from retrieval.signals.people import Roster

SHORT = 20
"""Most clips in view: over more, moments stand out and are ranked by how far they do."""
CAPTIONED = 0.5
"""At least this share of the lines are captions."""

STEEP = 6.0
"""Logits that a difference of 1 makes: fitted (conditional logit), and rounded."""


_DOES = r"(?:does|did|do|is|are|was|were|has|have|had|can|could|will|would)"
_WHEN = re.compile(
    r"\b(?:after|before|when|while|whenever|as|during|upon|once|until)\b .*", re.DOTALL
)
_PLACE = re.compile(
    r"\b(?:(?:at|in|near|towards?|from|by) (?:the )?(?:very )?"
    r"(?:start|beginning|middle|end)\b.*|(?:halfway|midway)\b.*|at first$)",
    re.DOTALL,
)
_DOING = re.compile(rf"^(?:what|how) {_DOES} (.+?) (?:do|doing|did|done|react|respond|feel)\b")
_ANY = re.compile(rf"^(?:why|how|where|what|who|when) {_DOES} (.+)$")
_BARE = re.compile(r"^(?:who|what|which|how many|how) (.+)$")
_LOOKS = re.compile(r"\s(?:in|with|on|at|wearing|of)\b .*", re.DOTALL)
_DETERMINERS = frozenset(
    {"the", "a", "an", "his", "her", "their", "this", "that", "these", "those"}
    | {"one", "two", "three", "four", "some", "all"}
)


def someone(question: str) -> str:
    """Whom a question is about, roughly: "the boy" of "why did the boy in red run away?"."""
    text = _PLACE.sub("", " ".join(question.rstrip("?. ").lower().split())).strip()
    text = _WHEN.sub("", text).strip() or text
    if doing := _DOING.match(text):
        return _LOOKS.sub("", doing[1]) or doing[1]
    found = _ANY.match(text) or _BARE.match(text)
    words = (found[1] if found else text).split()
    return " ".join(words[: 2 if words[0] in _DETERMINERS else 1]) if words else ""


def doings(question: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Each option as a doing of whom the question is about."""
    who = someone(question)
    return tuple(f"{who} {option}".strip() for option in options)


def is_described(lines: LineSet, asked: PreparedQuestion, roster: Roster) -> bool:
    """Check whether options are to be compared in this way, over all the lines of a view."""
    if not asked.options or not 0 < lines.cell_count <= SHORT or asked.timed:
        return False
    rows = [row for _, row in lines.rows]
    captions = sum(row.source == MemorySource.CAPTION for row in rows)
    if roster.narrated or captions < CAPTIONED * len(rows):
        return False
    return not roster.people([asked.people.as_written(option) for option in asked.options])


def described_support(
    found: SearchedLines,
    asked: PreparedQuestion,
    vectors: QuestionVectors,
    doings: Matrix,
    statements: Floats,
    weights: DoingSettings,
) -> Scores:
    """Return what each line says for each option, in logits, shape (O, M).

    Args:
        found: the lines, all of a short view.
        asked: the question.
        vectors: its vectors.
        doings: those of the options as doings, (O, D).
        statements: the cosines of every line with each statement, (O, M).
        weights: how much each signal counts.
    """
    lines = weights.statement * statements + weights.doing * found.lines.cosines(doings)
    fits = vectors.options @ vectors.question
    words = weights.words * _words(found.lines, asked) + weights.fits * fits
    return np.asarray(STEEP * (lines + words[:, None]), dtype=np.float64)


def _words(lines: LineSet, asked: PreparedQuestion) -> Scores:
    """How often the words come that an option has and the question has not, (O,), in [0, 1].

    Of each word the root of the share of lines; a word that comes twice as often is not twice as
    telling.
    """
    known = set(terms(asked.text))
    own = [sorted(set(terms(option)) - known) for option in asked.options]
    counts = Counter(chain.from_iterable(terms(search_text(row)) for _, row in lines.rows))

    def share(word: str) -> float:
        return float(np.sqrt(min(1.0, counts[word] / lines.line_count)))

    return np.array([np.mean([share(word) for word in words] or [0.0]) for words in own])
