"""``homer eval run`` and what shows its results, as a user types it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from evals.dataset import Dataset
from store.home import Home
from tests.support.asking import WordToolbox
from tests.support.caption_evaluations import houses

Homer = Callable[..., Result]


@pytest.fixture
def homer(home: Home, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homer:
    """Runs ``homer eval`` with a small data set in place of every other, and no weights."""
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    monkeypatch.setattr("flows.workspace.Toolbox", lambda *_: WordToolbox())

    def read(name: str, folder: Path) -> Dataset:
        return houses(tmp_path, int(folder.name))

    monkeypatch.setattr("evals.datasets.read", read)
    return lambda *arguments: CliRunner().invoke(app, ["eval", *arguments])


def ran(homer: Homer, *options: str, houses: int = 2) -> dict[str, Any]:
    done = homer("run", "houses", str(houses), "--direct", "--json", *options)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_is_made_shown_listed_and_written(homer: Homer, tmp_path: Path) -> None:
    found = ran(homer, "--protocol", "none")
    assert (found["run"]["name"], found["run"]["state"]) == ("houses-local-none", "done")
    assert (found["scores"][0]["right"]["value"], found["scores"][0]["unjudged"]) == (1.0, 2)

    shown = homer("report", "houses-local-none")
    assert shown.exit_code == 0
    for part in ("2 answers are unjudged: no strong language model", "100.0 (100-100)", "where"):
        assert part in shown.stdout

    (line,) = json.loads(homer("runs", "--json").stdout)
    assert (line["judged"], line["planned"], line["state"]) == (6, 6, "done")
    assert "houses-local-none" in homer("runs").stdout

    table, page = tmp_path / "rows.csv", tmp_path / "page.html"
    whole = homer("report", "houses-local-none", "--csv", str(table), "--html", str(page), "--json")
    assert len(json.loads(whole.stdout)["questions"]) == 6
    assert len(list(csv.DictReader(table.open(newline="")))) == 6
    assert "Where does Ann carry the lantern?" in page.read_text()


def test_what_is_not_there_is_named(homer: Homer) -> None:
    assert "'homer eval runs' lists them" in homer("report", "nothing").stderr
    assert homer("report", "nothing").exit_code == 2
    assert "homer eval run DATASET" in homer("runs").stderr


@pytest.mark.full
def test_a_video_that_cannot_be_read_is_said_and_the_code_is_4(
    homer: Homer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = houses(tmp_path)
    (tmp_path / "house 1.jsonl").write_text("nothing of use")
    monkeypatch.setattr("evals.datasets.read", lambda *_: made)
    done = homer("run", "houses", "2", "--direct", "--protocol", "none")
    assert done.exit_code == 4
    assert "homer: house 1: " in done.stderr
