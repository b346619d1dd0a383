"""How long what is kept of a video: by tiers of age, none unless set."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from domain.base import Frozen

Keep = Literal["fewer", "text", "nothing"]
RANK: dict[Keep, int] = {"fewer": 0, "text": 1, "nothing": 2}


class Tier(Frozen):
    """From an age on: fewer and smaller keyframes, text only, or nothing.

    ``keyframes`` a clip of at most ``side`` pixels are kept where ``keep`` is "fewer".
    """

    after_days: float = Field(gt=0)
    keep: Keep
    keyframes: PositiveInt = 1
    side: PositiveInt = 320


class RetainSettings(Frozen):
    """Tiers by age of watching, youngest first; before the first everything is kept."""

    tiers: tuple[Tier, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for one, then in pairwise(self.tiers):
            if then.after_days <= one.after_days:
                raise ValueError("tiers must begin one after the other")
            if RANK[then.keep] < RANK[one.keep]:
                raise ValueError(f"{then.keep!r} keeps more than {one.keep!r} before it")
        return self

    def tier(self, age: timedelta) -> Tier | None:
        """What holds for a video of that age; None: everything is kept."""
        due = [one for one in self.tiers if age >= timedelta(days=one.after_days)]
        return due[-1] if due else None
