"""What commands print: aligned tables, one-line JSON, and nothing that steers a terminal."""

from __future__ import annotations

import json
from contextlib import redirect_stderr
from io import StringIO

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.console import confirm, note, say_json, say_table
from domain.words import plain_line


def test_a_table_aligns_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("id", "clips"), [("a", 5), ("long name", 12)])
    assert capsys.readouterr().out.splitlines() == [
        "id         clips",
        "a              5",
        "long name     12",
    ]


def test_a_table_without_rows_shows_its_heads(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("id", "clips"), [])
    assert capsys.readouterr().out == "id  clips\n"


def test_a_column_with_one_word_in_it_is_flush_left(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("n", "x"), [("1", "b"), ("many", "c")])
    assert capsys.readouterr().out.splitlines()[1] == "1     b"


@given(st.text())
def test_a_cell_is_one_clean_line(text: str) -> None:
    cleaned = plain_line(text)
    assert cleaned.isprintable()
    assert cleaned == cleaned.strip()


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    assert plain_line("\x1b[31mred\x1b[0m\r\nnext") == "[31mred [0m  next"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_json_is_one_line_that_reads_back(data: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        lines: list[str] = []
        patch.setattr("typer.echo", lines.append)
        say_json(data)
    assert len(lines) == 1
    assert "\n" not in lines[0]
    assert json.loads(lines[0]) == data


def test_json_keeps_letters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"text": "Grüße, 世界"})
    assert capsys.readouterr().out == '{"text": "Grüße, 世界"}\n'


STEERS = "a\x1b[2Jb\rc\x07d\x9be\u202ef\udcffg\nh"


def test_what_a_person_is_reported_does_not_steer_their_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    note(f"  {STEERS}")
    output = capsys.readouterr().err
    assert output.endswith("\n")
    assert output[:-1].isprintable()
    assert output.startswith("  a")
    assert output.count("\n") == 1


@given(st.text(max_size=20))
def test_words_of_a_note_are_as_they_are_where_they_can_be_shown(text: str) -> None:
    with redirect_stderr(StringIO()) as output:
        note(text)
    assert len(output.getvalue()) == len(text) + 1
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
