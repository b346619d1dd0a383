"""Evaluating: what a run over a data set is, and what judges say of one answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from domain.base import Frozen
from domain.choices import AblationStage, Protocol
from domain.settings import AskSettings


class QuestionPart(StrEnum):
    """What a question is asked for."""

    LEARN = "learn"
    TEST = "test"


class ErrorType(StrEnum):
    """Why an answer is wrong (the paper's four), where it can be told."""

    ABSENT = "memory absent"
    COARSE = "memory coarse"
    LOCALISATION = "event localisation"
    SYNTHESIS = "answer synthesis"
    UNKNOWN = "cannot be told"


WITH, WITHOUT = "with skills", "without skills"
"""Arms of a run that learns: a question is asked in each."""


PLAIN = "baseline"
"""The arm in which the option closest to any line of the memory is chosen."""


class RunSettings(Frozen):
    """What makes two runs comparable; a run goes on with the same settings only.

    ``digest`` is of the questions, ``judge`` the model that judges open answers, "" for none;
    ``reasoner`` is ``local`` where there is no language model. ``models`` says which model does
    what, since a profile of that name may be another one by now. ``baseline``: multiple choice is
    answered the plain way as well.
    """

    dataset: str
    profile: str
    protocol: Protocol
    stages: tuple[AblationStage, ...] = (AblationStage.WHOLE,)
    limit: PositiveInt | None = None
    questions: NonNegativeInt
    digest: str
    judge: str = ""
    reasoner: str = "llm"
    baseline: bool = False
    models: tuple[str, ...] = ()
    ask: AskSettings = AskSettings()


class Verdict(Frozen):
    """What judges say of one answer. Shares are in [0, 1]; None: nothing to say it from.

    ``right``: None is unjudged, and ``why`` says why. ``cited``: the share of cited spans that hold
    marked evidence; ``top``: whether the first one does. ``iou``: temporal intersection over union
    of the cited and the marked spans. ``ref300``: the same over bins of 300 s
    (Ref@300). ``failed``: a model failed, so that the same command tries it again.
    """

    right: bool | None
    judge: str
    why: str = ""
    cited: float | None = Field(default=None, ge=0, le=1)
    top: bool | None = None
    iou: float | None = Field(default=None, ge=0, le=1)
    ref300: float | None = Field(default=None, ge=0, le=1)
    fault: ErrorType | None = None
    failed: bool = False

    @model_validator(mode="before")
    @classmethod
    def _without_former(cls, told: Any) -> Any:
        """Verdicts of earlier versions have ``near``, which measured something else."""
        return {k: v for k, v in told.items() if k != "near"} if isinstance(told, dict) else told
