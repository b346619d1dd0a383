"""The strategies: ways of remembering and of asking."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from domain.base import Frozen
from domain.settings import AskSettings
from library.params import OnlyVideo
from store.database import Store
from store.queries.videos import find_video
from strategies.registry import all_strategies
from views.built import BuiltOf, built_memories


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
