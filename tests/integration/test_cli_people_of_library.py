"""``homer people`` without a video, and the commands that join people of different videos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from store.database import Store
from tests.support.several_videos import INTERVIEW, LECTURE, TALK, labels, watch_people


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
    watch_people(store, TALK, {1: 0.9, 2: 0.9})
    watch_people(store, INTERVIEW, {3: 0.9, 1: 0.9})
    return store


def test_a_session_across_videos_as_it_reads(two: Store) -> None:
    assert "nobody is known by name yet, or joined across videos" in homer().stderr
    (pair,) = data("alike")
    assert {pair["one"]["video"], pair["other"]["video"]} == {TALK, INTERVIEW}
    listed = homer("alike", "talk", "--across")
    assert listed.stdout.split()[:4] == ["video", "person", "other", "video"]
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
    assert person["last"]["span"] == {"start_ms": 4000, "end_ms": 7000}
    assert homer("split", "talk", "Ada").stdout == (
        "3: Split Ada (person 0) off the same person in other videos\n"
    )
    assert len(data()) == 2
    assert homer("undo", "talk").stdout.startswith("undone: 3: Split")
    history = homer("history", "interview").stdout.splitlines()
    assert history == [
        f"1: Joined person 1 with person 0 of video {TALK}",
        "2: Named person 1 Ada",
    ]


def test_a_pair_is_rejected_and_sure_pairs_are_joined_at_once(two: Store) -> None:
    watch_people(two, LECTURE, {1: 0.9})
    homer("apart", "talk", "0", "0", "--of", "lecture")
    joined = homer("alike", "--join-sure")
    assert joined.stdout.count("look alike") == 1
    assert "1 pair joined" in joined.stderr
    (person,) = data()
    assert {one["title"] for one in person["characters"]} in (
        {"talk", "interview"},
        {"lecture", "interview"},
    )
    assert data("alike", "--join-sure") == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["merge", "talk", "0", "1", "--of", "talk"], "are both of talk"),
        (["merge", "talk", "0", "9", "--of", "interview"], "nobody goes by '9' in interview"),
        (["split", "talk", "0"], "joined with nobody in another video"),
        (["split", "talk", "0", "--name", "Ada"], "--name is for faces or voices"),
        (["apart", "talk", "0", "1", "--of", "nowhere"], "no video goes by 'nowhere'"),
    ],
)
def test_errors_say_what_to_do(two: Store, arguments: list[str], says: str) -> None:
    refused = homer(*arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert says in refused.stderr


def test_a_person_is_forgotten_in_every_video_and_can_be_restored(
    two: Store, tmp_path: Path
) -> None:
    homer("merge", "talk", "0", "1", "--of", "interview")
    homer("rename", "talk", "0", "Ada")
    folder = tmp_path / "ada"
    forgotten = homer("forget", "talk", "Ada", "--everywhere", "--yes", "--keep-undo", str(folder))
    assert forgotten.exit_code == 0, forgotten.stderr
    assert forgotten.stdout.count("is forgotten") == 2
    assert "Ada" not in labels(two, TALK) + labels(two, INTERVIEW)
    assert data() == []
    for video in (TALK, INTERVIEW):
        (file,) = folder.glob(f"{video}-*.zip")
        assert homer("undo", video, "--from", str(file)).exit_code == 0
    (person,) = data()
    assert (person["label"], len(person["characters"])) == ("Ada", 2)
