"""What Homer sees and hears, beside what people marked: faces, speakers, words and cuts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from domain.errors import InputError
from evals.bars import Bar
from evals.diarization import SpeakerErrors
from evals.joining import Scene, join, starts
from evals.perception_faces import FaceReport, judge_joined, judge_marked, marked_faces, watch_faces
from evals.perception_joins import JoinReport, judge_joins, watch_people
from evals.perception_shots import ShotReport, judge_shots
from evals.perception_voices import (
    TRANSCRIBED,
    VoiceReport,
    WordReport,
    judge_voices,
    judge_words,
    marked_recordings,
)
from evals.scenes import COMPANY, COMPANY_CLIP_MS, PEOPLE
from evals.scratch import scratch_desk
from models.profile import Profile
from models.toolbox import Toolbox
from perception.source import clips_of, probe
from store.home import Home

FACES_F1 = 90.0
"""Pairwise F1 of face identities, in percent."""
SPEAKER_ERROR = 25.0
"""Diarisation error rate of recordings with two speakers, in percent."""
MARKED = "msdwild_00001"
FRAME_RATE = 25.0
"""Frames a second of the clip with marked faces."""
UNCUT = ("msdwild_00001.mp4", "visualvoice_interview.mp4")
"""Clips that are one shot from beginning to end."""
PACKAGED = "insightface"
ENGINES = (PACKAGED, "yunet_sface")


class Follow(Protocol):
    """Is told of the work as it goes."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """New work of ``total`` steps."""

    def step(self, steps: int = 1) -> None:
        """So many steps are done."""


@dataclass(frozen=True)
class PerceptionReport:
    """All that was measured, and the files that were not there."""

    faces: tuple[FaceReport, ...] = ()
    voices: tuple[VoiceReport, ...] = ()
    words: tuple[WordReport, ...] = ()
    shots: tuple[ShotReport, ...] = ()
    joins: tuple[JoinReport, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def pairs_of_speakers(self) -> tuple[VoiceReport, ...]:
        """The recordings with two speakers."""
        return tuple(one for one in self.voices if one.speakers == 2)

    @property
    def bars(self) -> list[Bar]:
        """What must be reached, of what could be measured."""
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
                wanted = 100 * shot.reference.f1
                bars.append(Bar(f"cuts, {shot.name}: F1, percent", 100 * shot.ours.f1, wanted))
        wrong = "voices joined to a wrong face"
        bars += [Bar(f"{wrong}, {one.name}", one.wrong, 0, most=True) for one in self.joins]
        return bars


def total(reports: Sequence[VoiceReport]) -> SpeakerErrors:
    """The errors of several recordings as if they were one."""
    errors = SpeakerErrors()
    for one in reports:
        errors += one.errors
    return errors


def evaluate_perception(
    folder: Path, profile: Profile, home: Home, follow: Follow, scenes: Sequence[Scene] = PEOPLE
) -> PerceptionReport:
    """Measure what can be measured of the clips in ``folder``.

    Args:
        folder: the shared clips; what is not there is left out, and named in the report.
        profile: the models; faces are judged with each of ``ENGINES``.
        home: has the weights.
        follow: is told how far it is.
        scenes: what is joined into a video with known cuts and people.

    Raises:
        InputError: nothing that could be judged is there.
        WeightsMissing: a model's weights are not there.
    """
    job = _PerceptionRun(folder, profile, home, follow, tuple(scenes))
    voices, words = job.voices(), job.words()
    with tempfile.TemporaryDirectory(prefix="homer-eval-") as temporary:
        joined = job.joined(Path(temporary) / "joined.mp4")
        faces, shots = job.faces(joined), job.shots(joined)
        joins = job.joins(joined, Path(temporary) / "company.mp4")
    if not (faces or voices or words or shots or joins):
        raise InputError(
            f"{folder}: none of the clips that are judged is there; name the folder that has "
            f"{MARKED}.mp4 and audio/pyannote_sample.flac"
        )
    return PerceptionReport(faces, voices, words, shots, joins, tuple(sorted(job.absent)))


def in_clips_of(profile: Profile, clip_ms: int) -> Profile:
    """The profile with clips of another length."""
    watch = profile.settings.watch.model_copy(update={"clip_ms": clip_ms})
    settings = profile.settings.model_copy(update={"watch": watch})
    return profile.model_copy(update={"settings": settings})


class _PerceptionRun:
    """One evaluation: what is there, and what was found missing."""

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
        """Who speaks when in every recording with marked turns."""
        found = marked_recordings(self._folder)
        if not found:
            self.absent.add("audio/*.rttm")
        self._follow.start("speakers", len(found))
        reports = []
        for one in found:
            reports.append(judge_voices(one, self._toolbox, self._watch))
            self._follow.step()
        return tuple(reports)

    def words(self) -> tuple[WordReport, ...]:
        """What is said in every clip that has a transcript."""
        there = [
            (self._folder / a, self._folder / b) for a, b in TRANSCRIBED.items() if self._has(a, b)
        ]
        self._follow.start("words", sum(self._clips(clip) for clip, _ in there))
        return tuple(
            judge_words(clip, transcript, self._toolbox, self._watch, self._follow.step)
            for clip, transcript in there
        )

    def joined(self, path: Path) -> Path | None:
        """The joined video, where all its clips are there."""
        return self._join(self._scenes, path)

    def _join(self, scenes: Sequence[Scene], path: Path) -> Path | None:
        beside = {scene.beside[0] for scene in scenes if scene.beside}
        if not self._has(*{scene.file for scene in scenes}, *beside):
            return None
        self._follow.start("joining", len(scenes))
        return join(scenes, self._folder, path, self._follow.step)

    def joins(self, joined: Path | None, path: Path) -> tuple[JoinReport, ...]:
        """Whose voices were found, where people speak alone in view and where nobody ever does."""
        company, clip_ms = self._join(COMPANY, path), self._watch.clip_ms
        videos = [("joined", joined, self._scenes, clip_ms)]
        videos.append(("in company", company, COMPANY, COMPANY_CLIP_MS))
        return tuple(
            self._joins(name, path, scenes, ms) for name, path, scenes, ms in videos if path
        )

    def _joins(self, name: str, path: Path, scenes: Sequence[Scene], clip_ms: int) -> JoinReport:
        profile = in_clips_of(self._profile, clip_ms)
        clips = clips_of(probe(path).duration_ms, profile.settings.watch)
        self._follow.start(f"voices and faces, {name}", len(clips))
        with scratch_desk(profile, self._home) as desk:
            return judge_joins(name, watch_people(desk, path, self._follow.step), scenes)

    def faces(self, joined: Path | None) -> tuple[FaceReport, ...]:
        """Who is who by each engine, on the marked clip and on the joined one."""
        return tuple(one for engine in ENGINES for one in self._faces_by(engine, joined))

    def _faces_by(self, engine: str, joined: Path | None) -> list[FaceReport]:
        marked, faces = self._folder / f"{MARKED}.mp4", self._folder / f"{MARKED}_faces.csv"
        has_marked, reports = self._has(marked.name, faces.name), []
        watched = [path for path in (marked if has_marked else None, joined) if path]
        self._follow.start(f"faces by {engine}", sum(map(self._clips, watched)))
        profile = self._profile.model_copy(update={"faces": engine})
        with scratch_desk(profile, self._home) as desk:
            if has_marked:
                seen = watch_faces(desk, marked, self._follow.step)
                truth = marked_faces(faces)
                reports.append(judge_marked("marked", engine, seen, truth, FRAME_RATE))
            if joined:
                seen = watch_faces(desk, joined, self._follow.step)
                reports.append(judge_joined("joined", engine, seen, self._scenes))
        return reports

    def shots(self, joined: Path | None) -> tuple[ShotReport, ...]:
        """The cuts of the joined video, and none in clips that have none."""
        uncut = [self._folder / name for name in UNCUT if self._has(name)]
        cuts = starts(self._scenes)[1:-1]
        videos = [(joined, cuts)] if joined else []
        every = [*videos, *((path, []) for path in uncut)]
        self._follow.start("cuts", sum(self._clips(path) for path, _ in every))
        return tuple(
            judge_shots(path, true, self._watch, self._follow.step) for path, true in every
        )
