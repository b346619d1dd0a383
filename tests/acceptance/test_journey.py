"""The journey of a user: a real clip, the real command, the embedded database, cited answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from models.toolbox import Toolbox
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.media import BAD, GOOD, beginning

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "demo" / "googlework_short.mp4"
SECONDS, CLIPS = 11.5, 3
PROFILE = """
[settings.watch]
clip_ms = 4000
keyframes = 1
"""
PARTS = """
[profiles.local.settings.watch]
clip_ms = 18000
sample_fps = 1.0
keyframes = 1
"""
"""Makes two clips of the demo clip, of which one is left after a break."""
HOMER = [sys.executable, "-m", "cli"]
WEIGHTS = str(Home.default().weights)

pytestmark = [pytest.mark.usefixtures("toolbox"), pytest.mark.timeout(900)]


def environment(home: Home) -> dict[str, str]:
    """What a command sees: nothing of the outer HOMER settings but the weights."""
    outer = {name: value for name, value in os.environ.items() if not name.startswith("HOMER_")}
    return {**outer, "HOMER_HOME": str(home.root), "HOMER_WEIGHTS": WEIGHTS}


def homer(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs ``homer`` in its own process, as a user would."""
    command = [*HOMER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment(home))


def started(home: Home, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*HOMER, *arguments], stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment(home)
    )


def must(home: Home, *arguments: str) -> str:
    done = homer(home, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_here(home: Home, *arguments: str) -> Result:
    """Runs a command in this process, which has imported all it needs."""
    outer: dict[str, str | None] = dict.fromkeys(one for one in os.environ if "HOMER_" in one)
    inner = {"HOMER_HOME": str(home.root), "HOMER_WEIGHTS": WEIGHTS}
    return CliRunner().invoke(app, list(arguments), env={**outer, **inner})


def output(home: Home, *arguments: str) -> str:
    done = run_here(home, *arguments)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def interrupted(home: Home, how: signal.Signals, *arguments: str) -> tuple[int, str]:
    """Watches, and is sent ``how`` after the first clip; its exit code and last words."""
    with started(home, "ingest", *arguments) as running:
        assert running.stderr is not None
        assert any(": 1/" in line for line in running.stderr)
        running.send_signal(how)
        last = running.stderr.read()
    return running.returncode, last


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, int, str]]:
    """Watches the demo clip until Ctrl-C; gives the home, the exit code and the last words."""
    home = Home(tmp_path_factory.mktemp("journey")).make()
    home.config.write_text(PARTS)
    try:
        yield home, *interrupted(home, signal.SIGINT, str(DEMO), "--direct")
    finally:
        EmbeddedPostgres(home).stop(fast=False)


@pytest.fixture(scope="module")
def watched(broken_off: tuple[Home, int, str], toolbox: Toolbox) -> Callable[..., tuple[Home, str]]:
    """Goes on with it to the end; gives the home and its dump."""
    home = broken_off[0]
    done = run_here(home, "ingest", str(DEMO), "--direct")
    assert done.exit_code == 0, done.stderr
    assert "going on after" in done.stderr
    return lambda: (home, output(home, "dump", "googlework_short"))


def test_ctrl_c_says_how_to_go_on(broken_off: tuple[Home, int, str]) -> None:
    _home, code, last = broken_off
    assert code == 130
    assert "nothing is lost" in last
    assert "Traceback" not in last


def test_watched_in_two_runs_it_answers_citing(watched: Callable[[], tuple[Home, str]]) -> None:
    home, _dump = watched()
    options = [word for city in ("London", "Paris", "Berlin", "Madrid") for word in ("-o", city)]
    question = "Which city's office is called a cultural exception?"
    shown = output(home, "ask", question, "--video", "googlework_short", *options)
    assert shown.splitlines()[0].startswith("B. Paris")
    answer = json.loads(output(home, "ask", question, "-v", "google", *options, "--json"))
    assert answer["option"] == "B"
    assert answer["citations"]
    for citation in answer["citations"]:
        assert 0 <= citation["start_s"] < citation["end_s"] <= 36
        assert citation["text"]


def test_what_is_written_on_screen_is_known_too(watched: Callable[[], tuple[Home, str]]) -> None:
    home, _dump = watched()
    found = json.loads(output(home, "search", "Omar software engineer", "--json"))
    assert "Software Engineer" in " ".join(one["text"] for one in found["evidence"])


