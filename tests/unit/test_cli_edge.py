"""Every error becomes one line on stderr and an exit code that means something."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import typer
from typer.testing import CliRunner

from cli.edge import ErrorBoundary
from domain.errors import (
    Ambiguous,
    BudgetExceeded,
    DatabaseError,
    HomerError,
    InputError,
    MediaError,
    ModelError,
    NotFound,
    ReplayMiss,
    SetupError,
    WeightsMissing,
)


def run(work: Callable[[], None], *, debug: bool = False) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that does ``work``."""
    app = typer.Typer(cls=ErrorBoundary, pretty_exceptions_enable=False)

    @app.callback()
    def options(context: typer.Context) -> None:
        context.obj = {"debug": debug}

    app.command("work")(work)
    result = CliRunner().invoke(app, ["work"])
    return result.exit_code, result.stdout, result.stderr


def raising(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError, 2),
        (MediaError, 2),
        (NotFound, 2),
        (Ambiguous, 2),
        (SetupError, 3),
        (WeightsMissing, 3),
        (DatabaseError, 3),
        (ModelError, 4),
        (ReplayMiss, 4),
        (BudgetExceeded, 5),
        (HomerError, 1),
    ],
)
def test_each_error_has_its_code_and_one_line(error: type[HomerError], code: int) -> None:
    assert run(raising(error("what to do"))) == (code, "", "homer: what to do\n")


def test_a_fault_of_ours_is_one_line_too_and_says_how_to_see_more() -> None:
    code, out, err = run(raising(ValueError("first\nsecond")))
    assert (code, out) == (1, "")
    assert err == "homer: ValueError: first (homer --debug COMMAND shows where)\n"


def test_a_fault_without_words_is_still_named() -> None:
    assert "KeyError" in run(raising(KeyError()))[2]


@pytest.mark.parametrize("error", [InputError("bad"), ValueError("bad")])
def test_debug_shows_the_way_to_the_error(error: Exception) -> None:
    err = run(raising(error), debug=True)[2]
    assert "Traceback" in err
    assert "in work" in err
    assert err.rstrip().splitlines()[-1].startswith("homer: ")


def test_ctrl_c_says_how_to_go_on() -> None:
    code, _out, err = run(raising(KeyboardInterrupt("the same command goes on")))
    assert (code, err) == (130, "homer: the same command goes on\n")


@pytest.mark.parametrize("code", [0, 4])
def test_a_command_may_choose_its_code(code: int) -> None:
    assert run(raising(typer.Exit(code))) == (code, "", "")


def test_a_wrong_command_line_shows_the_usage() -> None:
    def work() -> None:
        raise typer.BadParameter("give one")

    code, _out, err = run(work)
    assert code == 2
    assert "Usage:" in err
    assert "give one" in err


@pytest.mark.parametrize(
    "error", [NotFound("no video 'a\rb\x07c\x9bd'"), ValueError("a\x07b\x9bc"), OSError(2, "a\x07")]
)
def test_words_from_outside_in_an_error_do_not_steer_a_terminal(error: Exception) -> None:
    _, _, err = run(raising(error))
    assert err.startswith("homer: ")
    assert err.rstrip("\n").isprintable()
