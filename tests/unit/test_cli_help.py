"""Help of every command: examples stand on lines of their own, and can be typed as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.evals import Evaluations
from cli.lazy_group import LazyGroup
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


def command_at(path: tuple[str, ...]) -> Any:
    command: Any = loaded(homer())
    for name in path:
        command = loaded(command).commands[name]
    return command


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_argument_and_option_is_explained_in_a_sentence(path: tuple[str, ...]) -> None:
    for parameter in command_at(path).params:
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


def test_a_question_without_quotes_is_asked_back() -> None:
    assert "between quotes" in asked("Who", "opens", "the", "talk?")
