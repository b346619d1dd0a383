"""The ingestion of one video: the steps of its flow, each safe to repeat.

Progress is read from the store only, so that a flow that was killed resumes at the clip that it
was at, with or without Prefect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from unicodedata import normalize

from domain import faults
from domain.errors import InputError, MediaError, ModelError
from domain.media import Video
from domain.rights import Deed
from domain.settings import Subtitles
from domain.watching import Watched
from domain.words import counted, marked
from flows.clip_memory import Ingestion
from flows.video_locks import exclusive_lock
from flows.workspace import Workspace
from memory.subtitles import SourceTexts, texts_to_use
from models.keys_and_packages import LITERT
from models.ports import Speech, Word
from models.profile import Profile
from perception.decode import ClipReader, lookahead_ms, read_clips, read_sound
from perception.hearing import recognise, speaking_track
from perception.perceive_clip import Delivery, Order, decode_and_perceive
from perception.source import (
    SourceInfo,
    SourceProbe,
    cache_original,
    clips_of,
    probe_source,
    stat_digest,
    video_id,
)
from store.queries import clips as clip_rows
from store.queries import videos as video_rows
from store.queries.rights import record_deed
from telemetry.tracing import traced_step


class VideoIngestion(Ingestion):
    """The steps of one video. Large objects stay in here and never become a task's result.

    Perceiving may run in a thread, ahead of the other steps, or in another process.
    """

    def __init__(
        self,
        workspace: Workspace,
        path: Path,
        info: SourceInfo,
        video: Video,
        subtitle_track: SourceTexts,
        *,
        again: bool = False,
        only: Collection[int] = (),
    ) -> None:
        super().__init__(workspace, video)
        self.path = path
        self._info, self._subtitles, self._again, self._only = info, subtitle_track, again, only
        self._reader = ClipReader(path, info, workspace.settings.watch, read_clips)
        self._lock = Lock()
        self._waiting: list[int] = []
        self._delivered: dict[int, Delivery] = {}
        self._after: dict[int, tuple[Speech, ...]] = {}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what a person should know about the source before it is watched."""
        return (*self.video.remarks, *_missing_models(self.workspace.profile))

    def pending(self) -> list[int]:
        """Return the clips that this run watches and that are not in memory yet, in order."""
        with self.workspace.store.begin() as session:
            unfinished = clip_rows.next_clips(session, self.video.id, again=self._again)
        return [clip.index for clip in unfinished if not self._only or clip.index in self._only]

    def settled(self) -> bool:
        """Check whether nothing is left to do, as after an earlier run."""
        return self.state().state != video_rows.WATCHING and not self.pending()

    def begin(self) -> list[int]:
        """Mark the video as being watched, and return the clips to watch, in order."""
        self.mark(video_rows.WATCHING)
        pending = self.pending()
        self.start_drafts()
        self.expect(pending)
        self._waiting = [*pending]
        return pending

    @traced_step("perceive")
    def perceive(self, clip: int) -> None:
        """Decode and perceive the clip; hold the percept until it is remembered."""
        if not self.holds(clip):
            tools, settings = self.workspace.toolbox, self.workspace.settings.watch
            memory = self.workspace.profile.shown_clips
            sampled_ms = self.keepers.sampled_ms
            made = decode_and_perceive(self._reader, clip, tools, settings, memory, sampled_ms)
            self.take(made)

    def order(self, clip: int, threads: int) -> Order:
        """Return the order to perceive the clip elsewhere, with ``threads`` per model."""
        workspace = self.workspace
        path = self.path.absolute()
        settings, memory = workspace.settings.watch, workspace.profile.shown_clips
        sampled_ms, tools = self.keepers.sampled_ms, workspace.toolbox
        return Order(path, self._info, clip, tools, settings, threads, memory, sampled_ms)

    def take(self, delivery: Delivery) -> None:
        """Hold what a worker perceived until it is remembered.

        A clip's first words are recognised with the clip before it. So a clip is complete once
        that is perceived; if it is not watched by this run, they are recognised here.
        """
        clip = delivery.perceived.percept.clip.index
        with self._lock:
            unheard = clip > 0 and clip - 1 not in (*self._waiting, *self._after)
        if unheard:
            self._after[clip - 1] = self._words_after(clip - 1)
        with self._lock:
            self._delivered[clip] = delivery
            if clip not in self._waiting:
                self._waiting.insert(0, clip)
            self._hold_complete()

    def _hold_complete(self) -> None:
        """Hold the perceived clips that no earlier one is waited for; called with the lock held."""
        while self._waiting and self._waiting[0] in self._delivered:
            clip = self._waiting.pop(0)
            delivery = self._delivered.pop(clip)
            self._after[clip] = delivery.perceived.heard.after
            perceived = delivery.perceived.after(self._after.get(clip - 1, ()))
            percept = self._subtitles.add_to(perceived.percept)
            self.hold(clip, replace(perceived, percept=percept), delivery.seconds)

    def _words_after(self, number: int) -> tuple[Speech, ...]:
        """Recognise what is said right after a clip, as when the clip is perceived."""
        settings, toolbox = self.workspace.settings.watch, self.workspace.toolbox
        clip = clips_of(self._info.duration_ms, settings)[number]
        return recognise(read_sound(self.path, self._info, clip, settings), toolbox, settings).after

    def give_up(self, clip: int, error: ModelError) -> None:
        """Mark a clip that could not be perceived as failed; the next run retries it."""
        super().give_up(clip, error)
        if clip in self._waiting:
            try:
                after = self._words_after(clip)
            except (MediaError, ModelError):
                # A speech without words says that it was not recognised.
                unheard = Word(0, lookahead_ms(self.workspace.settings.watch), "")
                after = (Speech((unheard,), "", 0.0),)
            with self._lock:
                self._waiting.remove(clip)
                self._after[clip] = after
                self._hold_complete()

    def seen_to_the_end(self) -> bool:
        """Check whether every clip was watched or given up, so that none will follow."""
        state = self.state()
        return state.done + state.failed == state.clips

    def finish(self) -> Watched:
        """Mark the video as done, or as failed where clips are left for another run.

        A paused video of which only some clips were retried stays as it was.
        """
        with self.workspace.store.begin() as session:
            left = clip_rows.failed_clips(session, self.video.id)
        kept = [clip for clip in left if clip.unwritten]
        if not self.seen_to_the_end():
            self.mark(video_rows.WATCHING)
        elif len(left) > len(kept):
            lost = counted(len(left) - len(kept), "clip")
            self.mark(video_rows.FAILED, f"{lost} could not be watched")
        elif kept:
            waiting = counted(len(kept), "clip")
            why = marked(f"{waiting} will be written by the same command: {kept[0].error}")
            self.mark(video_rows.FAILED, why)
        else:
            self.mark(video_rows.DONE)
        faults.fault_point(faults.FaultPoint.VIDEO_DONE)
        return self.result()

    def result(self) -> Watched:
        """Return the state of the video, and what this run did."""
        state = self.state()
        failed = max(state.failed, self.failed)
        return Watched(
            path=str(self.path),
            video=self.video.id,
            title=self.video.title,
            clips=state.clips,
            fresh=self.fresh,
            failed=failed,
        )


