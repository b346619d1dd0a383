"""InsightFace packs by name and by folder: loaded, or refused with what to do."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from domain.errors import SetupError, WeightsMissing
from domain.settings import WatchSettings
from models.insightface_pack import PACKS, InsightFaceEngine, NamedPackEngine
from models.ports import Image
from models.profile import load_profile
from models.toolbox import Toolbox
from perception.decode import read_clips
from perception.faces import box_iou
from perception.source import probe
from tests.conftest import WEIGHTS


@pytest.fixture(scope="module")
def pack(toolbox: Toolbox) -> Path:
    """A pack: the folder of the packaged weights."""
    return toolbox.weights / "insightface"


@pytest.fixture(scope="module")
def picture(shared_media: Callable[[str], Path]) -> Image:
    path = shared_media("msdwild_00001.mp4")
    return next(read_clips(path, probe(path), WatchSettings())).frames[0].image


@pytest.mark.full
def test_pack_in_a_folder_finds_the_faces_that_its_models_find(pack: Path, picture: Image) -> None:
    named = NamedPackEngine(str(pack), Path("/nowhere"), min_score=0.5)
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
