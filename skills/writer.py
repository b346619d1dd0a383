"""Signals: what a judged trajectory says about how it was searched (section 3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import BaseModel, Field, ValidationError

from domain.asking import Mode, Subtask, SubtaskState
from domain.errors import ModelError
from domain.skills import Pattern, Policy, Signal, Skill
from domain.trajectory import Ended, Event, EvidenceRetrieved, Planned, Replanned, RoundClosed
from domain.words import strip_invisible
from models.messages import Message, prompts_beside, user
from models.structured import CHARACTERS_A_TOKEN

SURE = 0.8
"""Confidence from which a wrong answer was overconfident."""
LONG, HARD, EASY = 4, 3, 1
"""Rounds of a long search that failed, of a hard win, and of an easy one."""

E = TypeVar("E")


@dataclass(frozen=True)
class Course:
    """How a search went. ``queries``: how many were made; ``subtasks``: as they ended."""

    rounds: int
    queries: int
    confidence: float
    subtasks: tuple[Subtask, ...]


def course_of(events: Sequence[Event]) -> Course | None:
    """Summarise a search from its events; None if it did not end with an answer."""
    ended = _all(events, Ended)
    if not ended or ended[-1].answer is None:
        return None
    ledgers = [e for e in events if isinstance(e, Planned | Replanned | RoundClosed)]
    return Course(
        rounds=ended[-1].rounds,
        queries=sum(event.round > 0 for event in _all(events, EvidenceRetrieved)),
        confidence=ended[-1].answer.confidence,
        subtasks=ledgers[-1].subtasks if ledgers else (),
    )


def signals(course: Course, attempts: int, *, right: bool) -> tuple[Signal, ...]:
    """Return the signals of a judged answer.

    A question is split if it has several subtasks. A right split is a win if all subtasks were
    resolved; a wrong one a failure; a wrong answer to an unsplit question suggests a missed split.
    A subtask stalls when it uses all its ``attempts`` unresolved.
    """
    is_split = len(course.subtasks) > 1
    resolved = [task.state is SubtaskState.RESOLVED for task in course.subtasks]
    if right:
        found = {
            Signal.HARD_WIN: course.rounds >= HARD and course.queries >= 2,
            Signal.SEARCH_WIN: course.rounds <= EASY,
            Signal.DECOMPOSE_WIN: is_split and all(resolved),
        }
    else:
        stalled = zip(course.subtasks, resolved, strict=True)
        found = {
            Signal.ERROR: True,
            Signal.CALIBRATION: course.confidence >= SURE,
            Signal.SEARCH_FAIL: course.rounds >= LONG,
            Signal.DECOMPOSE_FAIL: is_split,
            Signal.DECOMPOSE_MISS: not is_split,
            Signal.SUBTASK_STALL: any(
                task.attempts >= attempts and not is_resolved for task, is_resolved in stalled
            ),
        }
    return tuple(signal for signal, is_so in found.items() if is_so)


def _all(events: Iterable[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


# The review that a skill must pass before it is stored: plain, general and short (section 3).

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
        names: known people, of whom advice must not speak.
        answers: the answers of the questions that it was learned from.
    """
    lines = (skill.description, *skill.triggers, *skill.instructions)
    faults = list[str]()
    for line in lines:
        if _MARKS.search(line) or _CALLS.search(line):
            faults.append(f"{line!r} has syntax in it: skills are plain sentences")
        elif capitals := [word for word in _LOUD.findall(line) if word not in _MODES]:
            faults.append(f"{line!r} names {capitals[0]}, which is no search mode")
    for line in skill.instructions:
        if not line.strip():
            faults.append("an instruction is empty")
        if len(line) > INSTRUCTION:
            faults.append(f"{line[:40]!r}... is longer than {INSTRUCTION} characters")
    if tokens_of(skill.instructions) > MOST_TOKENS:
        faults.append(f"the instructions are longer than {MOST_TOKENS} tokens")
    text = "\n".join(lines)
    faults += [f"{line!r} says which option is right" for line in lines if _LETTER.search(line)]
    # A name may be a word too ("Will", "May"): it counts as a name only in its exact case.
    for name in names:
        if _has(text, name, 0):
            faults.append(f"{name!r} is somebody of one video: skills are for all")
    for answer in answers:
        if len(answer) >= ANSWER and _has(text, answer, re.IGNORECASE):
            faults.append(f"{answer!r} is the answer of a question")
    return tuple(dict.fromkeys(faults))


def _has(text: str, words: str, flags: int) -> bool:
    return bool(words.strip()) and bool(
        re.search(rf"(?<!\w){re.escape(words.strip())}(?!\w)", text, flags)
    )


def tokens_of(instructions: Iterable[str]) -> int:
    """Estimate the tokens that instructions take in a prompt."""
    return sum(len(line) // CHARACTERS_A_TOKEN + 1 for line in instructions)


# The port that words a pattern as a skill, and the writer without a language model.

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


# The skill writer with a language model; code reviews what it writes.

prompt = prompts_beside(__file__)
SHOWN = 20
"""Questions that the model is shown at most."""
LINE = 300
_BRACKETS = str.maketrans("<>＜＞", "()()")


class WrittenSkill(BaseModel):
    """Advice for questions of one kind."""

    description: str = Field(min_length=1, max_length=300)
    triggers: list[str] = Field(default=[], max_length=12)
    instructions: list[str] = Field(min_length=1, max_length=5)


class SkillWriterChat(Protocol):
    """A chat with the model (``models.chat.StructuredChat``)."""

    def ask(
        self, messages: Sequence[Message], schema: type[WrittenSkill], *, purpose: str
    ) -> WrittenSkill:
        """Ask for a value of type ``schema``."""


class LlmSkillWriter:
    """A language model words the advice; the policy is what the examples have in common."""

    def __init__(self, chat: Callable[[], SkillWriterChat]) -> None:
        self._chat = chat
        self._local = LocalSkillWriter()

    def write(
        self, pattern: Pattern, examples: Sequence[Example], known: Skill | None, words: Words
    ) -> Skill:
        """Write the skill for a pattern.

        Raises:
            ModelError: the model returns nothing, or no valid skill.
        """
        base = self._local.write(pattern, examples, known, words)
        lines = list[str]()
        for example in examples[:SHOWN]:
            lines.append(f"<question>{_quoted(example.question)}</question>")
            lines += (f"- searched {_quoted(search)}" for search in example.searches)
            lines.append(f"- answered {_quoted(example.answer)}")
        earlier = "\n".join(f"- {line}" for line in known.instructions) if known else ""
        request = prompt(
            "write",
            signal=pattern.signal.value.replace("_", " "),
            kind=_quoted(pattern.question_type),
            meaning=" ".join(ADVICE[pattern.signal]),
            examples="\n".join(lines),
            known=f"What was learned of it before, to be refined:\n{earlier}" if earlier else "",
        )
        written = self._chat().ask([user(request)], WrittenSkill, purpose="skill")
        try:
            return Skill.model_validate(base.model_dump() | written.model_dump())
        except ValidationError as error:
            raise ModelError(f"what was written is no skill: {error.errors()[0]['msg']}") from error


def _quoted(text: str) -> str:
    """Put a text on one line that cannot close the marks around it."""
    return " ".join(strip_invisible(text).translate(_BRACKETS).split())[:LINE]
