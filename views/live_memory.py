"""The frames that strategies keep of a stream, as they are now: by event, and by tier of age."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pydantic import ValidationError
from sqlalchemy.orm import Session

from agent.strategy import Strategy
from domain.base import Frozen
from domain.built import Carried
from store.database import Store
from store.queries.clips import end_of_memory
from store.queries.frames import (
    TierFrame,
    TierTotal,
    blobs_at,
    carried_by,
    spread_of_tiers,
    tier_totals,
)
from strategies.registry import all_strategies
from views.translation import translate

MAX_TIME_MS = (1 << 63) - 1
"""The greatest number that a column of the database takes."""
MAX_OF_TIER = 12
"""Frames of a tier that are shown, evenly spread."""


class HeldFrame(Frozen):
    """A frame with the SHA-256 of its JPEG."""

    time_ms: int
    blob: str


class ShownHeldEvent(Frozen):
    """An event of the short-term memory: its number from 1, and its frames that are there.

    ``seen`` is how many frames of it were seen.
    """

    number: int
    seen: int
    frames: tuple[HeldFrame, ...]


class ShownTier(Frozen):
    """A tier of kept frames, of which ``frames`` are some; ``last_ms`` is the time of the last."""

    name: str
    count: int
    bytes: int
    first_ms: int
    last_ms: int
    frames: tuple[HeldFrame, ...]


class KeptNow(Frozen):
    """What a strategy keeps; ``events`` is None where it has no short-term memory."""

    strategy: str
    title: str
    events: tuple[ShownHeldEvent, ...] | None
    tiers: tuple[ShownTier, ...]


class LiveMemory(Frozen):
    """What is in memory of a stream up to a moment, and what strategies keep of it.

    ``through_ms`` is where the last clip in memory ends, 0 without any.
    """

    through_ms: int
    kept: tuple[KeptNow, ...]


def load_live_memory(store: Store, video: str) -> LiveMemory:
    """Return what strategies keep of a video now, those that keep anything of it."""
    keepers = [one for one in all_strategies() if one.keeper is not None]
    with store.begin(snapshot=True) as session:
        carried = carried_by(session, video, [one.memory for one in keepers])
        totals, spread = tier_totals(session, video), spread_of_tiers(session, video, MAX_OF_TIER)
        kept = [
            KeptNow(
                strategy=one.name,
                title=one.title,
                events=_events(session, video, one, carried[one.memory]),
                tiers=tuple(_tiers(one, totals, spread)),
            )
            for one in keepers
            if one.memory in carried
        ]
        return LiveMemory(through_ms=end_of_memory(session, video), kept=tuple(kept))


def _events(
    session: Session, video: str, strategy: Strategy, carried: Carried
) -> tuple[ShownHeldEvent, ...] | None:
    """Return the short-term memory of a strategy; None if it has none that can be read."""
    if strategy.short_term is None or strategy.keeper is None:
        return None
    if strategy.keeper().version != carried.version:
        return None
    try:
        events = strategy.short_term(carried.state)
    except ValidationError:  # An import may bring anything.
        return None
    times = [time for event in events for time in event.times_ms if 0 <= time <= MAX_TIME_MS]
    blobs = blobs_at(session, video, strategy.memory, times)
    return tuple(
        ShownHeldEvent(
            number=event.number + 1,
            seen=event.seen,
            frames=tuple(
                HeldFrame(time_ms=time, blob=blobs[time])
                for time in event.times_ms
                if time in blobs
            ),
        )
        for event in events
    )


def _tiers(
    strategy: Strategy, totals: Collection[TierTotal], spread: Sequence[TierFrame]
) -> Iterator[ShownTier]:
    own = strategy.memory
    for total in totals:
        if total.builder != own:
            continue
        frames = [one for one in spread if (one.builder, one.tier) == (own, total.tier)]
        yield ShownTier(
            name=_name_of_tier(strategy, total.tier),
            count=total.frames,
            bytes=total.bytes,
            first_ms=total.first_ms,
            last_ms=total.last_ms,
            frames=tuple(HeldFrame(time_ms=one.time_ms, blob=one.blob) for one in frames),
        )


def _name_of_tier(strategy: Strategy, tier: int) -> str:
    """Return the name of a tier; frames of other settings may be in one that has none."""
    if tier < len(strategy.tiers):
        return strategy.tiers[tier]
    return translate("tier {number}").format(number=tier) if tier else translate("kept frames")
