"""Options of evaluations: enums only, so that ``homer --help`` builds no model."""

from __future__ import annotations

from enum import StrEnum

from domain.asking import Mode


class AblationStage(StrEnum):
    """How much of the memory is searched: the stages of the paper's ablation."""

    ENTITY = "entity graph"
    EVENTS = "event nodes"
    EDGES = "edges"
    WHOLE = "perceptual buffer"

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The retrieval modes available at this stage."""
        known = (Mode.VIDEO, Mode.EVENT, Mode.NEIGHBOR, Mode.KEYFRAME)
        return tuple(mode for mode in Mode if mode in known[: tuple(AblationStage).index(self) + 1])


# Learning from a benchmark's answers and testing on the same questions is reported as such: by
# default a run learns on one split and tests on another.
class Protocol(StrEnum):
    """How a run learns.

    ``split``: from the questions of some videos, tested on those of others. ``online``: the
    paper's, from each batch before the next, so that what is learned from is also what is tested.
    """

    SPLIT = "split"
    ONLINE = "online"
    NONE = "none"
