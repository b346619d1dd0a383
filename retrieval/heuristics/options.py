"""Actors of lines, for questions whose options are people (English)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domain.memories import MemorySource
from domain.settings import DoingSettings
from retrieval.lines import Floats, LineSet, Matrix, Scores, search_text
from retrieval.terms import terms
from store.queries.search import StoredLine

if TYPE_CHECKING:
    from retrieval.ranking import CandidateLines, PreparedQuestion
    from retrieval.signals import Roster

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

FIRST_PERSON_SHARE = 0.1
"""Minimum share of first-person descriptions in a video with a narrator."""

_SAID = "said"
_TAG = r"<(?:face|voice|character)_\d+>"
_NAME = re.compile(rf"{_TAG}|\b[A-Z][a-z]+")
_WORD_NAME = re.compile(r"[A-Z][a-z]+")
_FIRST_PERSON = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|[Uu]s|[Oo]ur)\b")
_SELF = frozenset({"me", "mine", "i", "my", "myself"})
_JOINS = frozenset({"and", "with", "we", "together", "the"})
NOT_PEOPLE = frozenset(
    {"Other", "Others", "Unknown", "Music", "Someone", "Everyone", "Voice", "Unidentified"}
    | {"Male", "Female", "Speaker"}
)


@dataclass(frozen=True, eq=False)
class ActorLines:
    """M lines by actor; line numbers are ascending.

    ``by_speaker`` are lines by speaker, ``by_name`` descriptions by the names and tags in them;
    ``descriptions`` (M,) marks lines that are not speech, ``first_person`` (M,) those of them in
    the first person.
    """

    by_speaker: Mapping[str, Ints]
    by_name: Mapping[str, Ints]
    descriptions: Flags
    first_person: Flags

    def mask(self, names: Sequence[str], *, narrator: bool, speakers: Iterable[str]) -> Flags:
        """Mark the lines of one person with these names and tags, shape (M,).

        These are the lines they speak and descriptions that name them; for the narrator also
        descriptions in the first person, and those that name none of the ``speakers``.
        """
        mask = np.zeros(len(self.descriptions), dtype=np.bool_)
        for name in names:
            mask[self.by_speaker.get(name, _NONE)] = True
            mask[self.by_name.get(name, _NONE)] = True
        if not narrator:
            return mask
        unnamed = self.descriptions.copy()
        for name in speakers:
            unnamed[self.by_name.get(name, _NONE)] = False
        return mask | unnamed | self.first_person


def plain_names(speakers: Iterable[str]) -> dict[str, str]:
    """Return the speakers with a plain name (one capitalised word), by the name in lower case."""
    names = (name for name in speakers if _WORD_NAME.fullmatch(name))
    return {name.lower(): name for name in names if name not in NOT_PEOPLE}


_NONE: Ints = np.zeros(0, dtype=np.int64)


def actor_lines(lines: Sequence[StoredLine]) -> ActorLines:
    """Index lines by speaker and by the names in them."""
    by_speaker: dict[str, list[int]] = {}
    by_name: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.speaker:
            by_speaker.setdefault(line.speaker, []).append(number)
        if line.source != _SAID:
            for name in sorted(set(_NAME.findall(line.text))):
                by_name.setdefault(name, []).append(number)
    descriptions = np.array([line.source != _SAID for line in lines], dtype=np.bool_)
    first_person = [
        bool(descriptions[i] and _FIRST_PERSON.search(line.text)) for i, line in enumerate(lines)
    ]
    return ActorLines(
        _arrays(by_speaker), _arrays(by_name), descriptions, np.array(first_person, dtype=np.bool_)
    )


def people_in_option(
    option: str, known: Mapping[str, str], narrator: str | None
) -> tuple[str, ...]:
    """Return the people that an option names; () if over half of its words are not names."""
    words = re.findall(r"[^\W\d_]+", option.lower().replace("'s", "").replace("’s", ""))
    words = [word for word in words if word not in _JOINS]
    named = [narrator if word in _SELF else known.get(word) for word in words]
    people = [name for name in named if name]
    return tuple(dict.fromkeys(people)) if 2 * len(people) >= len(words) else ()


def are_people(options: Iterable[tuple[str, ...]]) -> bool:
    """Check whether at least 3 in 4 options, of two or more, are people."""
    has_people = [bool(option) for option in options]
    return len(has_people) > 1 and sum(has_people) >= 0.75 * len(has_people)


def _arrays(lists: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    return {name: np.array(numbers, dtype=np.int64) for name, numbers in lists.items()}


# Choice among options over a short video whose memory is mostly captions (English).
#
# A vision model's captions repeat the same scene every few seconds, in the third person. Over the
# few clips of a short video z-scores separate nothing, and question words (why, what ... after)
# dominate the vector of a question restated with an option. So an option is compared line by line
# as an action of the question's subject: "why did the boy in red run away?" and "to catch a ball"
# give "the boy to catch a ball". Word frequency is added. Signals that did not hold in folds over
# videos were left out: the cosine of option and question, a reranker, the line before or after an
# event.
#
# It is used if memory is mostly captions without a first-person narrator, the view is short, and
# options are neither times nor people.

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
