"""What an earlier release wrote is opened by this version: nothing of it is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphs.replay import replay
from people.forget import restore_forgotten
from store.backup import restore_library
from store.database import Store
from store.export import import_exported_video
from tests.support.library import FULL, Quiet, all_dumps
from tests.support.release_files import ABOUT, EXPORT, FORGOTTEN, LIBRARY, RELEASES


@pytest.fixture(params=sorted(RELEASES.iterdir()), ids=lambda folder: folder.name)
def release(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def about(release: Path) -> dict[str, Any]:
    return dict(json.loads((release / ABOUT).read_text()))


@pytest.fixture
def restored(release: Path, empty: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("HOMER_DATABASE_URL", empty.url)
    restore_library(empty.home, release / LIBRARY, Quiet(), rights=True)
    return empty


def test_a_library_is_what_it_was(release: Path, restored: Store) -> None:
    assert all_dumps(restored) == about(release)["backed up"]


def test_an_answer_is_replayed_from_its_record(release: Path, restored: Store) -> None:
    assert replay(restored, about(release)["trajectory"]).whole


def test_an_export_is_imported(release: Path, empty: Store) -> None:
    import_exported_video(empty, release / EXPORT, Quiet())
    assert all_dumps(empty) == {FULL: about(release)["exported"]}


def test_a_forgotten_person_comes_back_from_the_file(release: Path, restored: Store) -> None:
    restore_forgotten(restored, FULL, release / FORGOTTEN)
    assert all_dumps(restored) == about(release)["brought back"] != about(release)["backed up"]
