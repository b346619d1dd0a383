"""The ingestion of one video: the steps of its flow, each safe to repeat.

Progress is read from the store only, so that a flow that was killed resumes at the clip that it
was at, with or without Prefect.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from domain import faults
from domain.audit import Deed
from domain.errors import ModelError, NotFound
from domain.media import ClipState, Video
from domain.settings import Subtitles
from flows.clip_drafts import Drafting
from flows.video_locks import alone, claimed
from flows.workspace import Workspace
from memory.drafts import WrittenDraft
from memory.subtitles import Accompaniment, accompaniment, chosen, refuse_other_subtitles
from memory.write_clip import ClipPercept as PerceivedClip
from memory.write_clip import draft_ahead, remember, weave_due
from memory.writers import make_writers
from memory.writers.port import Writers
from models.image_text import name_of
from models.profile import NO_MODEL, Profile
from perception.decode import read_clips
from perception.perceive_clip import Perceived, perceive
from perception.reader import Reader
from perception.source import SourceInfo, clips_of, probe, video_id
from perception.worker import Delivery, Order
from store.queries import clips as clip_rows
from store.queries import videos as video_rows
from store.queries.audit import note
from store.queries.videos import VideoState
from telemetry.ingest_spans import stage
from views.originals import note_original, stamp_of


class ClipLeft(ModelError):
    """A clip was marked as failed, with the reason; another run retries it."""


@dataclass(frozen=True)
class IngestResult:
    """The result of an ingestion. This run watched ``fresh`` clips; ``failed`` ones failed."""

    video: Video
    clips: int
    fresh: int
    failed: int


class VideoIngestion:
    """The steps of one video. Large objects stay in here and never become a task's result.

    Perceiving may run in a thread, ahead of the other steps, or in another process; no two steps
    of a kind run in here at a time. A language model may write clips in advance, in threads
    (``flows.clip_drafts``).
    """

    def __init__(
        self,
        workspace: Workspace,
        path: Path,
        info: SourceInfo,
        video: Video,
        subtitle_track: Accompaniment,
        *,
        again: bool = False,
        only: Collection[int] = (),
    ) -> None:
        self.desk, self.path, self.video = workspace, path, video
        self._info, self._subtitles, self._again, self._only = info, subtitle_track, again, only
        self._reader = Reader(path, info, workspace.settings.watch, read_clips)
        self._percepts: dict[int, Perceived] = {}
        self._seconds: dict[int, float] = {}
        self._fresh = 0
        self._drafting: Drafting | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what a person should know about the source before it is watched."""
        return self._subtitles.unread

    @cached_property
    def writers(self) -> Writers:
        """Return the profile's writers."""
        return make_writers(self.desk.toolbox, self.desk.profile)

    @cached_property
    def at_once(self) -> int:
        """Return how many clips are written at a time: one, except by a language model."""
        if not self.writers.clip.wants_context:
            return 1
        profile, setting = self.desk.profile, self.desk.settings.memory.clips_at_once
        limit = profile.chat_for("writer").at_once if profile.writer == "llm" else None
        return setting if limit is None else min(setting, limit)

    def pending(self) -> list[int]:
        """Return the clips that this run watches and that are not in memory yet, in order."""
        with self.desk.store.begin() as session:
            unfinished = clip_rows.next_clips(session, self.video.id, again=self._again)
        return [clip.index for clip in unfinished if not self._only or clip.index in self._only]

    def state(self) -> VideoState:
        """Return the state of the video's row.

        Raises:
            NotFound: the video was deleted in the meantime.
        """
        with self.desk.store.begin() as session:
            state = video_rows.video_state(session, self.video.id)
        if state is None:
            raise NotFound(f"{self.video.title} was deleted while it was watched")
        return state

    def settled(self) -> bool:
        """Check whether nothing is left to do, as after an earlier run."""
        return self.state().state != video_rows.WATCHING and not self.pending()

    def begin(self) -> list[int]:
        """Mark the video as being watched, and return the clips to watch, in order."""
        self._mark(video_rows.WATCHING)
        pending = self.pending()
        self._start_drafts(pending)
        return pending

    def _start_drafts(self, clips: Collection[int]) -> None:
        """Write clips in advance, if a model may write several at once."""
        self._drafting = Drafting(self._draft, self.at_once) if self.at_once > 1 else None
        if self._drafting is not None:
            self._drafting.expect(clips)

    def _draft(self, percepts: Sequence[PerceivedClip]) -> WrittenDraft | None:
        workspace = self.desk
        return draft_ahead(
            workspace.store,
            self.video.id,
            percepts,
            self.writers,
            workspace.toolbox,
            workspace.settings,
        )

    @stage("perceive")
    def perceive(self, clip: int) -> None:
        """Decode and perceive the clip; hold the percept until it is remembered."""
        if clip not in self._percepts:
            start = time.monotonic()
            raw = self._reader.clip(clip)
            faults.fault_point(faults.FaultPoint.DECODED)
            percept = perceive(raw, self.desk.toolbox, self.desk.settings.watch)
            self._hold(clip, percept, time.monotonic() - start)
            faults.fault_point(faults.FaultPoint.PERCEIVED)

    def order(self, clip: int, threads: int) -> Order:
        """Return the order to perceive the clip elsewhere, with ``threads`` per model."""
        workspace = self.desk
        path = self.path.absolute()
        return Order(path, self._info, clip, workspace.toolbox, workspace.settings.watch, threads)

    def take(self, delivery: Delivery) -> None:
        """Hold what a worker perceived until it is remembered."""
        percept = delivery.perceived
        self._hold(percept.percept.clip.index, percept, delivery.seconds)

    def _hold(self, clip: int, percept: Perceived, seconds: float) -> None:
        self._seconds[clip] = seconds
        self._percepts[clip] = replace(percept, percept=self._subtitles.added_to(percept.percept))
        if self._drafting is not None:
            self._drafting.perceived(clip, self._percepts[clip])

    @stage("remember")
    def remember(self, clip: int) -> None:
        """Store the perceived clip as memory, in one transaction.

        Raises:
            ClipLeft: it could not be decoded, or its memory not be written; the store says why.
        """
        perceived, workspace, start = self._percepts[clip], self.desk, time.monotonic()
        draft = self._drafting.draft(clip) if self._drafting is not None else None
        args = (self.writers, workspace.toolbox, workspace.settings, draft)
        state = remember(workspace.store, self.video.id, perceived, *args)
        # If the database fails here, this step is retried, and the clip is done already.
        self._add_seconds(clip, self._seconds.get(clip, 0.0) + time.monotonic() - start)
        del self._percepts[clip]
        self._seconds.pop(clip, None)
        self._close_draft(clip)
        if state is ClipState.FAILED:
            raise ClipLeft(self._reason(clip))
        self._fresh += 1

    def _close_draft(self, clip: int) -> None:
        if self._drafting is not None:
            self._drafting.settled(clip)

    def _add_seconds(self, clip: int, seconds: float) -> None:
        with self.desk.store.begin() as session:
            clip_rows.add_seconds(session, self.video.id, clip, seconds)

    @stage("weave")
    def weave(self, *, final: bool = False) -> None:
        """Update the event graph from the memories."""
        workspace = self.desk
        weave_due(
            workspace.store,
            self.video.id,
            self.writers,
            workspace.toolbox,
            workspace.settings,
            final=final,
        )

    def give_up(self, clip: int, error: ModelError) -> None:
        """Mark a clip that could not be perceived as failed; the next run retries it."""
        if isinstance(error, ClipLeft):
            return
        self._close_draft(clip)
        with self.desk.store.begin() as session:
            clip_rows.mark_clip(
                session, self.video.id, clip, ClipState.FAILED, error=str(error) or repr(error)
            )

    def seen_to_the_end(self) -> bool:
        """Check whether every clip was watched or given up, so that none will follow."""
        state = self.state()
        return state.done + state.failed == state.clips

    def finish(self) -> IngestResult:
        """Mark the video as done, or as failed where clips could not be watched.

        A paused video of which only some clips were retried stays as it was.
        """
        failed = self.state().failed
        if not self.seen_to_the_end():
            self._mark(video_rows.WATCHING)
        elif failed:
            self._mark(video_rows.FAILED, f"{failed} clips could not be watched")
        else:
            self._mark(video_rows.DONE)
        faults.fault_point(faults.FaultPoint.VIDEO_DONE)
        return self.result()

    def result(self) -> IngestResult:
        """Return the state of the video, and what this run did."""
        state = self.state()
        return IngestResult(self.video, state.clips, self._fresh, state.failed)

    def _mark(self, state: str, error: str | None = None) -> None:
        with self.desk.store.begin() as session:
            video_rows.set_video_state(session, self.video.id, state, error)

    def _reason(self, clip: int) -> str:
        with self.desk.store.begin() as session:
            errors = [row.error for row in clip_rows.clips_of(session, self.video.id)]
        return errors[clip] or "no reason is known"


