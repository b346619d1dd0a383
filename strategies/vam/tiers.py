"""Age tiers: the older frames are, the fewer of them stay, and the smaller.

Age is in the stream's own time. First it is chosen what stays, then that is compressed. Of each
interval of a tier the first frame stays; intervals of older tiers are multiples of those of younger
ones, so thinning step by step leaves the same frames as thinning once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.base import Frozen
from strategies.vam.settings import HOUR, SECOND, VisualMemorySettings


def tier_names(settings: VisualMemorySettings) -> tuple[str, ...]:
    """Return what each tier is in words, from the youngest on.

    ``up to 1 h old``, ``up to 24 h old, one in 20 s``, ``older, one in 120 s``
    """
    ages = [f"up to {tier.from_age_ms // HOUR} h old" for tier in settings.tiers]
    shares = ["", *(f", one in {tier.every_ms // SECOND} s" for tier in settings.tiers)]
    return tuple(map("".join, zip([*ages, "older"], shares, strict=True)))


class TierState(Frozen):
    """What is carried on of one tier: its frames, and the interval that last kept one."""

    frames: tuple[int, ...] = ()
    interval: int = -1


class ThinningState(Frozen):
    """What is carried on: the frames of all tiers but the last, and those that stay whatever."""

    tiers: tuple[TierState, ...] = ()
    staying: tuple[int, ...] = ()


@dataclass
class Thinned:
    """The times of frames that go, and of those that stay in an older tier, by that tier."""

    dropped: list[int] = field(default_factory=list)
    moved: dict[int, int] = field(default_factory=dict)


class Thinning:
    """Moves frames through the tiers as a stream goes on.

    Its state is bounded: frames of the last tier never change again and are forgotten.
    """

    def __init__(self, settings: VisualMemorySettings, state: ThinningState | None = None) -> None:
        known = state or ThinningState()
        self._tiers = settings.tiers
        count = len(self._tiers)
        states = [*known.tiers, *[TierState()] * (count + 1)][: count + 1]
        self._frames = [dict.fromkeys(one.frames) for one in states]
        self._intervals = [one.interval for one in states]
        self._staying = dict.fromkeys(known.staying)

    @property
    def state(self) -> ThinningState:
        """Return what is carried on."""
        pairs = zip(self._frames, self._intervals, strict=True)
        return ThinningState(
            tiers=tuple(TierState(frames=tuple(times), interval=last) for times, last in pairs),
            staying=tuple(self._staying),
        )

    def add(self, time_ms: int) -> None:
        """Add a frame, later than all before."""
        self._frames[0][time_ms] = None

    def protect(self, time_ms: int) -> bool:
        """Let a frame stay whatever its age; return False if it does already, or is gone."""
        if time_ms in self._staying or not any(time_ms in frames for frames in self._frames):
            return False
        self._staying[time_ms] = None
        return True

    def remove(self, time_ms: int) -> None:
        """Forget a frame that is dropped for another reason."""
        for frames in self._frames:
            frames.pop(time_ms, None)
        self._staying.pop(time_ms, None)

    def thin(self, now_ms: int) -> Thinned:
        """Move frames that have come of age to older tiers, and drop those that are too many.

        The latest frame stays where it is.
        """
        thinned = Thinned()
        latest = max((next(reversed(frames)) for frames in self._frames if frames), default=0)
        for older, tier in enumerate(self._tiers, 1):
            for time in self._come_of_age(older - 1, now_ms - tier.from_age_ms, latest):
                self._move(time, older, thinned)
        self._frames[-1].clear()
        self._staying = {t: None for t in self._staying if any(t in of for of in self._frames)}
        return thinned

    def _come_of_age(self, tier: int, last_ms: int, latest_ms: int) -> list[int]:
        """Take the frames up to a time out of a tier; they are in order of time."""
        due: list[int] = []
        for time in self._frames[tier]:
            if time > last_ms or time == latest_ms:
                break
            due.append(time)
        for time in due:
            del self._frames[tier][time]
        return due

    def _move(self, time_ms: int, tier: int, thinned: Thinned) -> None:
        interval = time_ms // self._tiers[tier - 1].every_ms
        if interval == self._intervals[tier] and time_ms not in self._staying:
            thinned.moved.pop(time_ms, None)
            thinned.dropped.append(time_ms)
            return
        self._intervals[tier] = interval
        self._frames[tier][time_ms] = None
        thinned.moved[time_ms] = tier
