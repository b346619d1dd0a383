"""The commands over a real database and real local models: what a user types and sees."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from typer.testing import Result

from domain.asking import PICTURES_NOT_SEARCHED
from domain.settings import AskSettings
from models.toolbox import Toolbox
from store.home import Home
from strategies.registry import find_strategy
from tests.support.commands import data, run

LECTURE = """1
00:00:02,000 --> 00:00:08,000
ANNA: The harbour of Lisbon was rebuilt after the earthquake of 1755.

2
00:00:09,000 --> 00:00:15,000
ANNA: Ships then brought coffee and sugar from Brazil.

3
00:00:40,000 --> 00:00:48,000
BRUNO: The lighthouse was painted green because the sailors asked for it.

4
00:01:10,000 --> 00:01:18,000
ANNA: In winter the fish market opens at six in the morning.
"""

Homer = Callable[..., Result]
LECTURE_ID = "1286d37fdbd11c5f"


@pytest.fixture
def homer(home: Home, database: str, monkeypatch: pytest.MonkeyPatch) -> Homer:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    return run


@pytest.fixture(scope="module")
def library(make_database: Callable[[], str], toolbox: Toolbox) -> str:
    """The url of a database that has the lecture and nothing else."""
    url = make_database()
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setenv("HOMER_HOME", folder)
        patch.setenv("HOMER_WEIGHTS", str(toolbox.weights))
        patch.setenv("HOMER_DATABASE_URL", url)
        path = Path(folder) / "lecture.srt"
        path.write_text(LECTURE)
        done = run("import", "lecture", "--captions", str(path), "--json")
        counts = {"clips": 3, "fresh": 3, "failed": 0}
        assert data(done) == [{"video": LECTURE_ID, "title": "lecture", **counts}]
    return url


@pytest.fixture
def lecture(homer: Homer, library: str, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lecture's id; commands find it, and share models that are loaded already."""
    monkeypatch.setenv("HOMER_DATABASE_URL", library)
    monkeypatch.setattr("flows.workspace.Toolbox", lambda _profile, _weights: toolbox)
    return LECTURE_ID


def test_an_empty_library_says_how_to_begin(homer: Homer) -> None:
    shown = homer("videos")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "homer ingest" in shown.stderr
    assert data(homer("videos", "--json")) == []
    for listed in ("alert", "alert hits", "people", "skills", "share", "trajectory", "eval runs"):
        assert homer(*listed.split()).stderr, listed
    asked = homer("ask", "Who is it?")
    assert asked.exit_code == 2
    assert "homer ingest" in asked.stderr


