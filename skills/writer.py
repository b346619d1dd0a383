"""The port that words a pattern as a skill, and the writer without a language model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.asking import Mode
from domain.skills import Pattern, Policy, Signal, Skill
from skills.signals import Course

TRIGGERS = 5
LONGEST = 3
"""Modes of a policy at most: one for each attempt."""


@dataclass(frozen=True)
class Example:
    """A trajectory in which a pattern was seen.

    ``modes``: of its searches, in order; ``searches``: the mode of each, what it added, and its
    masked query, as in ``event (+60%): who opens the …``; ``answer``: how it was judged, how sure
    it was, and the masked answer.
    """

    trajectory: str
    question: str
    course: Course
    modes: tuple[Mode, ...] = ()
    searches: tuple[str, ...] = ()
    answer: str = ""


class SkillWriter(Protocol):
    """Makes a skill of a pattern; code reviews it before it is stored."""

    def write(
        self, pattern: Pattern, examples: Sequence[Example], known: Skill | None, words: Words
    ) -> Skill:
        """Write the skill for a pattern; ``known`` is the earlier skill to refine.

        Raises:
            ModelError: no skill could be written.
        """


class Words(Protocol):
    """Extracts the words that a question is about."""

    def __call__(self, text: str) -> Iterable[str]:
        """Return the words without those that every question has."""


ADVICE: dict[Signal, tuple[str, ...]] = {
    Signal.CALIBRATION: (
        "Sure answers to such questions were often wrong: look for a second piece of evidence.",
        "Where sources differ, say so and be less sure.",
    ),
    Signal.SEARCH_FAIL: (
        "Long searches for such questions often failed: change the mode, not only the words.",
    ),
    Signal.ERROR: ("Such questions are often answered wrongly: compare all evidence first.",),
    Signal.HARD_WIN: ("Such questions took several searches: go on after the first finding.",),
    Signal.SEARCH_WIN: ("One search is often enough for such questions: answer when it fits.",),
    Signal.DECOMPOSE_WIN: ("Split such questions into their parts, and settle each.",),
    Signal.DECOMPOSE_FAIL: ("Splitting such questions did not help: ask for the one fact.",),
    Signal.DECOMPOSE_MISS: ("Left whole, such questions went wrong: split them into parts.",),
    Signal.SUBTASK_STALL: (
        "Subtasks of such questions got stuck: put them more widely, or drop what is not needed.",
    ),
    Signal.STRATEGY: ("One strategy answered such questions best: ask it.",),
}
"""What each signal teaches."""

SPLITS = {
    Signal.DECOMPOSE_WIN: True,
    Signal.DECOMPOSE_MISS: True,
    Signal.DECOMPOSE_FAIL: False,
    Signal.SUBTASK_STALL: False,
}


class LocalSkillWriter:
    """Composes a skill from what its examples have in common: words, and modes that won."""

    def write(
        self, pattern: Pattern, examples: Sequence[Example], known: Skill | None, words: Words
    ) -> Skill:
        """Write the skill for a pattern; the same examples give the same skill."""
        triggers = common_words([example.question for example in examples], words)
        return Skill(
            name=known.name if known else pattern.name,
            topic=pattern.signal.topic,
            tone=pattern.signal.tone,
            description=description(pattern, triggers),
            triggers=triggers,
            instructions=ADVICE[pattern.signal],
            policy=Policy(
                modes=winning_modes(examples) if pattern.signal.value.endswith("_win") else (),
                split=SPLITS.get(pattern.signal),
            ),
        )


def masked(text: str, question: str, words: Words) -> str:
    """Return a text with "…" for all words that neither its question has nor every text.

    A query and an answer may repeat what was heard in a video, and a skill is read with all later
    questions: what the user did not say stays out, and the shape of the text is still seen.
    """
    asked = set(words(question))
    kept = (word if asked.issuperset(words(word)) else "…" for word in re.findall(r"[^\W_]+", text))
    return re.sub(r"…( …)+", "…", " ".join(kept))


def description(pattern: Pattern, triggers: Sequence[str]) -> str:
    """Describe the questions of a pattern: their kind, and words that they share."""
    about = f", such as those about {', '.join(triggers)}" if triggers else ""
    kind = pattern.question_type.replace("_", " ")
    return f"Questions of the kind {kind}{about}"


def common_words(questions: Sequence[str], words: Words) -> tuple[str, ...]:
    """Return the words that at least half of the questions have, most frequent first."""
    counted = Counter(word for question in questions for word in dict.fromkeys(words(question)))
    shared = [word for word, count in counted.items() if 2 * count >= len(questions)]
    return tuple(sorted(shared, key=lambda word: (-counted[word], word))[:TRIGGERS])


def winning_modes(examples: Sequence[Example]) -> tuple[Mode, ...]:
    """Return the beginning of a search that most examples share; empty if they differ."""
    starts = Counter(example.modes[:LONGEST] for example in examples if example.modes)
    best = sorted(starts.items(), key=lambda pair: (-pair[1], pair[0]))[:1]
    return best[0][0] if best and 2 * best[0][1] > len(examples) else ()
