"""One video on its way into memory: the steps of its flow, each safe to repeat.

What is done is known from the store only, so a flow that was killed goes on from the clip it was
at, under Prefect or without it.
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
from memory.write_clip import ClipPercept as ToWrite
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
    """A clip was marked as failed, with the reason, for another run to try."""


@dataclass(frozen=True)
class IngestResult:
    """What became of a video. ``fresh`` clips were watched by this run, ``failed`` ones not."""

    video: Video
    clips: int
    fresh: int
    failed: int


class VideoIngestion:
    """The steps of one video. Heavy things stay in here, and never travel as a task's result.

    Perceiving may run in a thread, ahead of the other steps, or be ordered elsewhere; no two
    steps of a kind run in here at a time. A language model may write clips ahead of their turn,
    in threads (``flows.clip_drafts``).
    """

    def __init__(
        self,
        desk: Workspace,
        path: Path,
        info: SourceInfo,
        video: Video,
        beside: Accompaniment,
        *,
        again: bool = False,
        only: Collection[int] = (),
    ) -> None:
        self.desk, self.path, self.video = desk, path, video
        self._info, self._beside, self._again, self._only = info, beside, again, only
        self._reader = Reader(path, info, desk.settings.watch, read_clips)
        self._ready: dict[int, Perceived] = {}
        self._took: dict[int, float] = {}
        self._fresh = 0
        self._drafting: Drafting | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of the source before it is watched."""
        return self._beside.unread

    @cached_property
    def writers(self) -> Writers:
        """The profile's writers."""
        return make_writers(self.desk.toolbox, self.desk.profile)

    @cached_property
    def at_once(self) -> int:
        """How many clips are written at a time: one, but by a language model."""
        if not self.writers.clip.wants_context:
            return 1
        profile, most = self.desk.profile, self.desk.settings.memory.clips_at_once
        limit = profile.chat_for("writer").at_once if profile.writer == "llm" else None
        return most if limit is None else min(most, limit)

    def pending(self) -> list[int]:
        """Clips that this run is to watch and that are not in memory yet, in order."""
        with self.desk.store.begin() as session:
            left = clip_rows.next_clips(session, self.video.id, again=self._again)
        return [clip.index for clip in left if not self._only or clip.index in self._only]

    def state(self) -> VideoState:
        """How far the video is.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        with self.desk.store.begin() as session:
            found = video_rows.video_state(session, self.video.id)
        if found is None:
            raise NotFound(f"{self.video.title} was deleted while it was watched")
        return found

    def settled(self) -> bool:
        """Whether nothing is left to do, as after an earlier run."""
        return self.state().state != video_rows.WATCHING and not self.pending()

    def begin(self) -> list[int]:
        """The clips to watch, in order; what a question sees waits for them."""
        self._mark(video_rows.WATCHING)
        pending = self.pending()
        self._draft_ahead(pending)
        return pending

    def _draft_ahead(self, clips: Collection[int]) -> None:
        """Have clips written ahead of their turn, where a model may write several at once."""
        self._drafting = Drafting(self._draft, self.at_once) if self.at_once > 1 else None
        if self._drafting is not None:
            self._drafting.expect(clips)

    def _draft(self, coming: Sequence[ToWrite]) -> WrittenDraft | None:
        desk = self.desk
        return draft_ahead(
            desk.store, self.video.id, coming, self.writers, desk.toolbox, desk.settings
        )

    @stage("perceive")
    def perceive(self, clip: int) -> None:
        """Decode the clip and find what it shows and says; kept until it is remembered."""
        if clip not in self._ready:
            start = time.monotonic()
            raw = self._reader.clip(clip)
            faults.fault_point(faults.FaultPoint.DECODED)
            found = perceive(raw, self.desk.toolbox, self.desk.settings.watch)
            self._keep(clip, found, time.monotonic() - start)
            faults.fault_point(faults.FaultPoint.PERCEIVED)

    def order(self, clip: int, threads: int) -> Order:
        """The clip as a worker elsewhere is told to perceive it, its models in ``threads``."""
        desk = self.desk
        path = self.path.absolute()
        return Order(path, self._info, clip, desk.toolbox, desk.settings.watch, threads)

    def take(self, delivery: Delivery) -> None:
        """Keep what a worker perceived until it is remembered."""
        found = delivery.perceived
        self._keep(found.percept.clip.index, found, delivery.seconds)

    def _keep(self, clip: int, found: Perceived, seconds: float) -> None:
        self._took[clip] = seconds
        self._ready[clip] = replace(found, percept=self._beside.added_to(found.percept))
        if self._drafting is not None:
            self._drafting.perceived(clip, self._ready[clip])

    @stage("remember")
    def remember(self, clip: int) -> None:
        """Store the perceived clip as memory, in one transaction.

        Raises:
            ClipLeft: it could not be decoded, or its memory not be written; the store says why.
        """
        perceived, desk, start = self._ready[clip], self.desk, time.monotonic()
        draft = self._drafting.draft(clip) if self._drafting is not None else None
        args = (self.writers, desk.toolbox, desk.settings, draft)
        state = remember(desk.store, self.video.id, perceived, *args)
        # Where the database goes away right here, this step is tried again: the clip is done then.
        self._count(clip, self._took.get(clip, 0.0) + time.monotonic() - start)
        del self._ready[clip]
        self._took.pop(clip, None)
        self._settled(clip)
        if state is ClipState.FAILED:
            raise ClipLeft(self._reason(clip))
        self._fresh += 1

    def _settled(self, clip: int) -> None:
        if self._drafting is not None:
            self._drafting.settled(clip)

    def _count(self, clip: int, seconds: float) -> None:
        with self.desk.store.begin() as session:
            clip_rows.add_seconds(session, self.video.id, clip, seconds)

    @stage("weave")
    def weave(self, *, final: bool = False) -> None:
        """Bring the event graph up to date with what is remembered."""
        desk = self.desk
        weave_due(desk.store, self.video.id, self.writers, desk.toolbox, desk.settings, final=final)

    def give_up(self, clip: int, error: ModelError) -> None:
        """Leave a clip as failed that could not be perceived; the next run tries it again."""
        if isinstance(error, ClipLeft):
            return
        self._settled(clip)
        with self.desk.store.begin() as session:
            clip_rows.mark_clip(
                session, self.video.id, clip, ClipState.FAILED, error=str(error) or repr(error)
            )

    def seen_to_the_end(self) -> bool:
        """Whether every clip was watched or given up, so that no other will come."""
        state = self.state()
        return state.done + state.failed == state.clips

    def finish(self) -> IngestResult:
        """Mark the video as done, or as failed where clips could not be watched.

        One that was paused, and of which only some clips were tried again, stays as it was.
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
        """How the video stands, and what this run did."""
        state = self.state()
        return IngestResult(self.video, state.clips, self._fresh, state.failed)

    def _mark(self, state: str, error: str | None = None) -> None:
        with self.desk.store.begin() as session:
            video_rows.set_video_state(session, self.video.id, state, error)

    def _reason(self, clip: int) -> str:
        with self.desk.store.begin() as session:
            found = [row.error for row in clip_rows.clips_of(session, self.video.id)]
        return found[clip] or "no reason is known"


