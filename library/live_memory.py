"""The frames that strategies keep of a stream, as they are now: by event, and by tier of age."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from sqlalchemy.orm import Session

from agent.strategy import Strategy
from domain.base import Frozen
from domain.built import Carried
from domain.words import translate
from store.database import Store
from store.queries.clips import end_of_memory
from store.queries.keyframes import TierTotal, blobs_at, carried_by, spread_of_tiers, tier_totals
from strategies.registry import all_strategies

MAX_TIME_MS = (1 << 63) - 1
"""The greatest number that a column of the database takes."""
MAX_OF_TIER = 12
"""Frames of a tier that are shown, evenly spread."""
Frames = Mapping[int, str]
"""The SHA-256 of the JPEGs of frames, by their times in milliseconds."""


class ShownHeldEvent(Frozen):
    """An event of the short-term memory: its number from 1, and its frames that are there.

    ``seen`` is how many frames of it were seen.
    """

    number: int
    seen: int
    frames: Frames


class ShownTier(Frozen):
    """A tier of kept frames by its name, and some of its frames."""

    name: str
    all: TierTotal
    frames: Frames


class KeptNow(Frozen):
    """What a strategy keeps; ``events`` is None where it has no short-term memory."""

    strategy: str
    title: str
    events: tuple[ShownHeldEvent, ...] | None
    tiers: tuple[ShownTier, ...]


def load_live_memory(store: Store, video: str) -> tuple[int, list[KeptNow]]:
    """Return what strategies keep of a video now, those that keep anything of it.

    The number before it is where its last clip in memory ends, in milliseconds; 0 without any.
    """
    keepers = [one for one in all_strategies() if one.keeper is not None]
    with store.begin(snapshot=True) as session:
        carried = carried_by(session, video, [one.memory for one in keepers])
        totals, spread = tier_totals(session, video), spread_of_tiers(session, video, MAX_OF_TIER)
        kept = [
            KeptNow(
                strategy=one.name,
                title=one.title,
                events=_events(session, video, one, carried[one.memory]),
                tiers=tuple(
                    ShownTier(
                        name=_name_of_tier(one, total.tier),
                        all=total,
                        frames=spread[total.builder, total.tier],
                    )
                    for total in totals
                    if total.builder == one.memory
                ),
            )
            for one in keepers
            if one.memory in carried
        ]
        return end_of_memory(session, video), kept


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
            frames={time: blobs[time] for time in event.times_ms if time in blobs},
        )
        for event in events
    )


def _name_of_tier(strategy: Strategy, tier: int) -> str:
    """Return the name of a tier; frames of other settings may be in one that has none."""
    if tier < len(strategy.tiers):
        return strategy.tiers[tier]
    return translate("tier {number}").format(number=tier) if tier else translate("kept frames")
