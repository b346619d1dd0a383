"""What is seen and heard reaches its bars, on short excerpts of the shared clips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.perception.faces import FaceReport, judge_joined, watch_faces
from benchmarks.perception.joining import join, starts
from benchmarks.perception.joins import judge_joins, watch_people
from benchmarks.perception.report import FACES_F1, SPEAKER_ERROR, in_clips_of
from benchmarks.perception.scenes import COMPANY, PEOPLE
from benchmarks.perception.shots import judge_shots
from benchmarks.perception.voices import judge_voices, judge_words, marked_recordings
from flows.workspace import Workspace
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from tests.support.full_suite import in_full

LIGHT = [
    replace(scene, end_ms=min(scene.end_ms, scene.start_ms + 1_600))
    for scene in PEOPLE
    if not scene.file.startswith(("jackson", "pbs"))
][:14]
"""Known people, most of them twice, in little time."""


@pytest.fixture(scope="module")
def media(shared_media: Callable[[str], Path]) -> Path:
    for scene in LIGHT:
        shared_media(scene.file)
    return shared_media("questions.json").parent


@pytest.fixture(scope="module")
def joined(media: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return join(LIGHT, media, tmp_path_factory.mktemp("joined") / "joined.mp4")


def faces(home: Home, store: Store, toolbox: Toolbox, joined: Path) -> FaceReport:
    """Faces of the joined video, in clips of five seconds, so that people return in other clips."""
    workspace = Workspace(home, store, in_clips_of(load_profile("local"), 5_000), toolbox)
    return judge_joined(
        "joined", "insightface", watch_faces(workspace, joined, lambda: None), LIGHT
    )


@pytest.mark.full
def test_people_are_known_again(home: Home, store: Store, toolbox: Toolbox, joined: Path) -> None:
    report = faces(home, store, toolbox, joined)
    assert 100 * report.pairs.f1 >= FACES_F1
    assert report.people == len({who for scene in LIGHT for who in scene.people})
    assert report.twice == 0


@pytest.mark.full
def test_a_voice_finds_its_face_though_nobody_ever_speaks_alone(
    home: Home, store: Store, toolbox: Toolbox, media: Path, tmp_path: Path
) -> None:
    scenes = [one for one in COMPANY if one.heard == "presenter"]
    company = join(scenes, media, tmp_path / "company.mp4")
    workspace = Workspace(home, store, in_clips_of(load_profile("local"), 5_000), toolbox)
    met = watch_people(workspace, company, lambda: None)
    report = judge_joins("in company", met, scenes)
    assert (report.right, report.wrong) == (("presenter",), 0)
    # By the face and not by chance: the same joins are wrong of anybody else's voice.
    assert judge_joins("in company", met, [replace(one, heard="jeff") for one in scenes]).wrong == 1


@pytest.mark.full
def test_cuts_are_found_at_least_as_well_as_by_the_reference(media: Path, tmp_path: Path) -> None:
    pytest.importorskip("scenedetect")
    cuts = starts(LIGHT)[1:-1]
    joined = join(LIGHT, media, tmp_path / "joined.mp4")
    report = judge_shots(joined, cuts, load_profile("local").settings.watch, lambda: None)
    assert report.reference is not None
    assert report.reference.right > len(cuts) / 2
    assert report.ours.f1 >= report.reference.f1


@pytest.mark.parametrize("name", ["pyannote_sample.flac", in_full("dev01.flac")])
def test_two_speakers_are_distinguished(name: str, media: Path, toolbox: Toolbox) -> None:
    (marked,) = [one for one in marked_recordings(media) if one.path.name == name]
    report = judge_voices(marked, toolbox, load_profile("local").settings.watch)
    assert (report.speakers, report.voices) == (2, 2)
    assert report.errors.rate <= SPEAKER_ERROR
    assert report.strict.rate > report.errors.rate


@pytest.mark.full
def test_words_that_are_read_out_are_understood(media: Path, toolbox: Toolbox) -> None:
    clip, said = media / "w3c_perspective.mp4", media / "w3c_perspective.vtt"
    steps: list[int] = []
    settings = load_profile("local").settings.watch
    report = judge_words(clip, said, toolbox, settings, lambda: steps.append(1))
    assert report.errors.words > 30
    assert report.errors.rate <= 10
    assert steps == [1]
