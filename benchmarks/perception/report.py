"""Evaluation of perception against annotations: faces, speakers, words, sounds and cuts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.perception.faces import (
    FaceReport,
    judge_joined,
    judge_marked,
    marked_faces,
    watch_faces,
)
from benchmarks.perception.joining import Scene, join, starts
from benchmarks.perception.joins import JoinReport, judge_joins, watch_people
from benchmarks.perception.metrics import SpeakerErrors
from benchmarks.perception.scenes import COMPANY, COMPANY_CLIP_MS, MEETING, PEOPLE, TALK
from benchmarks.perception.shots import ShotReport, judge_shots
from benchmarks.perception.sounds import TRACKS, SoundReport, judge_sounds
from benchmarks.perception.voices import (
    TRANSCRIBED,
    VoiceReport,
    WordReport,
    judge_voices,
    judge_words,
    marked_recordings,
)
from domain.errors import InputError, SetupError
from evals.tables import Bar
from flows.workspace import Workspace
from models.keys_and_packages import EVALUATION
from models.profile import Profile
from models.toolbox import Toolbox
from perception.source import clips_of, probe
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import migrate

FACES_F1 = 90.0
"""Pairwise F1 of face identities, in percent."""
SPEAKER_ERROR = 25.0
"""Diarisation error rate of recordings with two speakers, in percent."""
WORSE_IN_CLIPS = 1.0
"""Word error rate of clips above that of the whole file, in points."""
MARKED = "msdwild_00001"
FRAME_RATE = 25.0
"""Frames per second of the clip with annotated faces."""
UNCUT = ("msdwild_00001.mp4", "visualvoice_interview.mp4")
"""Clips without a cut."""
PACKAGED = "insightface"
ENGINES = (PACKAGED, "yunet_sface")


class Follow(Protocol):
    """Receives the progress of the work."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Start a part of ``total`` steps."""

    def step(self, steps: int = 1) -> None:
        """Count finished steps."""


@dataclass(frozen=True)
class PerceptionReport:
    """All measurements, and the files that were missing."""

    faces: tuple[FaceReport, ...] = ()
    voices: tuple[VoiceReport, ...] = ()
    words: tuple[WordReport, ...] = ()
    shots: tuple[ShotReport, ...] = ()
    joins: tuple[JoinReport, ...] = ()
    absent: tuple[str, ...] = ()
    sounds: tuple[SoundReport, ...] = ()

    @property
    def pairs_of_speakers(self) -> tuple[VoiceReport, ...]:
        """Return the recordings with two speakers."""
        return tuple(voice for voice in self.voices if voice.speakers == 2)

    @property
    def bars(self) -> list[Bar]:
        """Return the bars to reach, of what could be measured."""
        bars = []
        for one in self.faces:
            if one.engine == PACKAGED:
                f1 = 100 * one.pairs.f1
                bars.append(Bar(f"face identities, {one.name}: pairwise F1", f1, FACES_F1))
                bars.append(Bar(f"face identities, {one.name}: twice", one.twice, 0, most=True))
        for voice in self.pairs_of_speakers:
            name = f"diarisation error, {voice.name}, percent"
            bars.append(Bar(name, voice.errors.rate, SPEAKER_ERROR, most=True))
        for shot in self.shots:
            if shot.reference is not None:
                reference_f1 = 100 * shot.reference.f1
                bars.append(
                    Bar(f"cuts, {shot.name}: F1, percent", 100 * shot.ours.f1, reference_f1)
                )
        for heard in self.words:
            worse = heard.errors.rate - heard.whole.rate
            name = f"word errors, {heard.name}: points more than over the whole file"
            bars.append(Bar(name, worse, WORSE_IN_CLIPS, most=True))
        label = "voices joined to a wrong face"
        bars += [Bar(f"{label}, {one.name}", one.wrong, 0, most=True) for one in self.joins]
        return bars


def total(reports: Sequence[VoiceReport]) -> SpeakerErrors:
    """Sum the errors of several recordings."""
    errors = SpeakerErrors()
    for report in reports:
        errors += report.errors
    return errors


