"""Builds the memory of a strategy from what was watched: in steps, each stored at once."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from agent.builder import (
    Build,
    BuildModels,
    MemoryBuilder,
    WindowBuilder,
    WindowParts,
    no_clip,
    note_writer,
    step_writers,
)
from agent.reasoners.local import worded_chapter
from agent.strategy import Strategy
from domain import faults
from domain.built import RULES, BuiltMemory, WatchedClip
from domain.calls import CallTotals
from domain.errors import Busy, InputError
from domain.media import Video
from flows.builder_model import builder_model, clip_loader
from flows.executors import Executor, Step, run_reported
from flows.video_file import keep_missing_frames
from flows.workspace import Workspace
from memory.writers import make_writers
from models.text_endpoint import recorded_embeddings
from people.model_transactions import record_call
from store.database import Store
from store.queries import builds
from store.queries.builds import apply_change
from store.queries.clips import clips_page, first_unwritten, memory_view
from store.queries.keyframes import frames_of_clips
from store.queries.memories import memories_of_clips
from store.queries.outline import began_times
from store.queries.percepts import lock_video
from store.queries.rights import erasures
from store.queries.trajectories import usage_by_clip
from store.queries.videos import WATCHING, find_video, video_state

OnStep = Callable[[int, int], None]
"""Called with how many clips are built, of how many."""
Progress = Callable[[str], OnStep]


OnUse = Callable[[CallTotals, CallTotals | None], None]
"""Called with what the language model took so far, and may take in all; None: not known yet."""


@dataclass(frozen=True)
class Built:
    """What a build did: clips that it went through in this run, of all that were watched.

    ``use`` is what the language model took in this run, which took ``seconds``; None without one.
    ``remark`` says what could not be built, in words for people; "" if all was.
    """

    video: Video
    strategy: str
    clips: int
    total: int
    use: CallTotals | None = None
    remark: str = ""
    seconds: float = 0.0


def check_builds(strategy: Strategy) -> None:
    """Check that a strategy builds a memory of its own.

    Raises:
        InputError: it does not.
    """
    if not strategy.builds_memory:
        raise InputError(
            f"{strategy.name} builds no memory of its own: it answers from what was watched"
        )


def builder_of(strategy: Strategy) -> MemoryBuilder:
    """Return what builds a strategy's memory in the tables that strategies share.

    Raises:
        InputError: it builds nothing there.
    """
    check_builds(strategy)
    if strategy.builder is None:
        raise InputError(f"{strategy.name} builds no nodes or relations of a video")
    return strategy.builder()


def build(
    workspace: Workspace,
    name: str,
    strategy: Strategy,
    on_step: OnStep,
    *,
    again: bool = False,
    on_use: OnUse = lambda *_: None,
    api: str | None = None,
) -> Built:
    """Build what is missing of a strategy's memory of a video, as far as it was watched.

    Args:
        name: the video's id or title.
        on_step: called after each step.
        again: delete what was built before, except frames; the language model is asked anew.
        on_use: called before the first step and after each, where a language model writes.
        api: Prefect's server that shows it as a flow run; None: none does.

    Raises:
        NotFound: there is no such video.
        InputError: the strategy builds nothing of its own.
        Busy: another process builds the same.
    """
    check_builds(strategy)
    began = time.monotonic()
    with workspace.store.begin() as session:
        video = find_video(session, name)
    # Frames that were not kept while watching; the remark says why that cannot be.
    remark = ""
    if strategy.keeper is not None:
        keeper = strategy.keeper()
        remark = keep_missing_frames(workspace, video, strategy.memory, keeper, on_step)
    made = run_reported(
        lambda steps: _build(workspace, video, strategy, on_step, on_use, steps, again=again),
        workspace.store,
        api,
        flow="build",
        run=f"{strategy.name} of {video.id}",
        tag=f"video:{video.id}",
        alone=False,
    )
    return replace(made, remark=remark or made.remark, seconds=time.monotonic() - began)


def _build(
    workspace: Workspace,
    video: Video,
    strategy: Strategy,
    on_step: OnStep,
    on_use: OnUse,
    executor: Executor,
    *,
    again: bool,
) -> Built:
    with workspace.store.begin(snapshot=True) as session:
        last = memory_view(session, [video.id]).scopes[0].last_clip
        unwritten = first_unwritten(session, video.id)
        state = video_state(session, video.id)
    ended = state is not None and state.state != WATCHING
    if strategy.windows is not None:
        return _build_windows(
            workspace,
            video,
            strategy,
            strategy.windows(),
            last,
            on_step,
            on_use,
            executor,
            ended=ended,
            again=again,
        )
    if strategy.builder is None:
        return Built(video, strategy.memory, 0, last + 1)
    remark = ""
    if unwritten is not None and unwritten <= last:
        # What is built is not built again: it is not to rest on lines that the model replaces.
        last, ended = unwritten - 1, False
        remark = f"{strategy.memory} waits for the model to write clip {unwritten}"
    building = VideoBuild(workspace, video, strategy, strategy.builder(), last, ended=ended)
    building.begin(again=again)
    model, first = building.model, building.through
    on_step(first + 1, last + 1)
    ends = building.step_ends()
    if model is not None and ends:
        mean = model.mean_step()
        on_use(model.use, mean and mean * len(ends))
    for stop in ends:
        workspace.give_way()
        executor.run(STEP, building=building, stop=stop)
        on_step(stop + 1, last + 1)
        if model is not None:
            on_use(model.use, model.use * ((ends[-1] - first) / (stop - first)))
    use = None if model is None else model.use
    return Built(video, strategy.memory, building.through - first, last + 1, use, remark)


WINDOW = Step(
    name="build",
    run_name="build through clip {stop}",
    call=lambda take, stop: take(),  # noqa: ARG005 - names the run
)


def _build_windows(
    workspace: Workspace,
    video: Video,
    strategy: Strategy,
    builder: WindowBuilder,
    last: int,
    on_step: OnStep,
    on_use: OnUse,
    executor: Executor,
    *,
    ended: bool,
    again: bool,
) -> Built:
    """Build each window that is due of a memory that has tables of its own.

    ``ended``: no clip follows what was watched, of which ``last`` is the last one.
    """
    store, has_model = workspace.store, workspace.profile.writer == "llm"

    def usage() -> CallTotals:
        # The calls on record for the video, of other work too.
        with store.begin() as session:
            return sum(usage_by_clip(session, video.id).values(), CallTotals())

    def due() -> int | None:
        with store.begin() as session:
            return builder.due(session, video.id, workspace.settings.memory, ended=ended)

    used_before = usage() if has_model else CallTotals()
    with store.begin() as session:
        if again:
            # Replies that a language model gave are not reused. A row of ``builds`` without a clip
            # says since when, also to a run after this one was killed.
            lock_video(session, video.id)
            builder.delete(session, video.id)
            made = builds.StepMade(-1, strategy.version, workspace.profile.text_name)
            builds.restart_build(session, video.id, strategy.memory, made)
        since = builds.built_at(session, video.id, strategy.memory)
        first = through = builder.built_through(session, video.id)
    on_step(first + 1, last + 1)
    parts: WindowParts | None = None
    while (stop := due()) is not None:
        workspace.give_way()
        if parts is None:  # Only now: a model may not be set up.
            writers = make_writers(workspace.toolbox, workspace.profile)
            parts = WindowParts(store, writers, workspace.toolbox, workspace.settings)
        take = partial(builder.build_next, parts, video.id, ended=ended, since=since)
        executor.run(WINDOW, take=take, stop=stop)
        with store.begin() as session:
            through = builder.built_through(session, video.id)
        on_step(through + 1, last + 1)
        if has_model and through > first:
            use = usage() + used_before * -1
            on_use(use, use * ((last - first) / (through - first)))
    used = usage() + used_before * -1 if has_model else None
    return Built(video, strategy.memory, through - first, last + 1, used)


class VideoBuild:
    """The build of a strategy's memory of a video. Its steps are safe to repeat.

    ``through`` is the last clip that is built, ``model`` writes if there is one.

    Args:
        builder: the strategy's.
        last: the last clip that was watched.
        ended: no clip follows it.
    """

    def __init__(
        self,
        workspace: Workspace,
        video: Video,
        strategy: Strategy,
        builder: MemoryBuilder,
        last: int,
        *,
        ended: bool,
    ) -> None:
        self._store, self._video, self._strategy = workspace.store, video, strategy
        self._builder, self._last, self._ended = builder, last, ended
        self._text, self._sentences = workspace.toolbox.text, workspace.toolbox.sentences
        self._clip_ms = _clip_ms(workspace.store, video.id)
        titled = any(level.titled for level in strategy.levels)
        self.model = builder_model(workspace, video, strategy.memory, reads=titled)
        self._writes = self.model is not None and self.model.role == "writer"
        self._load_clip = clip_loader(workspace, video) if self._writes else no_clip
        self.through, self._erasures = -1, 0
        self._run: Build | None = None

    def begin(self, *, again: bool = False) -> None:
        """Begin, or go on after what is stored; ``again``: what was built before is deleted."""
        store, video, memory = self._store, self._video.id, self._strategy.memory
        with store.begin(snapshot=True) as session:
            built = builds.read_built(session, video, memory)
            began = began_times(session, [video])[video]
            self._erasures = erasures(session, video)
        fresh = self._made(-1)
        # Of another encoder vectors cannot be compared; of another version the rules were others.
        same = (built.encoder, built.version) == (fresh.encoder, fresh.version)
        if anew := again or (bool(built.encoder) and not same):
            built = BuiltMemory()
        self.through = built.through_clip
        after, look_back_ms = self.through + 1, self._builder.look_back_ms
        back = range(max(0, after - math.ceil(look_back_ms / self._clip_ms)), after)
        earlier = watched_clips(store, video, back, memory)
        start = began.at if began.live else None
        models = BuildModels(
            self._embed,
            self._sentences,
            self.model if self._writes else None,
            store.blobs.get,
            self._load_clip,
            start,
            partial(worded_chapter, self.model) if self.model and not self._writes else None,
        )
        self._run = self._builder.begin(self._video, built, earlier, models)
        if anew:  # Only now: without a model that it needs, no builder begins.
            with store.begin() as session:
                lock_video(session, video)
                if again:
                    builds.restart_build(session, video, memory, fresh)
                else:
                    builds.delete_build(session, video, memory)

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; what an endpoint takes for it is on record."""
        with recorded_embeddings(partial(record_call, self._store, self._video.id, None)):
            return self._text.embed(texts)

    def step_ends(self) -> list[int]:
        """Return the last clip of each step that is left."""
        size = max(1, self._builder.step_ms // self._clip_ms)
        ends, stop = list[int](), (self.through + 1) // size * size + size - 1
        # A full one waits for the clip after it: until then it may be the last one of the video.
        while stop < self._last + self._ended:
            ends.append(stop)
            stop += size
        if self._ended and (ends[-1] if ends else self.through) < self._last:
            ends.append(self._last)  # One that is not full, since nothing follows.
        return ends

    def take(self, stop: int) -> None:
        """Take the step that ends with a clip, unless it is stored already.

        After a failure the builder begins anew from what is stored.

        Raises:
            Busy: another process builds the same.
        """
        if self._run is None:
            self.begin()
        run, self._run = self._run, None
        if run is not None and stop > self.through:
            store, video, memory = self._store, self._video, self._strategy.memory
            clips = watched_clips(store, video.id, range(self.through + 1, stop + 1), memory)
            if self.model is not None:
                self.model.begin_step(stop)
            with step_writers() as writers:
                change = run.step(clips, ended=self._ended and stop == self._last)
                if not self._writes and (change.nodes or change.relations):
                    note_writer(RULES)
            made = self._made(stop)._replace(writers=tuple(writers))
            # Store a step, unless another process stored it or parts of the video were erased.
            video, builder = self._video, self._strategy.memory
            with self._store.begin() as session:
                lock_video(session, video.id)
                if erasures(session, video.id) != self._erasures:
                    raise Busy(f"parts of {video.title} were erased meanwhile: build it again")
                if builds.built_through(session, video.id, builder) != self.through:
                    raise Busy(
                        f"another homer builds {builder} of {video.title}: wait until it is done"
                    )
                apply_change(session, video.id, builder, made, change)
                faults.fault_point(faults.FaultPoint.BUILD_ROWS)
            faults.fault_point(faults.FaultPoint.BUILD_COMMITTED)
            self.through = stop
        self._run = run

    def _made(self, stop: int) -> builds.StepMade:
        return builds.StepMade(stop, self._builder.version, self._text.name)


STEP = Step(
    name="build",
    run_name="build through clip {stop}",
    call=lambda building, stop: building.take(stop),
)


def build_each(
    workspace: Workspace, name: str, strategies: Iterable[Strategy], progress: Progress
) -> None:
    """Build what is missing of a video for those strategies that build a memory of their own.

    ``progress`` returns what is called with the steps of the strategy of that name.
    """
    for strategy in strategies:
        if strategy.builds_memory:
            build(workspace, name, strategy, progress(strategy.name))


def _clip_ms(store: Store, video: str) -> int:
    """Return the length of the clips of a video, in milliseconds; all but the last have it."""
    with store.begin() as session:
        first = clips_page(session, video, 0, 1)
    return first[0].span.length_ms if first else 1


def watched_clips(
    store: Store, video: str, clips: Sequence[int], builder: str
) -> list[WatchedClip]:
    """Return clips with their lines as of the last of them; failed and deleted ones have none.

    Their frames are those that the strategy named ``builder`` keeps.
    """
    if not clips:
        return []
    with store.begin() as session:
        found = clips_page(session, video, min(clips), len(clips))
        lines = [m.memory for m in memories_of_clips(session, video, clips, max(clips))]
        frames = frames_of_clips(session, video, builder, clips)
    return [
        WatchedClip(
            one.index,
            one.span,
            tuple(line for line in lines if line.clip == one.index),
            tuple(frame for frame in frames if frame.clip == one.index),
        )
        for one in found
        if one.index in clips
    ]
