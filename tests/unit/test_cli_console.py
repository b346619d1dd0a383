"""What commands print: aligned tables, one-line JSON, and nothing that steers a terminal."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.console import confirm, note, say_table


def test_a_table_aligns_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("id", "clips"), [("a", 5), ("long name", 12)])
    assert capsys.readouterr().out.splitlines() == [
        "id         clips",
        "a              5",
        "long name     12",
    ]


STEERS = "a\x1b[2Jb\rc\x07d\x9be\u202ef\udcffg\nh"


@given(st.text(max_size=20))
def test_words_of_a_note_are_as_they_are_where_they_can_be_shown(text: str) -> None:
    with redirect_stderr(StringIO()) as output:
        note(text)
    assert len(output.getvalue()) == len(text) + 1
    assert output.getvalue()[:-1].isprintable()
    if text.isprintable():
        assert output.getvalue() == f"{text}\n"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_a_question_is_one_clean_line_and_only_yes_goes_on(answer: str, code: int) -> None:
    asking = typer.Typer()
    asking.command()(lambda: confirm(f"Delete {STEERS}?"))
    done = CliRunner().invoke(asking, [], input=f"{answer}\n")
    assert done.exit_code == code
    assert "Delete" not in done.stdout
    asked, _, _ = done.stderr.partition("? [y/N]")
    assert asked.startswith("Delete a")
    assert asked.isprintable()