def evaluate_perception(
    folder: Path, profile: Profile, home: Home, follow: Follow, scenes: Sequence[Scene] = PEOPLE
) -> PerceptionReport:
    """Measure what the clips in ``folder`` allow.

    Args:
        folder: the shared clips; missing ones are skipped, and named in the report.
        profile: the models; faces are evaluated with each of ``ENGINES``.
        home: holds the weights.
        follow: receives the progress.
        scenes: are joined into a video with known cuts and people.

    Raises:
        InputError: the folder has nothing to evaluate.
        SetupError: the packages of the extra ``evaluation`` are missing.
        WeightsMissing: a model's weights are missing.
    """
    if not EVALUATION.installed:
        raise SetupError(EVALUATION.hint)
    job = _PerceptionRun(folder, profile, home, follow, tuple(scenes))
    voices, words, sounds = job.voices(), job.words(), job.sounds()
    with tempfile.TemporaryDirectory(prefix="homer-eval-") as temporary:
        joined = job.joined(Path(temporary) / "joined.mp4")
        faces, shots = job.faces(joined), job.shots(joined)
        joins = job.joins(joined, Path(temporary))
    if not (faces or voices or words or shots or joins):
        raise InputError(
            f"{folder}: none of the clips that are judged is there; name the folder that has "
            f"{MARKED}.mp4 and audio/pyannote_sample.flac"
        )
    absent = tuple(sorted(job.absent))
    return PerceptionReport(faces, voices, words, shots, joins, absent, sounds)


def in_clips_of(profile: Profile, clip_ms: int) -> Profile:
    """Return the profile with clips of another length."""
    watch = profile.settings.watch.model_copy(update={"clip_ms": clip_ms})
    settings = profile.settings.model_copy(update={"watch": watch})
    return profile.model_copy(update={"settings": settings})


