"""The numbers of MemDreamer, with the paper's defaults."""

from __future__ import annotations

from typing import Self

from pydantic import PositiveInt, model_validator

from domain.base import Frozen

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
"""In milliseconds."""

Limits = tuple[PositiveInt, PositiveInt]
"""The least and the most of something."""


class HierarchySettings(Frozen):
    """Settings of MemDreamer's hierarchy, tools and loop.

    A window of ``window_ms`` at most is cut into macro events; a model is asked for some of
    ``episode_ms``. A super event has ``super_macros`` macro events; of videos of ``long_video_ms``
    and more there are ``long_supers`` super events. A label has fewer than ``label_words`` words, a
    description of a super event ``super_words``; the root has ``themes`` and ``root_entities``.
    A round sends ``round_tokens`` at most, and the budget of a run is for all of them.
    """

    window_ms: PositiveInt = 10 * MINUTE
    episode_ms: Limits = (3 * MINUTE, 8 * MINUTE)
    key_entities: PositiveInt = 10

    super_macros: Limits = (3, 8)
    long_video_ms: PositiveInt = HOUR
    long_supers: Limits = (10, 20)
    label_words: PositiveInt = 10
    super_words: Limits = (100, 200)
    root_sentences: Limits = (3, 5)
    themes: Limits = (3, 5)
    root_entities: Limits = (5, 10)

    found: PositiveInt = 10
    rounds: PositiveInt = 12
    round_tokens: PositiveInt = 6_500

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        pairs = (self.episode_ms, self.super_macros, self.long_supers, self.super_words)
        for least, most in (*pairs, self.root_sentences, self.themes, self.root_entities):
            if least > most:
                raise ValueError(f"the least, {least}, is more than the most, {most}")
        if self.episode_ms[0] > self.window_ms:
            raise ValueError("episodes are longer than the windows that they are cut from")
        return self
