"""Titles, names and words from outside neither steer a terminal nor show other words there."""

from __future__ import annotations

import ast
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.commands import ErrorBoundary
from cli.console import confirm, note, say, say_json, say_table
from domain.asking import Question
from domain.errors import HomerError
from domain.moments import Moment
from domain.time import TimeSpan
from homer_video.library import FoundMoments, VideoAnswer
from library.answering import answer_of
from library.answers import reply_tail
from library.trajectories import trajectory
from store.database import Store
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.regular_expressions import sources
from tests.support.runs import ask

BIDI = "\u061c\u200e\u200f" + "".join(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)])) + "\u2028\u2029"
EVIL = f"a{BIDI}{CONTROLS}\x1b[2J\ud800b"
PRINTS = {
    "cli/main.py": "the version",
    "cli/answers.py": "through Rich, and cleaned",
    "cli/console.py": "the one place; progress is through Rich, and cleaned",
}
"""Files of the command line that print themselves."""


def output(work: Any, *args: Any) -> str:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        work(*args)
    return out.getvalue() + err.getvalue()


def is_calm(text: str) -> bool:
    """Whether a terminal shows just these characters, in this order."""
    return all(line.isprintable() for line in text.split("\n"))


def test_json_for_a_terminal_has_no_character_that_cannot_be_seen() -> None:
    line = output(say_json, {EVIL: [EVIL, {"title": EVIL}]})
    assert is_calm(line)
    assert line.count("\n") == 1
    text = EVIL.replace("\ud800", "?")
    assert json.loads(line) == {text: [text, {"title": text}]}


def test_letters_of_all_scripts_stay_as_they_are_in_json() -> None:
    assert output(say_json, ["Grüße, 世界, سلام, 🎬"]) == '["Grüße, 世界, سلام, 🎬"]\n'


@given(st.text())
def test_json_reads_back_whatever_it_holds(text: str) -> None:
    line = output(say_json, text)
    assert json.loads(line) == text
    assert line.isascii() or is_calm(line)


@pytest.mark.parametrize("show", [say, note, lambda text: say_table((text,), [(text,)])])
def test_lines_and_tables_have_none_either(show: Any) -> None:
    shown = output(show, EVIL)
    assert is_calm(shown)
    assert shown.count("\n") <= 2


def failing(error: BaseException) -> typer.Typer:
    app = typer.Typer(cls=ErrorBoundary, rich_markup_mode=None)

    @app.callback()
    def begin(ctx: typer.Context, debug: bool = False) -> None:
        ctx.obj = {"debug": debug}

    @app.command()
    def fail(file: Path = typer.Argument(None, exists=True)) -> None:  # noqa: B008
        raise error

    return app


@pytest.mark.parametrize("error", [HomerError(EVIL), ValueError(EVIL), OSError(2, EVIL, EVIL)])
@pytest.mark.parametrize("options", [[], ["--debug"]])
def test_errors_and_the_way_to_them_have_none(error: Exception, options: list[str]) -> None:
    done = CliRunner().invoke(failing(error), [*options, "fail"])
    assert done.exit_code == 1
    assert "homer: " in done.stderr
    assert is_calm(done.stderr)


@pytest.mark.parametrize("before", [[], [__file__]])
def test_names_of_files_that_are_not_wanted_are_reported_calmly(before: list[str]) -> None:
    """``homer COMMAND *`` gives whatever names lie there."""
    name = f"talk{BIDI}\x1b[2J\nforged.mp4"
    done = CliRunner().invoke(failing(HomerError("")), ["fail", *before, name])
    assert done.exit_code == 2
    assert "talk" in done.stderr
    assert is_calm(done.stderr)
    assert "\nforged" not in done.stderr


def test_a_question_to_the_person_has_none() -> None:
    app = typer.Typer()
    app.command()(lambda: confirm(f"Delete {EVIL}?"))
    assert is_calm(CliRunner().invoke(app, [], input="n\n").stderr)


def test_words_of_a_model_have_none_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from cli import answers
    from domain.trajectory import PartialReply

    monkeypatch.setattr(answers, "event_lines", lambda _: [f"  {EVIL}"])
    out = StringIO()
    console = Console(file=out, force_terminal=True, no_color=True, width=200)
    for verbose in (True, False):
        show = answers._TerminalListener(console, console.status(""), verbose=verbose)
        show(object())  # type: ignore[arg-type]
    assert not set(out.getvalue()) & set(BIDI)
    assert "\x1b[2J" not in out.getvalue()
    assert is_calm(reply_tail(PartialReply(round=1, purpose="act", text=EVIL), 80))


def test_objects_of_a_program_show_none(store: Store) -> None:
    """A notebook or a Python prompt prints them."""
    moment = Moment(ref="m1", video="b", title=EVIL, span=TimeSpan.of(1_000, 2_000), text=EVIL)
    assert is_calm(str(moment))
    assert is_calm(repr(FoundMoments([moment], store)))
    remember_party(store)
    question = Question(text=f"Who opens the gate {EVIL}?", videos=(PARTY,))
    made = ask(store, WordToolbox(), question)
    told = answer_of(store, made).model_copy(update={"note": EVIL})
    assert is_calm(repr(VideoAnswer(told, store)))
    assert is_calm(str(trajectory(store, made.trajectory_id)))


def test_words_of_a_subtask_do_not_turn_what_follows_them_on_an_exported_page() -> None:
    from domain.asking import Subtask
    from ui.trajectory_tools import _subtask

    html = _subtask(Subtask(id="t1", text="\u202eone", answer="\u202etwo"), ())
    rest = re.sub("<bdi>[^<]*</bdi>", "", html)
    assert html.count("<bdi>\u202e") == 2
    assert "\u202e" not in rest


def test_all_that_is_printed_goes_through_one_place() -> None:
    assert {file for file, text in sources().items() if _prints(ast.parse(text))} == set(PRINTS)


def _prints(tree: ast.Module) -> bool:
    names = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    direct = {"print", "typer.echo", "typer.secho", "click.echo", "traceback.print_exception"}
    direct |= {"sys.stdout.write", "sys.stderr.write", "traceback.print_exc", "pprint"}
    return bool(names & direct) or any(name.endswith("onsole.print") for name in names)
