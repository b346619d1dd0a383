"""Face packs, detectors of things and classifiers of sounds keep their promises."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from domain.errors import SetupError, WeightsMissing
from domain.media import Clip
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.faces import PACKS, InsightFaceEngine, NamedPackEngine
from models.ports import Image, ObjectDetector, Samples, SoundClassifier, Thing
from models.profile import load_profile
from models.toolbox import Toolbox
from perception.decode import read_clips
from perception.faces_and_voices import box_iou
from perception.hearing import KINDS, find_sounds
from perception.source import probe
from store.home import Home
from tests.conftest import WEIGHTS
from tests.support.signals import SAMPLE_HZ, frame_at, noise, samples_of, silence

Shared = Callable[[str], Path]
WEIGHTS_OF_THINGS = Home.default().weights
SETTINGS = WatchSettings()


@pytest.fixture(scope="module")
def pack(toolbox: Toolbox) -> Path:
    """A pack: the folder of the packaged weights."""
    return toolbox.weights / "insightface"


@pytest.fixture(scope="module")
def picture(shared_media: Callable[[str], Path]) -> Image:
    path = shared_media("msdwild_00001.mp4")
    return next(read_clips(path, probe(path), WatchSettings())).frames[0].image


@pytest.mark.full
def test_pack_in_a_folder_finds_the_faces_that_its_models_find(
    pack: Path, picture: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NamedPackEngine, "min_score", 0.5)
    named = NamedPackEngine(str(pack), Path("/nowhere"))
    named_faces, plain = named.faces(picture), InsightFaceEngine(pack).faces(picture)
    clear = [face for face in plain if face.score >= named.min_score]
    assert len(named_faces) == len(clear) > 0
    for ours, theirs in zip(named_faces, clear, strict=True):
        assert box_iou(ours.box, theirs.box) > 0.9
        assert float(ours.vector @ theirs.vector) > 0.95
    assert named.name == "insightface-insightface"
    assert named.faces(np.zeros((8, 8, 3), np.uint8)) == []


def test_a_profile_names_a_pack_and_then_needs_no_packaged_one(pack: Path) -> None:
    profile = load_profile("local").model_copy(update={"faces": f"insightface:{pack}"})
    assert "insightface" not in " ".join(profile.weights)
    assert isinstance(Toolbox(profile, WEIGHTS).faces, NamedPackEngine)


def test_a_missing_pack_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(url: str, **_: object) -> None:
        raise ConnectionError(f"{url}: no network")

    monkeypatch.setattr("insightface.utils.storage.download_file", offline)
    folder = tmp_path / PACKS / "models" / "buffalo_l"
    with pytest.raises(WeightsMissing, match="cannot be fetched") as caught:
        NamedPackEngine("buffalo_l", tmp_path)
    assert str(folder) in str(caught.value)
    assert not folder.exists()


def test_insightface_fetches_a_pack_where_there_is_a_network(
    pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def served(url: str, path: str, **_: object) -> None:
        asked.append(url)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as file:
            for model in pack.glob("*.onnx"):
                file.write(model, f"made_up/{model.name}")

    monkeypatch.setattr("insightface.utils.storage.download_file", served)
    assert NamedPackEngine("made_up", tmp_path).name == "insightface-made_up"
    NamedPackEngine("made_up", tmp_path)
    assert [url.rpartition("/")[2] for url in asked] == ["made_up.zip"]
    assert "download" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["../outside", "/no/such/folder", "a b", "-x"])
def test_an_odd_name_fetches_nothing(name: str, tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing):
        NamedPackEngine(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_pack_is_refused(pack: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(SetupError, match=r"broken\.onnx cannot be loaded as a model"):
        NamedPackEngine(str(tmp_path), tmp_path)
    (tmp_path / "broken.onnx").unlink()
    detector = "scrfd_500m_bnkps.onnx"
    (tmp_path / detector).write_bytes((pack / detector).read_bytes())
    with pytest.raises(SetupError, match="has no detector, or no recogniser"):
        NamedPackEngine(str(tmp_path), tmp_path)


@pytest.fixture(scope="module")
def detector() -> ObjectDetector:
    try:
        found = Toolbox(load_profile("local"), WEIGHTS_OF_THINGS).objects
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def meeting(shared_media: Shared) -> Image:
    """A man in a tie, large, before a chair."""
    return frame_at(shared_media("of_meeting.mp4"), 5.0)


def overlap(a: Thing, b: Thing) -> float:
    width = min(a.box[2], b.box[2]) - max(a.box[0], b.box[0])
    height = min(a.box[3], b.box[3]) - max(a.box[1], b.box[1])
    shared = max(0, width) * max(0, height)
    return shared / (sum([(t.box[2] - t.box[0]) * (t.box[3] - t.box[1]) for t in (a, b)]) - shared)


def test_people_are_found_each_once(detector: ObjectDetector, shared_media: Shared) -> None:
    image = frame_at(shared_media("msdwild_00001.mp4"), 0.0)
    people = [thing for thing in detector.objects(image) if thing.label == "person"]
    assert len(people) == 3
    assert sorted((p.box[0] + p.box[2]) // 2 // 300 for p in people) == [1, 2, 3]


def test_things_are_well_formed(detector: ObjectDetector, meeting: Image) -> None:
    found = detector.objects(meeting)
    assert {"person", "tie", "chair"} <= {thing.label for thing in found}
    assert [one.score for one in found] == sorted((t.score for t in found), reverse=True)
    for thing in found:
        assert thing.label in detector.labels
        assert detector.min_score <= thing.score <= 1
        x0, y0, x1, y1 = thing.box
        assert 0 <= x0 < x1 <= meeting.shape[1]
        assert 0 <= y0 < y1 <= meeting.shape[0]
    same = [(a, b) for a in found for b in found if a is not b and a.label == b.label]
    assert all(overlap(a, b) < 0.5 for a, b in same)


def test_a_thing_is_where_it_is_at_any_size(detector: ObjectDetector, meeting: Image) -> None:
    tie = next(thing for thing in detector.objects(meeting) if thing.label == "tie")
    twice = np.repeat(np.repeat(meeting, 2, axis=0), 2, axis=1)
    larger = next(thing for thing in detector.objects(twice) if thing.label == "tie")
    assert larger.box == pytest.approx([2 * side for side in tie.box], abs=24)


def test_an_image_has_the_same_things_anywhere(detector: ObjectDetector, meeting: Image) -> None:
    images = [meeting, np.ascontiguousarray(meeting[:, ::-1]), np.ascontiguousarray(meeting[60:])]
    first = [detector.objects(image) for image in images]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(detector.objects, images)) == first


@pytest.mark.parametrize("shape", [(1, 1), (8, 600), (15, 15), (40, 3000), (720, 1280)])
def test_nothing_is_on_empty_images(detector: ObjectDetector, shape: tuple[int, int]) -> None:
    assert detector.objects(np.full((*shape, 3), 90, np.uint8)) == []


@pytest.fixture(scope="module")
def classifier() -> SoundClassifier:
    try:
        found = Toolbox(load_profile("local"), WEIGHTS_OF_THINGS).sounds
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    assert found is not None
    return found


def kinds(samples: Samples, classifier: SoundClassifier) -> set[str]:
    clip = Clip(index=0, span=TimeSpan.of(0, len(samples) * 1000 // SAMPLE_HZ))
    return {one.kind for one in find_sounds(samples, classifier, clip, SETTINGS)}


def test_every_class_is_a_kind_or_left_out_once(classifier: SoundClassifier) -> None:
    table = tomllib.loads(KINDS.read_text(encoding="utf-8"))
    placed = [one for part in table.values() for classes in part.values() for one in classes]
    assert sorted(placed) == sorted(classifier.labels)
    assert len(classifier.labels) == 521


@pytest.mark.parametrize("seconds", [0.01, 0.975, 1.0, 3.0, 30.0])
def test_windows_cover_the_samples(classifier: SoundClassifier, seconds: float) -> None:
    scores = classifier.scores(noise(seconds))
    starts = 1 + -(-max(0, round(seconds * SAMPLE_HZ) - classifier.window) // classifier.hop)
    assert scores.shape == (starts, len(classifier.labels))
    assert scores.dtype == np.float32
    assert 0 <= scores.min() <= scores.max() <= 1


def test_the_same_sound_scores_the_same_in_many_threads(classifier: SoundClassifier) -> None:
    tracks = [noise(2.0, seed) for seed in range(6)]
    first = [classifier.scores(track) for track in tracks]
    with ThreadPoolExecutor(4) as pool:
        again = list(pool.map(classifier.scores, tracks))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))


def test_silence_is_no_sound(classifier: SoundClassifier) -> None:
    assert kinds(silence(5.0), classifier) == set()


def test_music_is_heard_and_talk_is_none(classifier: SoundClassifier, shared_media: Shared) -> None:
    assert "music" in kinds(samples_of(shared_media("googlework_short.mp4"), 0, 30), classifier)
    assert kinds(samples_of(shared_media("audio/pyannote_sample.flac")), classifier) == set()


def test_nothing_is_written_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    try:
        _ = Toolbox(load_profile("local"), WEIGHTS_OF_THINGS).sounds
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    assert capfd.readouterr().err == ""


def test_without_weights_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WeightsMissing, match="homer models pull yamnet"):
        _ = Toolbox(load_profile("local"), tmp_path).sounds


def test_a_profile_may_do_without(tmp_path: Path) -> None:
    profile = load_profile("local").model_copy(update={"sounds": "none"})
    assert Toolbox(profile, tmp_path).sounds is None
    assert "yamnet" not in profile.weights