def test_watching_it_again_does_nothing(watched: Callable[[], tuple[Home, str]]) -> None:
    home, before = watched()
    assert "already watched (2 clips" in output(home, "ingest", str(DEMO))
    assert watched()[1] == before


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What to watch where a break is what counts: three short clips, a keyframe in each."""
    folder = tmp_path_factory.mktemp("little")
    profile = folder / "little.toml"
    profile.write_text(PROFILE)
    return [str(beginning(DEMO, folder / "beginning.mp4", SECONDS)), "--profile", str(profile)]


@pytest.fixture(scope="module")
def undisturbed(watched: Callable[[], tuple[Home, str]], little: list[str]) -> str:
    """The dump of the little clip where nothing breaks."""
    home, _dump = watched()
    must(home, "ingest", *little, "--direct")
    return output(home, "dump", "beginning")


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Home]:
    """A second data directory; whatever was started in it is ended."""
    home = Home(tmp_path / "home").make()
    try:
        yield home
    finally:
        output(home, "down")


@pytest.mark.full
@pytest.mark.parametrize("way", [["--direct"], []], ids=["plain", "prefect"])
def test_killed_in_the_middle_it_goes_on_and_ends_as_if_nothing_had_been(
    undisturbed: str, little: list[str], other: Home, way: list[str]
) -> None:
    interrupted(other, signal.SIGKILL, *little, *way)
    (entry,) = json.loads(output(other, "videos", "--json"))
    assert (entry["state"], entry["done"]) == ("paused", 1)
    again = homer(other, "ingest", *little, *way, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)[0]["fresh"] == CLIPS - 1
    assert f"going on after 1 of {CLIPS} clips" in again.stderr
    assert output(other, "dump", "beginning") == undisturbed


@pytest.mark.full
def test_a_dying_database_is_said(undisturbed: str, little: list[str], other: Home) -> None:
    with started(other, "ingest", *little, "--direct") as running:
        assert running.stderr is not None
        assert any(f": 1/{CLIPS}" in line for line in running.stderr)
        EmbeddedPostgres(other).stop(fast=False)
        last = running.stderr.read()
    assert running.returncode not in (0, 2)
    assert "database" in last.lower()
    assert "Traceback" not in last
    must(other, "ingest", *little, "--direct")
    assert output(other, "dump", "beginning") == undisturbed


@pytest.mark.full
def test_ctrl_c_ends_a_flow_and_loses_nothing(little: list[str], other: Home) -> None:
    code, last = interrupted(other, signal.SIGINT, *little)
    assert code == 130
    assert "nothing is lost" in last
    assert "Traceback" not in last
    (entry,) = json.loads(output(other, "videos", "--json"))
    assert entry["done"] >= 1


def test_bad_input_is_one_line_each_and_leaves_nothing(
    watched: Callable[[], tuple[Home, str]], tmp_path: Path
) -> None:
    home, _dump = watched()
    before = output(home, "videos", "--json")
    paths = [
        BAD[kind](tmp_path / kind) for kind in BAD if _folder(tmp_path / kind) and kind != MISSING
    ]
    done = run_here(home, "ingest", "--direct", *map(str, paths))
    assert (done.exit_code, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        assert line.startswith("homer: ")
        assert path.name in line
    assert output(home, "videos", "--json") == before


MISSING = "missing"


def _folder(path: Path) -> bool:
    path.mkdir()
    return True


def test_a_missing_path_is_said_before_anything_is_done(tmp_path: Path) -> None:
    done = run_here(Home(tmp_path / "home"), "ingest", str(DEMO), "/no/such/film.mp4")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "homer: /no/such/film.mp4: no such file or folder\n"
    assert not (tmp_path / "home").exists()


@pytest.mark.full
def test_every_kind_of_media_in_a_folder_is_watched(
    watched: Callable[[], tuple[Home, str]], little: list[str], tmp_path: Path
) -> None:
    home, _dump = watched()
    before = len(json.loads(output(home, "videos", "--json")))
    for make in GOOD.values():
        make(tmp_path)
    quick = ["--profile", little[-1]]
    outcomes = json.loads(must(home, "ingest", str(tmp_path), *quick, "--direct", "--json"))
    assert len(outcomes) == len(GOOD)
    assert [one for one in outcomes if one.get("error") or one["failed"]] == []
    assert all(one["fresh"] == one["clips"] == 1 for one in outcomes)
    must(home, "delete", outcomes[0]["video"], "--yes")
    assert len(json.loads(output(home, "videos", "--json"))) == before + len(GOOD) - 1


@pytest.mark.full
def test_up_serves_and_down_stops(tmp_path: Path) -> None:
    import urllib.request

    home = Home(tmp_path / "home").make()
    try:
        given = json.loads(must(home, "up", "--port", "0", "--json"))
        paths = {"prefect": "/api/health", "app": "/_stcore/health", "schedules": "/health"}
        for name, path in paths.items():
            with urllib.request.urlopen(given[name] + path) as reply:  # noqa: S310
                assert reply.status == 200
        assert json.loads(must(home, "up", "--port", "0", "--json")) == given
        _runs_a_schedule(home)
    finally:
        stopped = json.loads(must(home, "down", "--json"))
    assert stopped == dict.fromkeys(("app", "schedules", "prefect", "database"), "stopped")
    deadline = time.monotonic() + 20
    while _processes_of(home) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _processes_of(home) == []


def _runs_a_schedule(home: Home) -> None:
    """What a person asks for is carried out in a process of its own, which says who it is."""
    must(home, "schedule", "pause", "check")
    run = must(home, "schedule", "run", "check").strip()
    deadline = time.monotonic() + 120
    shown: dict[str, Any] = {}
    while (shown.get("last") or {}).get("state") not in ("Completed", "Failed"):
        assert time.monotonic() < deadline, shown
        time.sleep(2)
        shown = json.loads(must(home, "schedule", "show", "check", "--json"))
    last = shown["last"]
    assert (last["id"], last["state"]) == (run, "Completed")
    assert last["told"] == "0 videos checked: consistent"
    assert not shown["on"]


def _processes_of(home: Home) -> list[str]:
    """Processes that still work for a data directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ", "status"]):
        words = " ".join(process.info["cmdline"] or [])
        if str(home.root) in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(words)
    return found
