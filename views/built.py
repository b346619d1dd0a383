"""What strategies have built of a video, and who wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from domain.base import Frozen
from retrieval.built_views import written_by
from store.queries.builds import builds_of
from strategies.registry import all_strategies, strategy_names

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


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


def built_memories(session: Session, video: str) -> tuple[BuiltOf, ...]:
    """Return what each strategy has built of a video, by name."""
    names = strategy_names()
    built = [
        BuiltOf(strategy=one.builder, through_clip=one.through_clip, writers=one.writers)
        for one in builds_of(session, video)
        if one.builder in names
    ]
    for strategy in all_strategies():
        if strategy.windows is not None:
            windows = strategy.windows()
            if (through := windows.built_through(session, video)) >= 0:
                writers = windows.writers(session, [video])
                one = BuiltOf(strategy=strategy.memory, through_clip=through, writers=writers)
                built.append(one)
    return tuple(sorted(built, key=lambda one: one.strategy))