class _PerceptionRun:
    """One evaluation of perception, with the files it found missing."""

    def __init__(
        self,
        folder: Path,
        profile: Profile,
        home: Home,
        follow: Follow,
        scenes: tuple[Scene, ...],
    ) -> None:
        self._folder, self._profile, self._home = folder, profile, home
        self._follow, self._scenes = follow, scenes
        self._toolbox = Toolbox(profile, home.weights)
        self._watch = profile.settings.watch
        self.absent: set[str] = set()

    def _has(self, *names: str) -> bool:
        missing = {name for name in names if not (self._folder / name).is_file()}
        self.absent |= missing
        return not missing

    def _clips(self, path: Path) -> int:
        return len(clips_of(probe(path).duration_ms, self._watch))

    def voices(self) -> tuple[VoiceReport, ...]:
        """Measure who speaks when in every recording with annotated turns."""
        recordings = marked_recordings(self._folder)
        if not recordings:
            self.absent.add("audio/*.rttm")
        self._follow.start("speakers", len(recordings))
        reports = []
        for recording in recordings:
            reports.append(judge_voices(recording, self._toolbox, self._watch))
            self._follow.step()
        return tuple(reports)

    def words(self) -> tuple[WordReport, ...]:
        """Measure the words of every clip that has a transcript."""
        transcribed = [
            (self._folder / a, self._folder / b) for a, b in TRANSCRIBED.items() if self._has(a, b)
        ]
        self._follow.start("words", sum(self._clips(clip) for clip, _ in transcribed))
        return tuple(
            judge_words(clip, transcript, self._toolbox, self._watch, self._follow.step)
            for clip, transcript in transcribed
        )

    def sounds(self) -> tuple[SoundReport, ...]:
        """Measure recordings of sounds among the speech of the recordings with annotated turns."""
        speech = [recording.path for recording in marked_recordings(self._folder)]
        classifier = self._toolbox.sounds
        if not speech or classifier is None:
            return ()
        self._follow.start("sounds", TRACKS)
        reports, absent = judge_sounds(speech, classifier, self._watch, self._follow.step)
        self.absent |= set(absent)
        return tuple(reports)

    def joined(self, path: Path) -> Path | None:
        """Write the joined video, if all its clips are there."""
        return self._join(self._scenes, path)

    def _join(self, scenes: Sequence[Scene], path: Path) -> Path | None:
        beside = {scene.beside[0] for scene in scenes if scene.beside}
        if not self._has(*{scene.file for scene in scenes}, *beside):
            return None
        self._follow.start("joining", len(scenes))
        return join(scenes, self._folder, path, self._follow.step)

    def joins(self, joined: Path | None, folder: Path) -> tuple[JoinReport, ...]:
        """Measure voices joined to faces: of people alone in view, in company, and as filmed.

        Args:
            joined: the joined video; None if clips of it are missing.
            folder: where the others are written.
        """
        usual = self._watch.clip_ms
        videos = [("joined", joined, self._scenes, usual)]
        for name, scenes, clip_ms in (
            ("in company", COMPANY, COMPANY_CLIP_MS),
            (MARKED, TALK, usual),
            ("of_meeting", MEETING, usual),
        ):
            videos.append((name, self._join(scenes, folder / f"{name}.mp4"), scenes, clip_ms))
        return tuple(
            self._joins(name, path, scenes, ms) for name, path, scenes, ms in videos if path
        )

    def _joins(self, name: str, path: Path, scenes: Sequence[Scene], clip_ms: int) -> JoinReport:
        profile = in_clips_of(self._profile, clip_ms)
        clips = clips_of(probe(path).duration_ms, profile.settings.watch)
        self._follow.start(f"voices and faces, {name}", len(clips))
        with scratch_workspace(profile, self._home) as workspace:
            return judge_joins(name, watch_people(workspace, path, self._follow.step), scenes)

    def faces(self, joined: Path | None) -> tuple[FaceReport, ...]:
        """Measure identities by each engine, on the annotated clip and on the joined one."""
        return tuple(report for engine in ENGINES for report in self._faces_by(engine, joined))

    def _faces_by(self, engine: str, joined: Path | None) -> list[FaceReport]:
        marked, faces = self._folder / f"{MARKED}.mp4", self._folder / f"{MARKED}_faces.csv"
        has_marked, reports = self._has(marked.name, faces.name), []
        watched = [path for path in (marked if has_marked else None, joined) if path]
        self._follow.start(f"faces by {engine}", sum(map(self._clips, watched)))
        profile = self._profile.model_copy(update={"faces": engine})
        with scratch_workspace(profile, self._home) as workspace:
            if has_marked:
                seen = watch_faces(workspace, marked, self._follow.step)
                truth = marked_faces(faces)
                reports.append(judge_marked("marked", engine, seen, truth, FRAME_RATE))
            if joined:
                seen = watch_faces(workspace, joined, self._follow.step)
                reports.append(judge_joined("joined", engine, seen, self._scenes))
        return reports

    def shots(self, joined: Path | None) -> tuple[ShotReport, ...]:
        """Measure the cuts of the joined video, and of clips without cuts."""
        uncut = [self._folder / name for name in UNCUT if self._has(name)]
        cuts = starts(self._scenes)[1:-1]
        videos = [(joined, cuts)] if joined else []
        all_videos = [*videos, *((path, []) for path in uncut)]
        self._follow.start("cuts", sum(self._clips(path) for path, _ in all_videos))
        return tuple(
            judge_shots(path, true, self._watch, self._follow.step) for path, true in all_videos
        )


@contextmanager
def scratch_workspace(profile: Profile, home: Home) -> Iterator[Workspace]:
    """Open an empty library with the models of ``profile`` and the weights of ``home``."""
    with tempfile.TemporaryDirectory(prefix="homer-eval-") as folder:
        scratch_home = Home(Path(folder)).make()
        server = EmbeddedPostgres(scratch_home, fsync=False)
        try:
            url = server.start()
            migrate(url)
            with open_store(scratch_home, url) as store:
                yield Workspace(scratch_home, store, profile, Toolbox(profile, home.weights))
        finally:
            server.stop(fast=False)
