"""Retention: how much of a video is kept by age; everything unless configured."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from domain.base import Frozen

Keep = Literal["fewer", "text", "nothing"]
RANK: dict[Keep, int] = {"fewer": 0, "text": 1, "nothing": 2}


class Tier(Frozen):
    """What is kept from an age on: fewer and smaller keyframes, text only, or nothing.

    ``keyframes`` a clip, of at most ``side`` pixels, stay if ``keep`` is "fewer".
    """

    after_days: float = Field(gt=0)
    keep: Keep
    keyframes: PositiveInt = 1
    side: PositiveInt = 320


class RetainSettings(Frozen):
    """Tiers by age since watching, youngest first; before the first one everything is kept."""

    tiers: tuple[Tier, ...] = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for earlier, later in pairwise(self.tiers):
            if later.after_days <= earlier.after_days:
                raise ValueError("tiers must begin one after the other")
            if RANK[later.keep] < RANK[earlier.keep]:
                raise ValueError(f"{later.keep!r} keeps more than {earlier.keep!r} before it")
        return self

    def tier(self, age: timedelta) -> Tier | None:
        """Return the tier of a video of that age; None: everything is kept."""
        due = [tier for tier in self.tiers if age >= timedelta(days=tier.after_days)]
        return due[-1] if due else None
