"""Evaluation: the settings of a run over a data set, and a judge's verdict on one answer."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field, NonNegativeInt, PositiveInt

from domain.base import Frozen
from domain.evaluation_options import AblationStage, Protocol
from domain.settings import AskSettings


class QuestionPart(StrEnum):
    """Whether a question is learned from or tested on."""

    LEARN = "learn"
    TEST = "test"


class ErrorType(StrEnum):
    """Why an answer is wrong (the paper's four types), if it can be determined."""

    ABSENT = "memory absent"
    COARSE = "memory coarse"
    LOCALISATION = "event localisation"
    SYNTHESIS = "answer synthesis"
    UNKNOWN = "cannot be told"


WITH_SKILLS = "with skills"
"""The arm of a run that learns in which questions are given skills."""
WITHOUT_SKILLS = "without skills"
"""The arm of a run that learns in which questions are given none."""
BASELINE_ARM = "baseline"
"""The arm that chooses the option closest to any line of the memory."""


class RunSettings(Frozen):
    """What makes two runs comparable; a run resumes with the same settings only.

    ``digest`` is of the questions; ``judge`` is the model that judges open answers, "" for none;
    ``reasoner`` is ``local`` without a language model. ``models`` lists which model does what,
    since the profile of that name may have changed since. ``baseline``: multiple choice is also
    answered by the baseline. ``strategies`` are asked besides that of ``ask``, an arm each; with
    ``auto`` among them the others are asked on both halves of the videos, and ``auto`` learns from
    one and is asked on the other.
    """

    dataset: str
    profile: str
    protocol: Protocol
    stages: tuple[AblationStage, ...] = (AblationStage.WHOLE,)
    strategies: tuple[str, ...] = ()
    limit: PositiveInt | None = None
    questions: NonNegativeInt
    digest: str
    judge: str = ""
    reasoner: str = "llm"
    baseline: bool = False
    models: tuple[str, ...] = ()
    ask: AskSettings = AskSettings()


class EvaluationRun(Frozen):
    """A run, and how many of its questions (in all arms) are planned and judged.

    ``state``: running, done, stopped, or broken off (no process runs it).
    """

    name: str
    settings: RunSettings
    state: str
    note: str = ""
    began_at: datetime
    ended_at: datetime | None = None
    planned: NonNegativeInt
    judged: NonNegativeInt

    @property
    def total(self) -> int:
        """How many questions there are: more may be planned than the settings count, by arms."""
        return max(self.planned, self.settings.questions)


class AnswerUsage(Frozen):
    """What an answer took, and by what it was made; nothing yet of one that was not begun.

    ``skills`` are the names of the skills given to the question, ``strategy`` is what was asked,
    and ``chosen_by`` the skill that it was chosen by, "" for none. The judge's calls are not
    counted.
    """

    rounds: NonNegativeInt = 0
    tokens: NonNegativeInt = 0
    seconds: float = 0.0
    cost_usd: float = 0.0
    skills: tuple[str, ...] = ()
    strategy: str = ""
    chosen_by: str = ""


class Verdict(Frozen):
    """The verdict of the judges on one answer. Shares are in [0, 1]; None: not measurable.

    ``right``: None is unjudged, and ``why`` says why. ``cited``: the share of cited spans that hold
    marked evidence; ``top``: whether the first one does. ``iou``: temporal intersection over union
    of the cited and the marked spans. ``ref300``: the same over bins of 300 s (Ref@300).
    ``m3_bench``: whether it is right by the rule of M3-Bench, for its open questions. ``failed``: a
    model failed, so that the same command tries again.
    """

    right: bool | None
    judge: str
    why: str = ""
    cited: float | None = Field(default=None, ge=0, le=1)
    top: bool | None = None
    iou: float | None = Field(default=None, ge=0, le=1)
    ref300: float | None = Field(default=None, ge=0, le=1)
    m3_bench: bool | None = None
    fault: ErrorType | None = None
    failed: bool = False
