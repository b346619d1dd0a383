"""Long utterances are cut at sentence ends and lose no word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.wording import LINE_WORDS, split_sentences, split_utterance
from tests.support.memory import said, span


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Dr. Smith met Mr. Jones.", ["Dr. Smith met Mr. Jones."]),
        ("Version 2.5 works.", ["Version 2.5 works."]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("  ", []),
    ],
)
def test_sentences_end_where_they_end(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_a_short_utterance_stays_whole() -> None:
    assert split_utterance(said(1, " One. Two. ", seconds=2)) == [("One. Two.", span(1, 3))]


def test_a_long_one_is_cut_between_sentences_and_its_time_is_shared_out() -> None:
    text = " ".join([("word " * 29 + "end.")] * 3)
    cut = split_utterance(said(0, text, seconds=30))
    assert [len(one.split()) for one, _ in cut] == [30, 30, 30]
    assert [one for _, one in cut] == [span(0, 10), span(10, 20), span(20, 30)]


@given(st.lists(st.text(alphabet="ab .!?", max_size=60), max_size=20).map(" ".join))
def test_no_word_is_lost_and_times_follow_each_other(text: str) -> None:
    one = said(5, text, seconds=7)
    cut = split_utterance(one)
    assert " ".join(" ".join(words for words, _ in cut).split()) == " ".join(text.split())
    ends = [one.span.start_ms, *(time for _, when in cut for time in (when.start_ms, when.end_ms))]
    assert ends == sorted(ends)
    assert not cut or cut[-1][1].end_ms == one.span.end_ms
    whole = [words for words, _ in cut if len(words.split()) > LINE_WORDS]
    assert all(len(split_sentences(words)) == 1 for words in whole)
