"""The strategies: ways of remembering and of asking, and the frames that they keep of a stream."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, PositiveInt, ValidationError
from sqlalchemy.orm import Session

from agent.strategy import AUTO, Strategy
from domain.base import Frozen
from domain.built import Carried
from domain.settings import AskSettings
from domain.words import marked, translate
from library.params import OnlyVideo
from retrieval.built_views import written_by
from store.database import Store
from store.queries.builds import builders_in_library, builds_of
from store.queries.clips import end_of_memory
from store.queries.keyframes import TierTotal, blobs_at, carried_by, spread_of_tiers, tier_totals
from store.queries.videos import find_video
from strategies.registry import all_strategies, strategy_names


class BuiltOf(Frozen):
    """What a strategy built of a video: through which clip, and who wrote it."""

    strategy: str
    through_clip: int
    writers: tuple[str, ...] = Field(default=(), description="rules, or models by name")

    @property
    def in_words(self) -> str:
        """Return how far it is built, and by whom as far as that is known."""
        parts = (f"built through clip {self.through_clip}", written_by(self.writers))
        return ", ".join(filter(None, parts))


class StrategyLine(Frozen):
    """A way of remembering and asking; see ``agent.strategy.Strategy``."""

    name: str
    title: str
    paper: str
    builds: str
    needs: str
    version: PositiveInt
    tools: tuple[str, ...]
    parts: dict[str, str] = Field(description="what NAME-without-PART switches off")
    is_default: bool = Field(description="questions are asked by it where none is named")
    built: BuiltOf | None = Field(default=None, description="of the video that was named")


def strategies(store: Store, video: OnlyVideo = None) -> list[StrategyLine]:
    """List the strategies: ways of remembering and of asking.

    Any of them answers with 'homer ask --strategy NAME'. The setting [ask] strategy in homer.toml
    changes the default. 'homer ask --strategy auto' asks the one that answered similar questions
    best, by what was learned of judged answers ('homer skills' lists it), else the default.
    With a video, what each has built of it is said too, and who wrote it.

    Examples:
      homer strategies
      homer strategies --video talk
      homer strategies --json

    Raises:
        NotFound: there is no such video.
    """
    built = dict[str, BuiltOf]()
    if video is not None:
        with store.begin() as session:
            memories = built_memories(session, find_video(session, video).id)
        built = {one.strategy: one for one in memories}
    return [
        StrategyLine(
            name=one.name,
            title=one.title,
            paper=one.paper,
            builds=one.builds,
            needs=one.needs,
            version=one.version,
            tools=tuple(tool.name for tool in one.tools),
            parts=dict(one.parts),
            is_default=one.name == AskSettings().strategy,
            built=built.get(one.name),
        )
        for one in all_strategies()
    ]


def built_memories(session: Session, video: str) -> tuple[BuiltOf, ...]:
    """Return what each strategy has built of a video, by name."""
    names = strategy_names()
    built = [
        BuiltOf(strategy=builder, through_clip=through, writers=writers)
        for builder, through, writers in builds_of(session, video)
        if builder in names
    ]
    for strategy in all_strategies():
        # An event graph that is built by windows has tables of its own, not steps of a build.
        if strategy.windows is not None:
            windows = strategy.windows()
            if (through := windows.built_through(session, video)) >= 0:
                writers = windows.writers(session, [video])
                one = BuiltOf(strategy=strategy.memory, through_clip=through, writers=writers)
                built.append(one)
    return tuple(sorted(built, key=lambda one: one.strategy))


def built_strategies(store: Store) -> list[str]:
    """Return the strategies whose memory is built of some video, or that need none of their own."""
    with store.begin() as session:
        built = builders_in_library(session)
    return [
        strategy.name
        for strategy in all_strategies()
        if strategy.builder is None or strategy.memory in built
    ]


def askable_titles() -> dict[str, str]:
    """Return the titles of what a question can be asked by, by name: strategies, and ``auto``."""
    titles = {strategy.name: strategy.title for strategy in all_strategies()}
    return titles | {AUTO: marked("what was learned for questions like it")}


# Frames kept of a stream, as they are now: by event, and by tier of age.


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
    # Another version of the keeper carried on something else.
    if strategy.keeper().version != carried.version:
        return None
    try:
        events = strategy.short_term(carried.state)
    except ValidationError:  # An import may bring anything.
        return None
    # Numbers of an import may be any.
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
