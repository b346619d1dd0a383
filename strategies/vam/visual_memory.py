"""What stays of a stream's pictures: gates, moments, events and age tiers, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from domain.base import Frozen
from perception.frame_keeper import FrameChange, FrameKeeper, FrameToKeep, KeptFrames, State
from strategies.vam.moments import (
    EventBounds,
    EventStart,
    EventState,
    FrameVectors,
    Gates,
    Moments,
    MomentState,
    frame_vectors,
)
from strategies.vam.settings import HOUR, SECOND, VisualMemorySettings

if TYPE_CHECKING:
    from domain.media import Clip, Video
    from models.ports import Image, ImageEncoder, Vector


# Age tiers: the older frames are, the fewer of them stay, and the smaller.
#
# Age is in the stream's own time. First it is chosen what stays, then that is compressed. Of each
# interval of a tier the first frame stays; intervals of older tiers are multiples of those of
# younger ones, so thinning step by step leaves the same frames as thinning once.


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
            younger = older - 1
            last_ms = now_ms - tier.from_age_ms
            due: list[int] = []
            for time in self._frames[younger]:
                if time > last_ms or time == latest:
                    break
                due.append(time)
            for time in due:
                del self._frames[younger][time]
                self._move(time, older, thinned)
        self._frames[-1].clear()
        self._staying = {t: None for t in self._staying if any(t in of for of in self._frames)}
        return thinned

    def _move(self, time_ms: int, tier: int, thinned: Thinned) -> None:
        interval = time_ms // self._tiers[tier - 1].every_ms
        if interval == self._intervals[tier] and time_ms not in self._staying:
            thinned.moved.pop(time_ms, None)
            thinned.dropped.append(time_ms)
            return
        self._intervals[tier] = interval
        self._frames[tier][time_ms] = None
        thinned.moved[time_ms] = tier


class FrameReason(StrEnum):
    """Why a frame stays: it is a moment's first or last, or an event rests on it.

    An event begins with an ``EVENT`` frame; on a ``STILL`` one rests an event that begins later,
    because the one before had become too long.
    """

    MOMENT = "moment"
    END = "end"
    EVENT = "event"
    STILL = "still"


class StayingFrame(NamedTuple):
    """A frame that stays, why, and in which age tier."""

    time_ms: int
    reason: FrameReason
    tier: int = 0


class VisualState(Frozen):
    """What is carried on from clip to clip; its size is bounded."""

    plane: str = ""
    moments: MomentState = MomentState()
    events: EventState = EventState()
    thinning: ThinningState = ThinningState()


@dataclass
class VisualChange:
    """What changes with a clip: frames of it, and frames of earlier clips by their times.

    ``vectors`` are those of the frames that are added.
    """

    added: dict[int, StayingFrame] = field(default_factory=dict)
    vectors: dict[int, Vector] = field(default_factory=dict, compare=False)
    dropped: list[int] = field(default_factory=list)
    reasons: dict[int, FrameReason] = field(default_factory=dict)
    tiers: dict[int, int] = field(default_factory=dict)


class VisualMemory:
    """Decides which frames stay, strictly in order of time.

    Args:
        vectors: what distances are measured on.
        state: of a memory that goes on.
    """

    def __init__(
        self,
        settings: VisualMemorySettings,
        vectors: FrameVectors,
        state: VisualState | None = None,
    ) -> None:
        known = state or VisualState()
        self._vectors = vectors
        self._gates = Gates(settings, known.plane)
        self._moments = Moments(settings, vectors.name, known.moments)
        self._events = EventBounds(settings, known.events)
        self._thinning = Thinning(settings, known.thinning)
        self._change = VisualChange()

    @property
    def state(self) -> VisualState:
        return VisualState(
            plane=self._gates.last,
            moments=self._moments.state,
            events=self._events.state,
            thinning=self._thinning.state,
        )

    def add(self, time_ms: int, image: Image) -> None:
        """Look at the next frame, H x W x 3 BGR."""
        self._begin_events(self._events.pass_time(time_ms))
        if self._gates.stopped_by(image) is not None:
            return
        vector = self._vectors.vector(image)
        step = self._moments.add(time_ms, vector)
        if step.replaced_ms is not None:
            self._thinning.remove(step.replaced_ms)
            self._forget(step.replaced_ms)
        reason = FrameReason.MOMENT if step.starts else FrameReason.END
        self._thinning.add(time_ms)
        self._change.added[time_ms] = StayingFrame(time_ms, reason)
        self._change.vectors[time_ms] = vector
        if step.starts:
            self._begin_events(self._events.add_moment(time_ms, step.change))

    def end_clip(self, now_ms: int) -> VisualChange:
        """Return what changed since the last clip ended; frames are as old as ``now_ms`` says."""
        thinned = self._thinning.thin(now_ms)
        for time in thinned.dropped:
            self._forget(time)
        for time, tier in thinned.moved.items():
            if time in self._change.added:
                self._change.added[time] = self._change.added[time]._replace(tier=tier)
            else:
                self._change.tiers[time] = tier
        change, self._change = self._change, VisualChange()
        return change

    def _forget(self, time_ms: int) -> None:
        self._change.reasons.pop(time_ms, None)
        self._change.vectors.pop(time_ms, None)
        if self._change.added.pop(time_ms, None) is None:
            self._change.dropped.append(time_ms)

    def _begin_events(self, begun: Iterable[EventStart]) -> None:
        for event in begun:
            if self._thinning.protect(event.frame_ms):
                at_start = event.start_ms == event.frame_ms
                time_ms = event.frame_ms
                reason = FrameReason.EVENT if at_start else FrameReason.STILL
                if time_ms in self._change.added:
                    self._change.added[time_ms] = StayingFrame(time_ms, reason)
                else:
                    self._change.reasons[time_ms] = reason


# Keeps the frames of moments and events while a video is watched, thinned out with age.


def moment_keeper(settings: VisualMemorySettings) -> FrameKeeper:
    """Return what keeps the first and last frame of each moment."""

    def size_of(tier: int) -> tuple[int | None, int | None]:
        """Return the longest side and the JPEG quality of a tier; None: as it is."""
        older = settings.tiers[tier - 1] if tier else None
        return (older.side, older.quality) if older else (None, None)

    def keep(
        _video: Video,
        carried: State,
        encoder: ImageEncoder | None,
        clip: Clip,
        frames: Iterator[tuple[int, Image]],
    ) -> KeptFrames:
        """Keep the frames that stay of a clip, and thin out earlier ones."""
        vectors = frame_vectors(encoder)
        memory = VisualMemory(settings, vectors, VisualState.model_validate(carried))
        for time, image in frames:
            memory.add(time, image)
        change = memory.end_clip(clip.span.end_ms)
        kept = list[FrameToKeep]()
        for one in change.added.values():
            vector = change.vectors[one.time_ms]
            side, quality = size_of(one.tier)
            kept.append(
                FrameToKeep(one.time_ms, one.reason, one.tier, side, quality, vector, vectors.name)
            )
        changed = list[FrameChange]()
        for time in sorted(change.reasons.keys() | change.tiers.keys()):
            tier = change.tiers.get(time)
            changed.append(FrameChange(time, change.reasons.get(time), tier, *size_of(tier or 0)))
        return KeptFrames(
            frames=kept,
            state=memory.state.model_dump(mode="json"),
            dropped=change.dropped,
            changed=changed,
        )

    return FrameKeeper(version=2, every_ms=settings.every_ms, keep=keep)
