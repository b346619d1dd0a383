"""Help of every command, and that a command imports what it works with and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.commands import Evaluations, LazyGroup
from cli.main import Commands, app
from tests.support.commands import homer, loaded

SHOWN = re.compile(r"^ {2}(?:Examples?|Start with):(.*)$", re.MULTILINE)
COMMAND = re.compile(r"(?<![\w/])homer [a-z]+")
"""A command in an example; a pipe or a semicolon may stand before another."""


def commands(group: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """The way to each command, that of groups and of the whole too."""
    yield path
    for name, one in getattr(group, "commands", {}).items():
        yield from commands(one, *path, name)


EVERY = list(commands(homer()))


@cache
def help_of(path: tuple[str, ...], width: int = 80) -> str:
    result = CliRunner().invoke(app, [*path, "--help"], terminal_width=width)
    assert result.exit_code == 0, result.output
    return result.stdout


def examples(shown: str) -> list[str]:
    """The lines below "Example:" up to the next empty one."""
    head = SHOWN.search(shown)
    below = shown[head.end() :].split("\n\n")[0] if head else ""
    return [line for line in below.splitlines() if line.strip()]


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_examples_stand_on_lines_of_their_own(path: tuple[str, ...]) -> None:
    shown = help_of(path)
    assert "\b" not in shown
    for beside in SHOWN.findall(shown):
        assert not beside.strip()
    assert "Example" not in SHOWN.sub("", shown)
    for line in examples(shown):
        assert line.startswith("    ")
        assert COMMAND.search(line) or "homer" in line.split()
        alone = re.split(r"[|;]", line)
        assert all(len(COMMAND.findall(one)) <= 1 for one in alone)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_argument_and_option_is_explained_in_a_sentence(path: tuple[str, ...]) -> None:
    command: Any = loaded(homer())
    for name in path:
        command = loaded(command).commands[name]
    for parameter in command.params:
        assert parameter.help, parameter.name
        assert parameter.help.endswith("."), parameter.help


@pytest.mark.parametrize("path", EVERY[1:], ids=" ".join)
def test_a_list_of_commands_shows_whole_sentences(path: tuple[str, ...]) -> None:
    """No sentence of a list is cut off at the width that the help has on a wide terminal."""
    after = re.split(r"\n(?:Commands|Start):\n", help_of(path[:-1], 100))[1]
    (line,) = re.findall(rf"^  {path[-1]} .*$", after, re.MULTILINE)
    assert not line.endswith("..."), line


def test_every_command_is_listed_under_one_heading() -> None:
    listed = [name for names in Commands.groups.values() for name in names]
    assert sorted(listed) == sorted(Commands.entries)
    shown = CliRunner().invoke(app, ["--help"]).stdout
    places = [shown.index(f"\n{heading}:\n") for heading in Commands.groups]
    assert places == sorted(places)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_an_example_is_of_a_command_that_there_is(path: tuple[str, ...]) -> None:
    for line in examples(help_of(path)):
        for found in COMMAND.findall(line):
            assert (found.split()[1],) in EVERY


@pytest.mark.parametrize("group", [Commands, Evaluations], ids=["homer", "eval"])
def test_a_list_of_commands_has_the_help_of_each_command(group: type[LazyGroup]) -> None:
    as_listed, imported = group().commands, loaded(group()).commands
    for name in group.entries:
        listed, whole = as_listed[name], imported[name]
        assert whole.name == name
        assert [listed.get_short_help_str(width) for width in range(10, 200)] == [
            whole.get_short_help_str(width) for width in range(10, 200)
        ]


def asked(*arguments: str, command: str = "ask") -> str:
    result = CliRunner().invoke(app, [command, *arguments])
    assert result.exit_code == 2
    return result.stderr


def test_a_video_that_stands_beside_the_question_is_asked_back() -> None:
    assert "did you mean --video talk?" in asked("Who opens the talk?", "talk")
    assert "did you mean --video talk?" in asked("Who?", "-o", "Ann", "talk", "-o", "Bob")
    assert "did you mean --video talk?" in asked("the budget", "talk", command="search")


def test_a_command_without_its_argument_shows_its_help() -> None:
    assert CliRunner().invoke(app, ["ask"]).stderr == help_of(("ask",))


def test_a_question_without_quotes_is_asked_back() -> None:
    assert "between quotes" in asked("Who", "opens", "the", "talk?")


PACKAGES = [
    *("alembic", "av", "cv2", "fastapi", "faster_whisper", "insightface", "langchain_core"),
    *("langgraph", "llama_index", "numpy", "onnxruntime", "prefect", "psycopg", "pydantic"),
    *("rapidocr", "rich", "scipy", "sqlalchemy", "streamlit"),
    "cli.serve",
]
"""Heavy packages, and modules of commands that are not run here."""

HELP: list[list[str]] = [
    [],
    ["--help"],
    ["ask", "--help"],
    ["ingest", "--help"],
    ["eval", "run", "--help"],
]
READING = [["videos"], ["show", "talk"], ["check", "talk"], ["dump", "talk"], ["trajectory"]]
PROBE = """
import contextlib, io, json, sys
from cli.main import app
for line in json.loads(sys.argv[1]):
    sys.argv = ["homer", *line]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            app()
        except SystemExit as end:
            code = end.code
    print(json.dumps([code, [name for name in {packages!r} if name in sys.modules]]))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, set[str]]]:
    """Exit code and packages after each command, one after the other in one process.

    No server answers at the database's address, so a command has imported all and done nothing.
    """
    home = tmp_path_factory.mktemp("home")
    nowhere = {"HOMER_HOME": str(home), "HOMER_DATABASE_URL": f"postgresql://nobody@/x?host={home}"}
    lines = json.dumps([*HELP, *READING])
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(packages=PACKAGES), lines],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | nowhere,
        cwd=Path(__file__).parents[2],
    )
    output = [json.loads(line) for line in done.stdout.splitlines()]
    return [(code, set(found)) for code, found in output]


def test_help_imports_nothing_heavy(imported: list[tuple[int, set[str]]]) -> None:
    assert [found for _, found in imported[:2]] == [set(), set()]
    # What reading the arguments of a command takes, then what reading the database takes.
    assert all(found <= {"pydantic"} for _, found in imported[2 : len(HELP)])


def test_what_only_reads_imports_no_model_or_machine(imported: list[tuple[int, set[str]]]) -> None:
    codes, found = zip(*imported[len(HELP) :], strict=True)
    assert set(codes) == {3}
    assert set.union(*found) == {"numpy", "psycopg", "pydantic", "sqlalchemy"}
