"""What a bug report takes along: enough to see what is wrong, and nothing of content."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.errors import DatabaseError, ModelError
from models.profile import load_profile
from perception.source import cache_original, stat_digest
from services.bug_report import ABOUT, write_bug_report
from store.database import Store
from store.home import Home
from store.migrations import HEAD
from telemetry.logs import log_error, log_path, set_up_logging
from telemetry.tracing import bind_ids
from tests.support.asking import PARTY
from tests.support.markup_video import plant
from tests.support.media import make_video

MARK = "evil"
"""Stands in everything that ``plant`` puts into a library."""

TOML = f"""
profile = "{MARK}"
[profiles.{MARK}]
base = "openai"
about = "{MARK} house"
images = "clip:/home/{MARK}/siglip"
faces = "insightface:/home/{MARK}/faces"
[profiles.{MARK}.chat.default]
model = "openai:{MARK}-tuned"
base_url = "http://{MARK}:{MARK}@{MARK}.example/v1"
key = "{MARK.upper()}_KEY"
[profiles.{MARK}.chat.{MARK}]
model = "openai:gpt-5-mini"
"""


def write_logs(home: Home) -> None:
    """Every log has the mark, as an error or a server that quotes content would put it there."""
    log_error(ModelError(f"the model said {MARK}"), f"{MARK}")
    with bind_ids(video=f"{MARK} talk", flow_run=f"{MARK}"):
        log_error(DatabaseError(f"no room for {MARK}"))
    with log_path(home).open("a") as file:
        strange = {"trace": [f"/home/{MARK}/x.py:1 {MARK}", MARK], "error": MARK, MARK: 1}
        at = {"at": "2026-01-01T00:00:00.000+00:00", "level": "info", "event": "clip done"}
        file.write(json.dumps({**at, **strange, "clip": 3, "sqlstate": MARK}) + "\n")
        file.write(f'{at["at"]} info clip done: clip=4 video="{MARK}" x="{MARK} y" {MARK}\n')
        file.write(f"{MARK}\n[1]\n" + "[" * 100_000 + "\n")
    (home.logs / "postgres.log").write_text(f"FATAL: out of memory for '{MARK}'\n" * 3)
    (home.logs / f"ingest-{MARK}.log").write_text(f"homer: {MARK}\nValueError: {MARK}\n")


def packed(path: Path) -> dict[str, Any]:
    """The parts of a bundle, read."""
    with ZipFile(path) as bundle:
        texts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    return {
        name: [json.loads(line) for line in text.splitlines()]
        if name.endswith(".jsonl")
        else (json.loads(text) if name.endswith(".json") else text)
        for name, text in texts.items()
    }


def test_nothing_of_content_is_in_it_and_what_helps_is(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The library and the machine have the mark wherever words can be.
    folder = tmp_path / f"of {MARK} alice"
    folder.mkdir()
    video = make_video(folder / f"{MARK}.mp4", seconds=1.0)
    store.home.config.write_text(TOML)
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    monkeypatch.setenv("HOME", f"/home/{MARK}")
    monkeypatch.setenv("USER", MARK)
    monkeypatch.setenv("HTTPS_PROXY", f"http://{MARK}:{MARK}@proxy")
    monkeypatch.setenv(f"{MARK.upper()}_KEY", MARK)
    set_up_logging(store.home, "debug")
    asked = plant(store, str(video))
    cache_original(store.home, PARTY, stat_digest(video))
    write_logs(store.home)
    out = tmp_path / "report.zip"
    done = CliRunner().invoke(app, ["doctor", "--bundle", str(out)])
    assert done.exit_code in (0, 3), done.output
    assert "Nothing was sent" in done.stderr
    with ZipFile(out) as bundle:
        every = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert list(every) == list(ABOUT)
    for name, text in every.items():
        assert MARK not in text.lower(), name
        assert MARK not in name
        for place in (str(store.home.root), str(tmp_path), sys.prefix, "/home/"):
            assert place not in text, (name, place)
        assert all(line in every["README.txt"] for line in [name])
    found = packed(out)
    assert found["versions.json"]["homer-video"] != "not installed"
    assert found["settings.json"]["profile"] == "the user's own"
    assert found["settings.json"]["settings"]["watch"]["clip_ms"] == 30_000
    chat = found["settings.json"]["chat"]
    assert chat["default"]["model"] == "openai: another"
    assert chat["role 1"]["model"] == "openai:gpt-5-mini"
    assert "HTTPS_PROXY" in found["weights.json"]["variables"]
    assert {"what": "codecs", "ok": True} in found["doctor.json"]
    see_database(found["database.json"])
    (video,) = found["videos.json"]
    assert (video["state"], video["clips"]["failed"]) == ("failed", 1)
    assert video["id"].startswith("x") or len(video["id"]) == 16
    assert {one["codec"] for one in video["file"]["streams"]} >= {"h264"}
    assert sum(video["failures"].values()) >= 1
    see_run(found["trajectories.json"], asked)
    see_logs(found["log.jsonl"], found["other-logs.json"])


def see_database(found: dict[str, Any]) -> None:
    assert (found["revision"], found["head"]) == (HEAD, HEAD)
    sizes = {one["table"]: one for one in found["tables"]}
    assert sizes["videos"]["rows"] == 1
    assert sizes["memories"]["bytes"] > 8_000


def see_run(found: list[dict[str, Any]], asked: str) -> None:
    run = next(one for one in found if one["id"] == asked)
    kinds = [event["kind"] for event in run["events"]]
    assert (kinds[0], kinds[-1]) == ("question", "end")
    call = next(event for event in run["events"] if event["kind"] == "call")
    assert call["purpose"] == "plan"
    assert call["tokens_in"] > 0
    search = next(event for event in run["events"] if event["kind"] == "retrieve")
    assert search["mode"] == "event"
    assert search["evidence_count"] >= 0
    assert all(event["at_ms"] >= 0 for event in run["events"])


def see_logs(own: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    errors = [one["error"] for one in own if one["level"] == "error"]
    assert errors == ["ModelError", "DatabaseError"]
    assert [one["clip"] for one in own if one["event"] == "clip done"] == [3, 4]
    assert any(one["event"] == "model call done" for one in own)
    by_name = {one["log"]: one for one in others}
    assert by_name["postgres.log"]["phrases"] == {"out of memory": 3, "FATAL": 3}
    assert by_name["of a job"]["errors"] == {"ValueError": 1}


def test_a_library_that_cannot_be_opened_is_reported_by_its_error(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", f"postgresql://{MARK}:{MARK}@127.0.0.1:1/{MARK}")
    out = tmp_path / "report.zip"
    write_bug_report(home, load_profile("local"), [], out)
    found = packed(out)
    assert found["database.json"] == {"error": "DatabaseError"}
    assert "videos.json" not in found
    assert MARK not in str(found)


def test_a_file_that_is_there_is_not_written_over(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", "postgresql://x@127.0.0.1:1/x")
    monkeypatch.setattr("library.upkeep.check_setup", lambda *_: [])
    out = tmp_path / "report.zip"
    out.write_text("a letter")
    done = CliRunner().invoke(app, ["doctor", "--bundle", str(out)])
    assert done.exit_code == 2
    assert "is there already" in done.stderr
    assert out.read_text() == "a letter"