@contextmanager
def open_video(
    desk: Workspace,
    path: Path,
    *,
    again: bool = False,
    only: Collection[int] = (),
    subtitles: Subtitles | None = None,
) -> Iterator[VideoIngestion]:
    """The video of ``path`` with its row and clips in the store; nobody else may watch it.

    Args:
        desk: the store and the models.
        path: a media file.
        again: try clips too that failed for good.
        only: no other clips than these; empty: all.
        subtitles: whether subtitles that come with it are used; None: as the settings say, or as
            it was begun.

    Raises:
        MediaError: the file is empty, damaged, or holds neither video nor audio; no row is left.
        Busy: another process is watching it.
        InputError: it was begun in clips of another length or with other subtitles, or a file of
            subtitles cannot be read.
    """
    info = probe(path)
    stamp = stamp_of(path.absolute())
    name = video_id(path)
    note_original(desk.home, name, stamp)
    with alone(desk.home, name, path.stem), claimed(desk.store, name, path.stem):
        with desk.store.begin() as session:
            known = video_rows.known_video(session, name)
            left = clip_rows.next_clips(session, name, again=again)
        beside = None
        if left or known is None or subtitles is not None:
            wanted = chosen(known, subtitles, desk.settings.watch.subtitles)
            beside = accompaniment(path, info) if wanted == "use" else None
            refuse_other_subtitles(known, beside)
        video = _video(desk, name, path, info, beside)
        with desk.store.begin() as session:
            clips = clips_of(info.duration_ms, desk.settings.watch)
            if video_rows.add_video(session, video, clips, models_used(desk.profile)):
                note(session, Deed.ADDED, video.id)
            else:
                clip_rows.refuse_other_clips(session, video, clips)
            # A known video keeps its title, whatever the file is called by now.
            video = video_rows.find_video(session, video.id)
        company = beside or Accompaniment()
        yield VideoIngestion(desk, path, info, video, company, again=again, only=only)


def _video(
    desk: Workspace, name: str, path: Path, info: SourceInfo, beside: Accompaniment | None
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
        profile=desk.profile.name,
        subtitles=beside.names if beside else None,
    )


def models_used(profile: Profile) -> dict[str, str]:
    """Which model did what, for the record."""
    ports = ("speech", "faces", "speaker", "screen", "objects", "text", "writer")
    used = {port: str(getattr(profile, port)) for port in ports}
    return used | {"images": name_of(profile.images_folder) if profile.images_folder else NO_MODEL}
