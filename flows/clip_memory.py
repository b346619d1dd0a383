"""What the ingestions of files and of live streams share: steps that turn clips into memory."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import cached_property

from agent.builder import WindowParts
from domain.errors import DatabaseError, ModelError, NotFound
from domain.media import ClipState, Video
from domain.settings import MemorySettings, Settings
from domain.words import marked
from flows.executors import ClipFailed
from flows.video_file import keepers_of
from flows.workspace import Workspace
from memory.drafts import WrittenDraft
from memory.kept_frames import ClipKeeping, VideoKeepers
from memory.write_clip import ClipPercept, ClipWriter
from memory.writers import make_writers
from memory.writers.port import Writers
from models.ports import MemoryModels
from perception.perceive_clip import Perceived
from store.database import Store
from store.queries import clips as clip_rows
from store.queries import videos as video_rows
from store.queries.videos import VideoState
from strategies.registry import find_strategy
from telemetry.tracing import traced_step

# Drafts of clips that a language model writes in advance, several calls at a time.
#
# Only the calls overlap. Clips are stored in order, one after the other, and a draft is not stored
# except in the record of its calls: a run that was killed asks again and gets the recorded replies.

Write = Callable[[Sequence[ClipPercept]], WrittenDraft | None]
"""Writes the last of these clips, given those that will be stored before it."""


class ClipDrafts:
    """Drafts of the next clips, written as soon as they are perceived; safe between threads.

    Args:
        write: writes a clip.
        at_once: how many clips are written at a time; as many perceived clips are held in memory.
    """

    def __init__(self, write: Write, at_once: int) -> None:
        self._write, self._at_once = write, at_once
        self._lock = threading.Lock()
        self._expected: list[int] = []
        self._ready: dict[int, tuple[ClipPercept, Context]] = {}
        self._futures: dict[int, Future[WrittenDraft | None]] = {}

    def expect(self, clips: Iterable[int]) -> None:
        """Announce the clips that will be stored next, in order."""
        with self._lock:
            self._expected += clips

    def perceived(self, clip: int, percept: ClipPercept) -> None:
        """Note that a clip is perceived, and start to write it when it is due."""
        with self._lock:
            self._ready[clip] = (percept, copy_context())
            self._start_due()

    def settled(self, clip: int) -> None:
        """Note that a clip was stored or given up, and start the next ones."""
        with self._lock:
            self._expected = [expected for expected in self._expected if expected != clip]
            self._ready.pop(clip, None)
            self._futures.pop(clip, None)
            self._start_due()

    def draft(self, clip: int) -> WrittenDraft | None:
        """Wait for the draft of a clip; None where the clip has to be written now.

        Raises:
            Exception: an error of the writing other than a failure of the model.
        """
        with self._lock:
            future = self._futures.get(clip)
        try:
            return future.result() if future is not None else None
        except DatabaseError:
            # Storing the clip meets the same error, and retries it.
            return None

    def _start_due(self) -> None:
        """Start the writing of clips that are due; called with the lock held."""
        due = self._expected[: self._at_once]
        for place, clip in enumerate(due):
            if clip not in self._ready:
                return
            if clip not in self._futures:
                percepts = [self._ready[earlier][0] for earlier in due[: place + 1]]
                future: Future[WrittenDraft | None] = Future()
                self._futures[clip] = future
                args = (_set_result, future, self._write, percepts)
                # A daemon thread: Ctrl-C does not wait for a model.
                thread = threading.Thread(
                    target=self._ready[clip][1].run, args=args, daemon=True, name=f"write {clip}"
                )
                thread.start()


def _set_result(
    future: Future[WrittenDraft | None], write: Write, percepts: Sequence[ClipPercept]
) -> None:
    """Write a draft and set it, or the error, as the result of ``future``."""
    try:
        future.set_result(write(percepts))
    except BaseException as error:  # noqa: BLE001 - raised where the draft is waited for
        future.set_exception(error)


# Builds what is due of memories that are built window by window, while a video is watched.


def builds_windows(settings: MemorySettings) -> bool:
    """Check whether a memory that the settings name is built window by window."""
    return any(find_strategy(name).windows is not None for name in settings.strategies)


def build_due_windows(
    store: Store,
    video_id: str,
    writers: Writers,
    models: MemoryModels,
    settings: Settings,
    is_final: bool = False,
) -> None:
    """Build every window that is due of the memories that the settings name.

    Args:
        settings: the strategies whose memory is built, and the length of a window.
        is_final: no more clips will follow.

    Raises:
        ModelError: one could not be written; calling again tries again.
    """
    parts = WindowParts(store, writers, models, settings)
    for name in settings.memory.strategies:
        if windows := find_strategy(name).windows:
            builder = windows()
            while builder.build_next(parts, video_id, ended=is_final):
                continue


class Ingestion(ABC):
    """The ingestion of a video, clip by clip, in steps that are safe to repeat.

    It holds what is perceived of each clip until it is stored. No two steps of a kind run in here
    at a time. A language model may write clips in advance, in threads (``flows.clip_memory``).
    ``fresh`` counts the clips that were remembered in here, ``failed`` those that could not be.
    """

    def __init__(self, workspace: Workspace, video: Video) -> None:
        self.workspace, self.video = workspace, video
        self._percepts: dict[int, Perceived] = {}
        self._seconds: dict[int, float] = {}
        self._drafting: ClipDrafts | None = None
        self.fresh = self.failed = 0

    @abstractmethod
    def perceive(self, clip: int) -> None:
        """Perceive a clip in this process, and hold the percept until it is remembered."""

    @cached_property
    def writers(self) -> Writers:
        """Return the profile's writers.

        Raises:
            SetupError: what they write with is not there.
        """
        toolbox, profile = self.workspace.toolbox, self.workspace.profile
        if profile.writer != "llm":
            # The first name on screen may come hours from here.
            toolbox.sentences.require()
        return make_writers(toolbox, profile)

    @cached_property
    def keepers(self) -> VideoKeepers:
        """Return the keepers of frames of the strategies that are asked for."""
        return keepers_of(self.workspace, self.video)

    @cached_property
    def at_once(self) -> int:
        """Return how many clips are written at a time: one, except by a language model."""
        if not self.writers.clip.wants_context:
            return 1
        profile, setting = self.workspace.profile, self.workspace.settings.memory.clips_at_once
        limit = profile.chat_for("writer").at_once if profile.writer == "llm" else None
        return setting if limit is None else min(setting, limit)

    def state(self) -> VideoState:
        """Return the state of the video's row.

        Raises:
            NotFound: the video was deleted in the meantime.
        """
        with self.workspace.store.begin() as session:
            state = video_rows.video_state(session, self.video.id)
        if state is None:
            raise NotFound(f"{self.video.title} was deleted while it was watched")
        return state

    def mark(self, state: str, error: str | None = None) -> None:
        """Set the state of the video's row."""
        with self.workspace.store.begin() as session:
            video_rows.set_video_state(session, self.video.id, state, error)

    def start_drafts(self) -> None:
        """Write clips in advance from now on, if a model may write several at once."""

        def draft(percepts: Sequence[ClipPercept]) -> WrittenDraft | None:
            return self._clip_writer().draft(percepts)

        self._drafting = ClipDrafts(draft, self.at_once) if self.at_once > 1 else None

    def _clip_writer(self) -> ClipWriter:
        """Return a writer for one clip: it holds the vectors that it made."""
        work = self.workspace
        return ClipWriter(work.store, self.video.id, self.writers, work.toolbox, work.settings)

    def expect(self, clips: Collection[int]) -> None:
        """Announce the clips that will be remembered next, in order."""
        if self._drafting is not None:
            self._drafting.expect(clips)

    def holds(self, clip: int) -> bool:
        """Check whether a clip is perceived and not remembered yet."""
        return clip in self._percepts

    def hold(self, clip: int, perceived: Perceived, seconds: float) -> None:
        """Hold a percept until it is remembered; ``seconds`` is the time that it took."""
        self._seconds[clip] = seconds
        self._percepts[clip] = perceived
        if self._drafting is not None:
            self._drafting.perceived(clip, perceived)

    def drop(self, clip: int) -> None:
        """Forget the percept of a clip that is stored or given up, and write the next ones."""
        self._percepts.pop(clip, None)
        self._seconds.pop(clip, None)
        if self._drafting is not None:
            self._drafting.settled(clip)

    @traced_step("remember")
    def remember(self, clip: int) -> None:
        """Store the perceived clip as memory, in one transaction.

        Raises:
            ClipFailed: it could not be decoded, or its model failed; the store says why.
        """
        perceived, workspace, start = self._percepts[clip], self.workspace, time.monotonic()
        draft = self._drafting.draft(clip) if self._drafting is not None else None
        kept_clip, sampled = perceived.percept.clip, perceived.sampled
        keeping = ClipKeeping(workspace.store, self.keepers, kept_clip, sampled)
        keeping.prepare()
        state = self._clip_writer().remember(perceived, draft, keeping)
        # If the database fails here, this step is retried, and the clip is done already.
        seconds = self._seconds.get(clip, 0.0) + time.monotonic() - start
        with self.workspace.store.begin() as session:
            clip_rows.add_seconds(session, self.video.id, clip, seconds)
        self.drop(clip)
        if state is not ClipState.FAILED:
            self.fresh += 1
            return
        self.failed += 1
        with workspace.store.begin() as session:
            row = clip_rows.clips_of(session, self.video.id)[clip]
        why = row.error or marked("no reason is known")
        if row.unwritten:
            why = marked(f"its words and pictures are kept, without lines of the model: {why}")
        raise ClipFailed(why)

    def give_up(self, clip: int, error: ModelError) -> None:
        """Mark a clip that could not be perceived as failed, unless it is marked already."""
        if isinstance(error, ClipFailed):
            return
        self.drop(clip)
        with self.workspace.store.begin() as session:
            clip_rows.fail_clip(session, self.video.id, clip, str(error) or repr(error))

    @traced_step("build windows")
    def build_windows(self, *, final: bool = False) -> None:
        """Build what is due of memories that are built by windows."""
        workspace = self.workspace
        tools = (self.writers, workspace.toolbox, workspace.settings)
        build_due_windows(workspace.store, self.video.id, *tools, is_final=final)
