"""WorldMM's numbers, its windows and scales, their captions, and times that queries name."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import strategies.worldmm.settings
from domain.time import TimeSpan
from retrieval.chapters import DocumentCounts, caption_sentences, coarser_caption
from strategies.registry import strategy_names
from strategies.worldmm.captions import (
    ScaleWindow,
    SeenLine,
    due_windows,
    finer_windows,
    finest_caption,
    summarised_scale,
    window_at,
)
from strategies.worldmm.replies import find_span
from strategies.worldmm.settings import HOUR, MINUTE, SECOND, WorldMemorySettings
from tests.support.packages import ROOT

WORDS = st.sampled_from(("cup", "table", "garden", "rain", "guitar", "noodles", "bridge", "lamp"))
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
CAPTIONS = st.lists(
    st.lists(SENTENCES, min_size=1, max_size=5).map("\n".join), min_size=1, max_size=6
)


def _line(start_ms: int, text: str, speaker: str = "") -> SeenLine:
    return SeenLine(span=TimeSpan.of(start_ms, start_ms + 1_000), text=text, speaker=speaker)


def _counts(*captions: str) -> DocumentCounts:
    counts = DocumentCounts()
    for caption in captions:
        counts.add(caption)
    return counts


def test_the_finest_caption_is_the_lines_in_order_with_who_said_them() -> None:
    lines = [_line(2_000, "Mark it.", "Jake"), _line(0, "I hold  my phone."), _line(3_000, " ")]
    assert finest_caption([*lines, lines[0]]) == "I hold my phone.\nJake: Mark it."


def test_a_local_caption_falls_into_the_sentences_it_was_made_of() -> None:
    lines = [_line(0, "First this. Then that.", "Ann"), _line(1_000, "I nod.")]
    assert caption_sentences(finest_caption(lines)) == ["Ann: First this. Then that.", "I nod."]
    assert caption_sentences("I nod. I leave.") == ["I nod.", "I leave."]


def test_rare_words_are_chosen_before_common_ones_and_stay_in_order() -> None:
    common = "I walk forward.\nI hold my phone."
    finer = [f"{common}\nLucia repairs the guitar.", f"{common}\nJake: The guitar needs strings."]
    chosen = coarser_caption(finer, _counts(*[common] * 20, *finer), most=2)
    assert chosen == "Lucia repairs the guitar.\nJake: The guitar needs strings."


@given(CAPTIONS, st.integers(1, 8))
def test_an_extract_has_a_few_sentences_of_the_finer_ones(finer: list[str], most: int) -> None:
    counts = _counts(*finer)
    chosen = caption_sentences(coarser_caption(finer, counts, most))
    given = [sentence for caption in finer for sentence in caption_sentences(caption)]
    assert 0 < len(chosen) <= most
    assert len(set(chosen)) == len(chosen)
    positions = [given.index(sentence) for sentence in chosen]
    assert positions == sorted(positions)
    assert coarser_caption(finer, counts, most).split("\n") == chosen


SETTINGS = WorldMemorySettings()
TIMES = st.lists(st.integers(0, 3 * HOUR), max_size=40)


def test_the_numbers_are_the_papers() -> None:
    assert SETTINGS.model_dump() == {
        "scales_ms": (30_000, 180_000, 600_000, 3_600_000),
        "short_scales_ms": (10_000, 30_000, 180_000, 600_000),
        "short_video_ms": 3_600_000,
        "summary_sentences": 8,
        "synonym_cosine": 0.8,
        "matched_triples": 5,
        "damping": 0.5,
        "caption_weight": 0.05,
        "captions": (10, 5, 5, 3),
        "captions_kept": 3,
        "semantic_window_ms": 600_000,
        "occasions": 3,
        "consolidation_cosine": 0.6,
        "consolidation_candidates": 10,
        "semantic_triples": 10,
        "segment_ms": 10_000,
        "frames": 10,
        "rounds": 5,
    }


def test_only_videos_under_an_hour_have_the_short_scales() -> None:
    assert SETTINGS.scales(HOUR - 1) == SETTINGS.short_scales_ms
    assert SETTINGS.scales(HOUR) == SETTINGS.scales(None) == SETTINGS.scales_ms


@pytest.mark.parametrize("scales", [(30, 10, 60, 90), (10, 25, 50, 100), (10, 10, 20, 40)])
def test_scales_must_ascend_by_multiples_of_the_finest(scales: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="scales"):
        WorldMemorySettings.model_validate({"scales_ms": scales})


def test_a_folder_without_a_strategy_file_is_no_strategy() -> None:
    whole = {path.parent.name for path in (ROOT / "strategies").glob("*/strategy.py")}
    assert set(strategy_names()) == {name.replace("_", "-") for name in whole}
    assert strategies.worldmm.settings.SECOND == 1_000


def test_a_window_is_due_once_it_is_complete() -> None:
    times = [5 * SECOND, 40 * SECOND, 170 * SECOND]
    assert due_windows(SETTINGS.scales_ms, times, 0, 59 * SECOND) == (
        ScaleWindow(scale_ms=30 * SECOND, number=0),
    )
    assert due_windows(SETTINGS.scales_ms, times, 59 * SECOND, 3 * MINUTE) == (
        ScaleWindow(scale_ms=30 * SECOND, number=1),
        ScaleWindow(scale_ms=30 * SECOND, number=5),
        ScaleWindow(scale_ms=3 * MINUTE, number=0),
    )


def test_the_end_of_a_video_completes_what_has_begun() -> None:
    due = due_windows(SETTINGS.scales_ms, [5 * SECOND], 0, 20 * SECOND, ended=True)
    assert [window.scale_ms for window in due] == list(SETTINGS.scales_ms)


@given(TIMES, st.lists(st.integers(0, 3 * HOUR), max_size=6))
def test_built_in_steps_or_at_once_windows_are_the_same(times: list[int], stops: list[int]) -> None:
    steps = [0, *sorted(stops), 3 * HOUR]
    stepwise = [
        window
        for built, seen in pairwise(steps)
        for window in due_windows(SETTINGS.scales_ms, times, built, seen)
    ]
    assert tuple(stepwise) == due_windows(SETTINGS.scales_ms, times, 0, 3 * HOUR)


@given(TIMES)
def test_every_moment_is_in_one_window_of_each_scale_and_none_is_empty(times: list[int]) -> None:
    due = due_windows(SETTINGS.scales_ms, times, 0, 4 * HOUR)
    for scale in SETTINGS.scales_ms:
        windows = [window for window in due if window.scale_ms == scale]
        assert all(any(w.span.start_ms <= t < w.end_ms for t in times) for w in windows)
        assert {window_at(scale, time) for time in times} == set(windows)


def test_a_coarser_scale_summarises_windows_that_lie_in_its_own() -> None:
    long, short = SETTINGS.scales_ms, SETTINGS.short_scales_ms
    made_of = [summarised_scale(long, scale) for scale in long]
    assert made_of == [None, 30 * SECOND, 30 * SECOND, 10 * MINUTE]
    assert [summarised_scale(short, s) for s in short] == [None, 10_000, 30_000, 30_000]
    parts = list(finer_windows(ScaleWindow(scale_ms=HOUR, number=2), 10 * MINUTE))
    assert parts[0].span.start_ms == 2 * HOUR
    assert parts[-1].end_ms == 3 * HOUR
    assert len(parts) == 6


DAY, HOUR_OF_TIMES, MINUTE_OF_TIMES = 86_400, 3_600, 60
AT_18_34 = DAY + 18 * HOUR_OF_TIMES + 34 * MINUTE_OF_TIMES


@pytest.mark.parametrize(
    ("text", "start_s", "end_s"),
    [
        ("12:30", 750, 750),
        ("12:30 - 12:50", 750, 770),
        ("What is on the table from 12:30 to 12:50?", 750, 770),
        ("1:02:03 – 1:04:00", HOUR_OF_TIMES + 123, HOUR_OF_TIMES + 240),
        ("DAY 2 18:34:01 - 18:34:29", AT_18_34 + 1, AT_18_34 + 29),
        ("DAY2, 18:34 - DAY2, 18:35", AT_18_34, AT_18_34 + 60),
        ("d2 18:34:01-d3 18:34:01", AT_18_34 + 1, AT_18_34 + DAY + 1),
        ("the kitchen on day 2 at 18:34", AT_18_34, AT_18_34),
        ("12:50 - 12:30", 770, 770),
        ("[03:14] somebody reads", 194, 194),
    ],
)
def test_a_time_is_read_as_it_is_meant(text: str, start_s: int, end_s: int) -> None:
    assert find_span(text) == TimeSpan.of(start_s * 1000, end_s * 1000)


@pytest.mark.parametrize(
    "text", ["", "the red car", "at noon", "day 2", "12", "12:3", "ratio 1:2:3:4", "v1.12:30:1.5"]
)
def test_what_names_no_time_is_none(text: str) -> None:
    assert find_span(text) is None
