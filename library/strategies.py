"""The strategies: ways of remembering and of asking."""

from __future__ import annotations

from pydantic import Field, PositiveInt
from sqlalchemy.orm import Session

from agent.strategy import AUTO
from domain.base import Frozen
from domain.settings import AskSettings
from domain.words import marked
from library.params import OnlyVideo
from retrieval.built_views import written_by
from store.database import Store
from store.queries.builds import builders_in_library, builds_of
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
