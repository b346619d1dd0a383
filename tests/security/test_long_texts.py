"""One long line stops no reader: its time grows with the length of a text, not with the square."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from domain.errors import HomerError
from domain.sentences import LONGEST_SENTENCE, split_sentences, split_utterance
from memory.captions import read_captions
from memory.writers.local_event import find_stated_causes
from tests.support.full_suite import is_full
from tests.support.long_texts import READERS, REFUSALS, Reader, events, texts
from tests.support.memory import said
from tests.support.relative_cpu_time import cpu, is_linear

SHORT, LONG = 1_000, 64_000
LONGEST = 1_000_000 if is_full() else 100_000
TIMES = 400
"""So many times the time of finding words may be taken; a square is hundreds of times as much."""


def run(reader: Reader, text: str, refusal: type[Exception] = HomerError) -> None:
    with suppress(HomerError, refusal):
        reader(text)


@pytest.mark.parametrize("name", READERS)
def test_readers_take_linear_time_and_refuse_in_words(name: str) -> None:
    reader, refusal = READERS[name], REFUSALS.get(name, HomerError)
    costs = [cpu(lambda text=text: run(reader, text, refusal)) for text in texts(SHORT)]  # type: ignore[misc]
    worst = sorted(range(len(costs)), key=lambda number: -costs[number])[:3]
    long = texts(LONG)
    slow = [
        long[number][:40]
        for number in worst
        if not is_linear(lambda number=number: run(reader, long[number], refusal), LONG, TIMES)  # type: ignore[misc]
    ]
    assert slow == []


@pytest.mark.parametrize("words", ["word ", "x", "it rains because ", "Hm. "])
def test_causes_of_long_speech_are_found_in_linear_time(words: str) -> None:
    text = words * (LONGEST // len(words))
    assert is_linear(lambda: find_stated_causes(text), LONGEST, TIMES)


@pytest.mark.parametrize("words", ["word ", "Hm. ", "It fell because it rained. "])
def test_the_event_writer_takes_linear_time_for_what_is_repeated(words: str) -> None:
    text = words * (LONGEST // len(words))
    assert is_linear(lambda: events(text), LONGEST, TIMES)


def test_numbers_that_no_python_reads_are_text(tmp_path: Path) -> None:
    number = "9" * 5_000
    text = f"I am <face_{number}> and &#{number}; comes {number} hours later, k{number}"
    for reader in READERS.values():
        run(reader, text, ValueError)
    path = tmp_path / "a.vtt"
    path.write_text(f"WEBVTT\n\n00:01.000 --> 00:02.000\na &#{number}; b\n")
    assert [line.text for line in read_captions(path).lines] == ["a \ufffd b"]


def test_a_long_sentence_is_cut_between_words_and_none_is_lost() -> None:
    text = "word " * 3_000 + "x" * 5_000 + " end"
    parts = split_sentences(text)
    assert max(map(len, parts)) <= LONGEST_SENTENCE
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert set(" ".join(parts[:7]).split()) == {"word"}


def test_what_is_said_in_a_long_sentence_is_remembered_whole() -> None:
    text = "word " * 3_000
    lines = split_utterance(said(0, text))
    assert " ".join(line for line, _ in lines).split() == text.split()
    assert [span.start_ms for _, span in lines] == sorted(span.start_ms for _, span in lines)


def test_a_cause_in_a_long_sentence_is_found() -> None:
    text = "well " * 1_000 + "the bridge fell because the flood came and " + "so on " * 1_000
    (found,) = find_stated_causes(text)
    assert found.target.endswith("the bridge fell")
    assert found.source.startswith("the flood came")
    assert len(found.quote) <= LONGEST_SENTENCE
