"""What commands print: aligned tables, one-line JSON, and nothing that steers a terminal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.console import clean, say_json, say_table


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
    cleaned = clean(text)
    assert cleaned.isprintable()
    assert cleaned == cleaned.strip()


def test_escape_sequences_do_not_reach_the_terminal() -> None:
    assert clean("\x1b[31mred\x1b[0m\r\nnext") == "[31mred [0m  next"


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
