"""Builds a memory that has tables of its own, window by window, from what was watched."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cached_property

from agent.builder import WindowBuilder, WindowParts
from agent.strategy import Strategy
from domain.media import Video
from flows.builder_model import ModelUse
from flows.executors import Executor, Step
from flows.workspace import Workspace
from memory.writers import make_writers
from store.queries.builds import StepMade, built_at, restart_build
from store.queries.calls import usage_by_clip
from store.queries.percepts import lock_video


class WindowsBuild:
    """The build of a video's windows. Its steps are safe to repeat.

    ``through`` is the last clip that is built.

    Args:
        strategy: the strategy whose memory is built.
        ended: no clip follows what was watched.
    """

    def __init__(
        self,
        workspace: Workspace,
        video: Video,
        strategy: Strategy,
        builder: WindowBuilder,
        *,
        ended: bool,
    ) -> None:
        self._workspace, self._store, self._video = workspace, workspace.store, video
        self._strategy, self._builder, self._ended = strategy, builder, ended
        self._since = self._restarted_at()
        self._used_before = self._usage()
        self.through = self._built_through()

    @cached_property
    def _parts(self) -> WindowParts:
        """Return what the builder may use, once a window is due: a model may not be set up."""
        workspace = self._workspace
        writers = make_writers(workspace.toolbox, workspace.profile)
        return WindowParts(workspace.store, writers, workspace.toolbox, workspace.settings)

    def restart(self) -> None:
        """Delete what was built before; replies that a language model gave are not reused.

        A row of ``builds`` without a clip says since when, also to a run after this one was killed.
        """
        video, strategy = self._video.id, self._strategy
        made = StepMade(-1, strategy.version, self._workspace.profile.text_name)
        with self._store.begin() as session:
            lock_video(session, video)
            self._builder.delete(session, video)
            restart_build(session, video, strategy.memory, made)
        self._since = self._restarted_at()
        self.through = self._built_through()

    def _restarted_at(self) -> datetime | None:
        with self._store.begin() as session:
            return built_at(session, self._video.id, self._strategy.memory)

    def due(self) -> int | None:
        """Return the last clip of the next window; None where none is due."""
        settings = self._workspace.settings.memory
        with self._store.begin() as session:
            return self._builder.due(session, self._video.id, settings, ended=self._ended)

    def take(self) -> None:
        """Build the next window."""
        self._builder.build_next(self._parts, self._video.id, ended=self._ended, since=self._since)
        self.through = self._built_through()

    @property
    def use(self) -> ModelUse | None:
        """Return what the calls of this build took; None where no language model writes."""
        if self._used_before is None or (used := self._usage()) is None:
            return None
        return used + self._used_before * -1

    def _usage(self) -> ModelUse | None:
        """Return what the calls on record for the video took; None where no model writes."""
        if self._workspace.profile.writer != "llm":
            return None
        with self._store.begin() as session:
            rows = usage_by_clip(session, self._video.id).values()
        each = (
            ModelUse(row.calls, row.tokens_in, row.tokens_out, row.cost_usd, row.ms / 1_000)
            for row in rows
        )
        return sum(each, ModelUse())

    def _built_through(self) -> int:
        with self._store.begin() as session:
            return self._builder.built_through(session, self._video.id)


def _take_window(building: WindowsBuild, stop: int) -> None:  # noqa: ARG001 - names the run
    building.take()


WINDOW = Step("build", _take_window, "build through clip {stop}")


def run_windows(building: WindowsBuild, workspace: Workspace, executor: Executor) -> Iterator[int]:
    """Build each window that is due; yield the last clip that is built after each."""
    while (stop := building.due()) is not None:
        workspace.give_way()
        executor.run(WINDOW, building=building, stop=stop)
        yield building.through
