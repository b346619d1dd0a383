"""What a person changes at a round of a trajectory, to see how it would have gone on."""

from __future__ import annotations

from pydantic import Field

from domain.asking import Action, Evidence
from domain.base import Frozen


class PlanLine(Frozen):
    """One subtask of an edited plan. Without an id it is a new one."""

    id: str | None = Field(default=None, pattern=r"^t[1-9]\d*$")
    text: str = Field(min_length=1)
    depends: tuple[str, ...] = ()


class ForkEdit(Frozen):
    """What is changed; None leaves it as it was.

    ``plan`` is the whole plan: a line with another text is reworded, one that is missing is given
    up, one without an id is added. ``action`` is what the round does, ``evidence`` what its search
    finds, ``profile`` the set of models that goes on from there.
    """

    plan: tuple[PlanLine, ...] | None = None
    action: Action | None = None
    evidence: tuple[Evidence, ...] | None = None
    profile: str | None = None