@contextmanager
def open_video(
    workspace: Workspace,
    path: Path,
    *,
    again: bool = False,
    only: Collection[int] = (),
    subtitles: Subtitles | None = None,
) -> Iterator[VideoIngestion]:
    """Open the video of ``path`` with its row and clips, under a lock of its own.

    Args:
        workspace: the store and the models.
        path: a media file.
        again: also retry clips that failed for good.
        only: numbers of the clips to watch; empty: all.
        subtitles: whether subtitles that come with it are used; None: as an earlier run did, else
            use the settings.

    Raises:
        MediaError: the file is empty, damaged, or has neither video nor audio; no row is added.
        Busy: another process is watching it.
        InputError: an earlier run used clips of another length or other subtitles, or a subtitle
            file cannot be read.
    """
    info = probe(path)
    stamp = stamp_of(path.absolute())
    name = video_id(path)
    note_original(workspace.home, name, stamp)
    with alone(workspace.home, name, path.stem), claimed(workspace.store, name, path.stem):
        with workspace.store.begin() as session:
            known = video_rows.known_video(session, name)
            unfinished = clip_rows.next_clips(session, name, again=again)
        subtitle_track = None
        if unfinished or known is None or subtitles is not None:
            choice = chosen(known, subtitles, workspace.settings.watch.subtitles)
            subtitle_track = accompaniment(path, info) if choice == "use" else None
            refuse_other_subtitles(known, subtitle_track)
        video = _video(workspace, name, path, info, subtitle_track)
        with workspace.store.begin() as session:
            clips = clips_of(info.duration_ms, workspace.settings.watch)
            if video_rows.add_video(session, video, clips, models_used(workspace.profile)):
                note(session, Deed.ADDED, video.id)
            else:
                clip_rows.refuse_other_clips(session, video, clips)
            # A known video keeps its title even if the file was renamed.
            video = video_rows.find_video(session, video.id)
        track = subtitle_track or Accompaniment()
        yield VideoIngestion(workspace, path, info, video, track, again=again, only=only)


def _video(
    workspace: Workspace,
    name: str,
    path: Path,
    info: SourceInfo,
    subtitle_track: Accompaniment | None,
) -> Video:
    return Video(
        id=name,
        title=path.stem,
        path=str(path.absolute()),
        duration_ms=info.duration_ms,
        width=info.width,
        height=info.height,
        has_video=info.has_video,
        has_audio=info.has_audio,
        profile=workspace.profile.name,
        subtitles=subtitle_track.names if subtitle_track else None,
    )


def models_used(profile: Profile) -> dict[str, str]:
    """Return the model of each port, for the record."""
    ports = ("speech", "faces", "speaker", "screen", "objects", "text", "writer")
    used = {port: str(getattr(profile, port)) for port in ports}
    return used | {"images": name_of(profile.images_folder) if profile.images_folder else NO_MODEL}
