"""How pages write times of answers, and lists within a sentence."""

from __future__ import annotations

import pytest

from domain.words import join_words, short_times


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It begins with: [00:02-00:08] Hello", "It begins with: [0:02-0:08] Hello"),
        ("First at 00:35: a gate", "First at 0:35: a gate"),
        ("Ann (seen 09:59-10:01)", "Ann (seen 9:59-10:01)"),
        ("from 01:00:05-01:00:07", "from 01:00:05-01:00:07"),
        ("the clock shows 09:30", "the clock shows 09:30"),
    ],
)
def test_times_of_an_answer_have_no_padding_and_quoted_ones_stay(text: str, shown: str) -> None:
    assert short_times(text) == shown


@pytest.mark.parametrize(
    ("parts", "joined"),
    [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c"), ([], "")],
)
def test_parts_of_a_sentence_are_joined(parts: list[str], joined: str) -> None:
    assert join_words(parts) == joined