@contextmanager
def open_video(
    workspace: Workspace,
    path: Path,
    *,
    again: bool = False,
    only: Collection[int] = (),
    subtitles: Subtitles | None = None,
    audio_track: int | None = None,
) -> Iterator[VideoIngestion]:
    """Open the video of ``path`` with its row and clips, under a lock of its own.

    Args:
        again: also retry clips that failed for good.
        only: numbers of the clips to watch; empty: all.
        subtitles: whether subtitles that come with it are used; None: as an earlier run did, else
            use the settings.
        audio_track: the number of the track of sound to hear, from 1; None: as an earlier run did,
            else the one in which most is said.

    Raises:
        MediaError: the file is empty, damaged, or has neither video nor audio; no row is added.
        Busy: another process is watching it.
        InputError: an earlier run used clips of another length, other subtitles or another track,
            there is no such track, a subtitle file cannot be read, or the library has vectors of
            other encoders.
    """
    stamp = stat_digest(path.absolute())
    name = video_id(path)
    cache_original(workspace.home, name, stamp)
    with exclusive_lock(workspace.store, name, path.stem):
        with workspace.store.begin() as session:
            known = video_rows.known_video(session, name)
            unfinished = clip_rows.next_clips(session, name, again=again)
        if unfinished or known is None:
            workspace.require_encoders()
        probed, track = _probe_track(workspace, path, known, audio_track)
        info = probed.info
        subtitle_track = None
        if unfinished or known is None or subtitles is not None:
            default = workspace.settings.watch.subtitles
            subtitle_track = texts_to_use(path, probed, known, subtitles, default)
        texts = subtitle_track or SourceTexts()
        remarks = (*info.remarks, *_unheard_tracks(probed, track), *texts.remarks)
        video = Video(
            id=name,
            title=normalize("NFC", path.stem),
            path=str(path.absolute()),
            duration_ms=info.duration_ms,
            width=info.width,
            height=info.height,
            has_video=info.has_video,
            has_audio=info.has_audio,
            profile=workspace.profile.name,
            subtitles=subtitle_track.names if subtitle_track else None,
            audio_track=track,
            remarks=remarks,
        )
        with workspace.store.begin() as session:
            clips = clips_of(info.duration_ms, workspace.settings.watch)
            if video_rows.add_video(session, video, clips, models_used(workspace.profile)):
                record_deed(session, Deed.ADDED, video.id)
            else:
                clip_rows.require_same_clips(session, video, clips)
            # A known video keeps its title even if the file was renamed.
            video = video_rows.find_video(session, video.id)
        yield VideoIngestion(workspace, path, info, video, texts, again=again, only=only)


