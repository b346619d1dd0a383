"""Skills: short advice for questions of one kind, and what it is learned from (section 3)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from pydantic import Field, PositiveInt

from domain.asking import Mode
from domain.base import Frozen, StorableText


class Topic(StrEnum):
    """What a skill helps with."""

    DECOMPOSITION = "decomposition"
    MODE = "mode"
    CALIBRATION = "calibration"
    STRATEGY = "strategy"


class Tone(StrEnum):
    """Positive skills are shown from the start, cautionary ones once the search goes badly."""

    POSITIVE = "positive"
    CAUTIONARY = "cautionary"


class Signal(StrEnum):
    """An observation: what a judged trajectory says about how it was searched (section 3)."""

    CALIBRATION = "calibration"
    SEARCH_FAIL = "search_fail"
    ERROR = "error"
    HARD_WIN = "hard_win"
    SEARCH_WIN = "search_win"
    DECOMPOSE_WIN = "decompose_win"
    DECOMPOSE_FAIL = "decompose_fail"
    DECOMPOSE_MISS = "decompose_miss"
    SUBTASK_STALL = "subtask_stall"
    STRATEGY = "strategy"
    """Of answers by several strategies to the same questions: which was right most often."""

    @property
    def topic(self) -> Topic:
        """The topic of a skill learned from this signal."""
        if self is Signal.CALIBRATION:
            return Topic.CALIBRATION
        if self is Signal.STRATEGY:
            return Topic.STRATEGY
        split = self.value.startswith("decompose") or self is Signal.SUBTASK_STALL
        return Topic.DECOMPOSITION if split else Topic.MODE

    @property
    def tone(self) -> Tone:
        """Whether the signal reports a success or a failure."""
        success = self.value.endswith("_win") or self is Signal.STRATEGY
        return Tone.POSITIVE if success else Tone.CAUTIONARY


class Pattern(Frozen):
    """Observations that recur: one signal for questions of one type. Skills are learned from it."""

    signal: Signal
    question_type: str

    @property
    def name(self) -> str:
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.signal} {self.question_type}".lower())
        return words.strip("-")[:60].strip("-")


class JudgedTrajectory(Frozen):
    """Whether a trajectory's answer is right; None if it could not be judged."""

    trajectory: str
    question_type: str
    right: bool | None


class ComparisonKey(NamedTuple):
    """What makes answers comparable; fields are "" outside of evaluations."""

    question_type: str
    profile: str = ""
    dataset: str = ""
    run: str = ""


class ComparedAnswer(NamedTuple):
    """A judged answer with the key of those it may be compared with."""

    trajectory: str
    alike: ComparisonKey
    right: bool | None


class Share(NamedTuple):
    """A number of judged answers, and how many of them were right."""

    judged: int
    right: int


class Policy(Frozen):
    """What a skill changes besides what a model reads as advice.

    ``modes``: for a reasoner that follows rules, the modes of a subtask's first, second and third
    attempt; empty: unchanged. ``split``: whether it splits a question into subtasks; None:
    unchanged. ``strategy``: which strategy is asked, where it is to be chosen, and in at most how
    many ``rounds``; None: the skill chooses none.
    """

    modes: tuple[Mode, ...] = Field(default=(), max_length=3)
    split: bool | None = None
    strategy: str | None = Field(default=None, pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)
    rounds: PositiveInt | None = Field(default=None, le=1_000)


class Advice(Frozen):
    """What a question is given of a skill."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)
    version: PositiveInt = 1
    tone: Tone = Tone.POSITIVE
    instructions: tuple[StorableText, ...] = Field(max_length=5)
    policy: Policy = Policy()


# Section 3: one to five instructions and trigger keywords; the cosine to these and the description
# routes it.
class Skill(Advice):
    """Advice for questions like its description and triggers; a change is a new version."""

    topic: Topic
    description: StorableText = Field(
        min_length=1, max_length=300, description="which questions it is for"
    )
    triggers: tuple[StorableText, ...] = Field(default=(), max_length=12, description="keywords")
    instructions: tuple[StorableText, ...] = Field(min_length=1, max_length=5)

    @property
    def about(self) -> str:
        """The text that questions are compared with."""
        return ". ".join((self.description, ", ".join(self.triggers))).strip(". ")


class RoutedSkill(Advice):
    """A skill given to a question; ``score`` is its cosine to the question."""

    score: float = Field(ge=-1, le=1)


class StrategyChoice(Frozen):
    """How the strategy of a question was chosen by what was learned.

    ``skill`` is what it was chosen by; None where the default was taken, and ``why`` says why.
    """

    skill: RoutedSkill | None = None
    why: str


def combined_policy(skills: Iterable[RoutedSkill]) -> Policy:
    """Combine the policies of skills; where two set the same thing, the first one counts."""
    policies = [skill.policy for skill in skills]
    return Policy(
        modes=next((policy.modes for policy in policies if policy.modes), ()),
        split=next((policy.split for policy in policies if policy.split is not None), None),
    )
