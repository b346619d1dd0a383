"""The review that a skill must pass before it is stored: plain, general and short (section 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from domain.asking import Mode
from domain.skills import Skill
from models.structured import CHARACTERS_A_TOKEN

INSTRUCTION = 240
"""Characters of one instruction at most."""
MOST_TOKENS = 300
ANSWER = 6
"""Characters from which an answer is distinctive."""

_MARKS = re.compile(r"[<>{}`\\]|\[[a-z]?\d+\]")
_CALLS = re.compile(r"\b[a-z_]+\(|\b[A-Za-z]+_[A-Za-z_]+\b|=>|->|==")
_LETTER = re.compile(
    r"\b(?i:options?|answers?|choices?)\s*+(?:(?i:is|are|:|=)\s*+)?[\"'‘“(]?[A-Z]\b\)?(?!\w)"
    r"|\b(?i:choose|pick|select|reply|prefer|take)\s++[\"'‘“(]?[A-HJ-Z]\b(?!\w)"
    r"|\b(?i:first|second|third|fourth|fifth|last|same)\s++(?i:options?|choices?|letters?)\b"
)
_LOUD = re.compile(r"\b[A-Z]{4,}\b")
_MODES = frozenset(mode.upper() for mode in Mode)


def review(skill: Skill, names: Iterable[str] = (), answers: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the faults of a skill, as sentences; empty if it may be stored.

    Args:
        skill: the skill under review.
        names: known people, of whom advice must not speak.
        answers: the answers of the questions that it was learned from.
    """
    lines = (skill.description, *skill.triggers, *skill.instructions)
    return tuple(dict.fromkeys([*_forms(skill, lines), *_specific(lines, names, answers)]))


def _forms(skill: Skill, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if _MARKS.search(line) or _CALLS.search(line):
            yield f"{line!r} has syntax in it: skills are plain sentences"
        elif capitals := [word for word in _LOUD.findall(line) if word not in _MODES]:
            yield f"{line!r} names {capitals[0]}, which is no search mode"
    for line in skill.instructions:
        if not line.strip():
            yield "an instruction is empty"
        if len(line) > INSTRUCTION:
            yield f"{line[:40]!r}... is longer than {INSTRUCTION} characters"
    if tokens_of(skill.instructions) > MOST_TOKENS:
        yield f"the instructions are longer than {MOST_TOKENS} tokens"


def _specific(lines: Sequence[str], names: Iterable[str], answers: Iterable[str]) -> Iterator[str]:
    text = "\n".join(lines)
    for line in lines:
        if _LETTER.search(line):
            yield f"{line!r} says which option is right"
    # A name may be a word too ("Will", "May"): it counts as a name only in its exact case.
    for name in names:
        if _has(text, name, 0):
            yield f"{name!r} is somebody of one video: skills are for all"
    for answer in answers:
        if len(answer) >= ANSWER and _has(text, answer, re.IGNORECASE):
            yield f"{answer!r} is the answer of a question"


def _has(text: str, words: str, flags: int) -> bool:
    return bool(words.strip()) and bool(
        re.search(rf"(?<!\w){re.escape(words.strip())}(?!\w)", text, flags)
    )


def tokens_of(instructions: Iterable[str]) -> int:
    """Estimate the tokens that instructions take in a prompt."""
    return sum(len(line) // CHARACTERS_A_TOKEN + 1 for line in instructions)