def _probe_track(
    workspace: Workspace, path: Path, known: Video | None, requested: int | None
) -> tuple[SourceProbe, int | None]:
    """Probe a file with the track of sound that is heard; return its number, None if it is one."""
    if known is not None and requested is not None and (known.audio_track or 1) != requested:
        heard = known.audio_track or 1
        raise InputError(
            f"{known.title} was watched with track {heard} of its sound: to hear another, homer "
            f"delete {known.id} and ingest it again with --audio-track {requested}"
        )
    track = requested if known is None else known.audio_track
    if known is None and track is None:
        plain, settings = probe_source(path), workspace.settings.watch
        track = speaking_track(path, plain, workspace.toolbox.activity, settings)
    return probe_source(path, track), track


def _unheard_tracks(probed: SourceProbe, heard: int | None) -> Iterator[str]:
    for number, track in enumerate(probed.tracks, 1):
        if heard is not None and number != heard:
            which = f"track {number} of its sound ({track.about})"
            yield marked(f"{which} is not heard: --audio-track {number} hears it")


def _missing_models(profile: Profile) -> Iterator[str]:
    """Yield what is not perceived although the profile names a model for it."""
    if profile.sound_model != profile.sounds:
        (package,) = LITERT.packages
        yield f"sounds other than speech are not recognised: {package} is not installed"


def models_used(profile: Profile) -> dict[str, str]:
    """Return the model of each port, for the record."""
    ports = ("faces", "speaker", "screen", "objects", "writer")
    used = {port: str(getattr(profile, port)) for port in ports}
    used |= {"speech": profile.speech_name, "text": profile.text_name}
    used["sounds"] = profile.sound_model
    return used | {"images": profile.images_name}
