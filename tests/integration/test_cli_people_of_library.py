"""``homer people`` without a video, and the commands that join people of different videos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from store.database import Store
from tests.support.asking import WordToolbox
from tests.support.several_videos import INTERVIEW, TALK, labels, watch_people


def homer(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["people", *arguments])


def data(*arguments: str) -> Any:
    result = homer(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    (line,) = result.stdout.splitlines()
    return json.loads(line)


@pytest.fixture
def two(store: Store, database: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    monkeypatch.setattr("flows.workspace.Toolbox", lambda *_: WordToolbox())
    watch_people(store, TALK, {1: 0.9, 2: 0.9})
    watch_people(store, INTERVIEW, {3: 0.9, 1: 0.9})
    return store


def test_a_session_across_videos_as_it_reads(two: Store) -> None:
    assert "nobody was recognised in it yet, or is known by name" in homer().stderr
    (pair,) = data("alike")
    assert {pair["one"]["video"], pair["other"]["video"]} == {TALK, INTERVIEW}
    listed = homer("alike", "talk", "--across")
    assert listed.stdout.split()[:4] == ["video", "person", "other", "video"]
    assert "no likely pairs" in homer("alike", "talk").stderr
    assert f"homer people merge {TALK} 0 1 --of {INTERVIEW}" in listed.stderr
    joined = homer("merge", "talk", "0", "1", "--of", "interview")
    assert joined.stdout == f"1: Joined person 0 with person 1 of video {INTERVIEW}\n"
    assert homer("rename", "talk", "0", "Ada").stdout == "2: Named person 0 Ada\n"
    head, ada = homer().stdout.splitlines()
    assert head.split() == ["person", "in", "last", "seen", "picture"]
    assert ada.split() == [
        *("Ada", "interview", "(1),", "talk", "(0)", "0:04-0:07", "of", "interview")
    ]
    (person,) = data()
    assert person["label"] == "Ada"
    assert [one["title"] for one in person["characters"]] == ["interview", "talk"]
    assert person["last_seen"]["start_s"] == 4.0
    assert homer("split", "talk", "Ada").stdout == (
        "3: Split Ada (person 0) off the same person in other videos\n"
    )
    assert len(data()) == 2
    assert homer("undo", "talk").stdout.endswith("in other videos  (undone)\n")
    history = homer("history", "interview").stdout.splitlines()
    assert history == [f"1: Joined person 1 with person 0 of video {TALK}", "2: Named person 1 Ada"]


def test_a_name_is_for_tags_that_are_split_off(two: Store) -> None:
    refused = homer("split", "talk", "0", "--name", "Ada")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "name their tags" in refused.stderr


def test_a_long_list_says_how_it_goes_on(two: Store) -> None:
    for video in ("talk", "interview"):
        homer("rename", video, "0", "Ada")
    assert "1 of 2: --offset 1" in homer("list", "--limit", "1").stderr
    assert "1 of 2: --offset 1" in homer("list", "talk", "--limit", "1").stderr


def test_person_is_forgotten_in_every_video_and_can_be_restored(two: Store, tmp_path: Path) -> None:
    homer("merge", "talk", "0", "1", "--of", "interview")
    homer("rename", "talk", "0", "Ada")
    folder = tmp_path / "ada"
    forgotten = homer("forget", "talk", "Ada", "--everywhere", "--yes", "--keep-undo", str(folder))
    assert forgotten.exit_code == 0, forgotten.stderr
    assert forgotten.stdout.count("is forgotten") == 2
    assert "Ada" not in labels(two, TALK) + labels(two, INTERVIEW)
    assert data() == []
    for video in (TALK, INTERVIEW):
        (file,) = folder.glob(f"*-of-{video}.zip")
        assert homer("undo", video, "--from", str(file)).exit_code == 0
    (person,) = data()
    assert (person["label"], len(person["characters"])) == ("Ada", 2)