def test_many_videos_come_from_one_file_of_captions(
    homer: Homer, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("flows.workspace.Toolbox", lambda _profile, _weights: toolbox)
    rows = [{"video": v, "start": 1, "end": 2, "text": f"A {v} runs."} for v in ("dog", "cat")]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = data(homer("import", "--captions", str(path), "--json"))
    assert [(one["title"], one["clips"]) for one in found] == [("dog", 1), ("cat", 1)]
    assert {one["title"] for one in data(homer("videos", "--json"))} == {"dog", "cat"}
    again = homer("import", "--captions", str(path))
    assert "cat: already imported" in again.stdout
    assert "videos: 2/2" in again.stderr
    path.write_text('{"start": 1, "end": 2, "text": "x"}')
    bad = homer("import", "--captions", str(path))
    assert bad.exit_code == 2
    assert "line 1: it names no video" in bad.stderr
    assert homer("import", "--json").exit_code == 2


def test_ask_prints_answer_confidence_citations_and_trajectory(homer: Homer, lecture: str) -> None:
    asked = homer("ask", "What colour was the lighthouse painted?", "--video", "lecture")
    assert asked.exit_code == 0, asked.stderr
    lines = asked.stdout.splitlines()
    assert "green" in lines[0]
    assert re.match(r"confidence (low|medium|high) \(0\.\d\d\); supported", lines[1])
    assert re.match(r"  0:4\d-0:4\d  .*green.*\(lecture\) \[m\d+\]", lines[2])
    assert re.match(r"trajectory [0-9a-f]+ \(\d+ rounds?", lines[-1])
    assert asked.stderr == ""
    told = homer("ask", "What colour was the lighthouse painted?", "-v", "lecture", "--verbose")
    assert re.search(r"^round 1: t1", told.stderr, re.MULTILINE)


def test_a_title_that_is_spelled_wrong_is_suggested(homer: Homer, lecture: str) -> None:
    for near in ("lectur3", "ecture", "LECTURES"):
        asked = homer("ask", "When does the market open?", "--video", near)
        assert asked.exit_code == 2
        assert f"no video goes by '{near}': did you mean 'lecture'?" in asked.stderr
    assert "`homer videos` lists them" in homer("ask", "When?", "--video", "zzzz").stderr


def test_search_prints_times(homer: Homer, lecture: str) -> None:
    shown = homer("search", "painted lighthouse", "-v", "lecture")
    assert shown.exit_code == 0
    assert re.search(r"\d\.\d\d  0:40-0:48  lecture  m\d+ ", shown.stdout)


def test_search_prints_only_what_is_close(homer: Homer, lecture: str) -> None:
    words = "quarterly dividend of the shareholders"
    shown = homer("search", words, "-v", "lecture")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "nothing close was found" in shown.stderr
    assert PICTURES_NOT_SEARCHED in shown.stderr
    assert data(homer("search", words, "-v", "lecture", "--json"))["evidence"]


def batch_file(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_batch_without_out_goes_to_stdout(homer: Homer, lecture: str, tmp_path: Path) -> None:
    line = {"id": 7, "video": lecture, "question": "When does it open?", "options": ["at six"]}
    line |= {"as_of_s": 95.0}
    answer = data(homer("batch", str(batch_file(tmp_path / "q.jsonl", line))))
    assert (answer["id"], answer["option"]) == (7, "A")


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["ask"], "Usage"),
        (["ask", ""], "the question is empty"),
        (["batch", "missing.jsonl"], "missing.jsonl"),
        (["ask", "Q?", "--video", "nothing"], "no video goes by 'nothing'"),
        (["ask", "Q?", "--as-of", "soon"], "as_of: 'soon' is not a time"),
        (["ask", "Q?", "--option", " "], "an option is empty"),
        (["ask", "Q?", "--profile", "gpt9"], "there is no profile 'gpt9'"),
        (["search", "  "], "the query is empty"),
        (["search", "x", "--mode", "neighbor"], "homer: "),
        (["search", "--like", "k1"], "use the mode keyframe"),
        (["search", "x", "-m", "keyframe", "--like", "k1"], "leave out query and time"),
        (["show", "nothing"], "no video goes by 'nothing'"),
        (["trajectory", "ffff"], "no trajectory goes by 'ffff'"),
        (["import", "x", "--captions", "missing.srt"], "missing.srt"),
        (["models", "pull", "no-such-model"], "there is no model 'no-such-model'"),
        (["frobnicate"], "Usage"),
    ],
)
def test_bad_input_is_one_clear_line_and_code_2(
    homer: Homer, arguments: list[str], output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = homer(*arguments)
    assert done.exit_code == 2
    assert output in done.stderr
    assert "Traceback" not in done.stderr
    if output != "Usage":
        assert [line for line in done.stderr.splitlines() if line.startswith("homer: ")] or (
            "Usage" in done.stderr
        )


def test_a_sound_event_graph_checks_out(homer: Homer, lecture: str) -> None:
    shown = homer("check", "lecture")
    assert shown.exit_code == 0, shown.stdout
    assert re.fullmatch(
        r"lecture: consistent \(\d+ segments, \d+ edges over \d+ clips, \d+ images\)\n",
        shown.stdout,
    )
    checked = data(homer("check", "lecture", "--as-of", "1:00", "--json"))
    assert (checked["clips"], checked["findings"]) == (2, [])


def test_a_damaged_event_graph_has_the_code_1(homer: Homer, lecture: str, library: str) -> None:
    damage = (
        "UPDATE segment_revisions SET clips = array_replace(clips, {}, {}) WHERE to_clip IS NULL"
    )
    _run_sql(library, damage.format(1, 77))
    try:
        shown = homer("check", "lecture")
    finally:
        _run_sql(library, damage.format(77, 1))
    assert shown.exit_code == 1
    for part in ("orphan: ", "not in memory: 77", "uncovered: clip 1 is in no segment"):
        assert part in shown.stdout
    assert homer("check", "lecture").exit_code == 0


def _run_sql(url: str, command: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(command))
    engine.dispose()


def test_delete_asks_and_leaves_nothing(homer: Homer, toolbox: Toolbox, tmp_path: Path) -> None:
    path = tmp_path / "lecture.srt"
    path.write_text(LECTURE)
    assert homer("import", "lecture", "--captions", str(path)).exit_code == 0
    homer("ask", "Who speaks?", "-v", "lecture")
    refused = homer("delete", "lecture", stdin="n\n")
    assert refused.exit_code != 0
    assert data(homer("videos", "--json"))
    assert "There is no file of it." in refused.stderr
    assert homer("delete", "lecture", "--yes").stdout == "lecture is deleted\n"
    assert data(homer("videos", "--json")) == []
    assert data(homer("trajectory", "--json")) == []


def test_models_say_what_is_there_and_under_which_licence(homer: Homer, toolbox: Toolbox) -> None:
    rows = data(homer("models", "--json"))
    assert {row["state"] for row in rows[:-1]} == {"present"}
    assert [rows[-1][key] for key in ("need", "state", "licence")] == [
        *("images", "recommended", "Apache-2.0")
    ]
    shown = homer("models")
    assert f'images = "{rows[-1]["model"]}@REVISION"' in shown.stderr
    assert "non-commercial research only" in shown.stdout
    assert homer("models", "pull").stdout.endswith("0 fetched\n")


def test_absent_models_named(homer: Homer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_WEIGHTS", str(tmp_path / "none"))
    shown = homer("models")
    assert "missing" in shown.stdout
    assert "homer models pull" in shown.stderr
    (tmp_path / "x.srt").write_text(LECTURE)
    done = homer("import", "x", "--captions", str(tmp_path / "x.srt"))
    assert done.exit_code == 3
    assert "homer models pull" in done.stderr


def test_doctor_finds_nothing_missing_for_the_local_profile(homer: Homer, toolbox: Toolbox) -> None:
    done = homer("doctor", "--json")
    assert done.exit_code == 0
    checks = {check["what"]: check for check in json.loads(done.stdout)}
    assert {"database", "profile", "codecs", "model minilm", "model whisper-base"} <= set(checks)
    assert all(check["ok"] for check in checks.values())


def test_the_doctor_says_how_to_fix_what_is_missing(
    homer: Homer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_WEIGHTS", str(tmp_path / "none"))
    monkeypatch.setenv("HOMER_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    done = homer("doctor", "--profile", "gemini")
    assert done.exit_code == 3
    for part in ("fix model minilm: homer models pull minilm", "fix database: ", "GOOGLE_API_KEY"):
        assert part in done.stdout


def test_a_database_of_ones_own_is_migrated_by_command_only(
    homer: Homer, home: Home, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", postgres.ensure_database("bare_for_cli"))
    refused = homer("videos")
    assert refused.exit_code == 3
    assert "homer db upgrade" in refused.stderr
    assert "now at revision" in homer("db", "upgrade").stdout
    assert "already at revision" in homer("db", "upgrade").stdout
    assert homer("videos").exit_code == 0


def test_password_of_database_is_never_shown(homer: Homer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/homer")
    for command in (["videos"], ["doctor"], ["--debug", "videos"]):
        done = homer(*command)
        assert done.exit_code == 3
        assert "s3cret" not in done.stdout + done.stderr


def test_the_version_is_reported(homer: Homer) -> None:
    assert re.fullmatch(r"homer \d+\.\d+\.\d+\n", homer("--version").stdout)


@pytest.mark.full
def test_strategies_are_listed_and_compared_on_one_question(homer: Homer, lecture: str) -> None:
    listed = data(homer("strategies", "--json"))
    names = [one["name"] for one in listed]
    assert AskSettings().strategy in names
    # Build the lecture's memory of those strategies that keep one.
    for name in names:
        if find_strategy(name).builder is not None:
            done = homer("build", "lecture", "--memory", name, "--direct")
            assert done.exit_code == 0, done.stderr
    shown = homer("strategies").stdout
    assert all(f"{one['title']}" in shown for one in listed)
    question = "What was painted green?"
    found = data(homer("compare", question, "--json"))
    assert [row["strategy"] for row in found["rows"]] == names
    assert all(row["answer"] and row["rounds"] and row["trajectory"] for row in found["rows"])
    compared = homer(
        "compare", question, "-o", "the lighthouse", "-o", "the market", "-s", names[0]
    )
    assert compared.exit_code == 0, compared.stderr
    assert "A: the lighthouse" in compared.stdout
    assert "the answers agree" in compared.stdout
    unknown = homer("compare", question, "--strategy", "oracle")
    assert unknown.exit_code == 2
    assert f"use one of {', '.join(names)}" in unknown.stderr


def test_tools_are_listed_and_used_by_their_names(homer: Homer, lecture: str) -> None:
    listed = data(homer("tools", "--json"))
    names = {(one["strategy"], one["name"]) for one in listed}
    assert {("homer", "event"), ("plain-rag", "nearest")} <= names
    assert all(one["arguments"]["additionalProperties"] is False for one in listed)
    found = data(
        homer("tool", "nearest", "green paint", "-v", "lecture", "-a", "lines=2", "--json")
    )
    assert (found["mode"], len(found["evidence"])) == ("nearest", 2)
    assert "painted green" in homer("tool", "nearest", "what was painted green").stdout
    assert homer("tool", "video", "the market").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("telescope", "stars"), "there is no tool 'telescope': use one of "),
        (("nearest", "stars", "-a", "lines"), "write it as KEY=VALUE"),
        (("nearest", "stars", "-a", "lines=1", "-a", "lines=2"), "argument lines is given twice"),
        (("nearest", "stars", "-a", "lines=many"), "nearest: lines: Input should be a valid int"),
        (("nearest", "stars", "-a", "lines=100000"), "nearest: lines: Input should be less than"),
        (("nearest", "stars", "-a", "rows=1"), "nearest: rows: Extra inputs are not permitted"),
        (("nearest",), "nearest: query: String should have at least 1 character"),
        (("nearest", "stars", "-s", "homer"), "there is no tool 'nearest': use one of event"),
    ],
)
def test_a_tool_that_cannot_be_used_so_says_why(
    homer: Homer, lecture: str, arguments: tuple[str, ...], message: str
) -> None:
    used = homer("tool", *arguments)
    assert used.exit_code == 2
    assert message in used.stderr
