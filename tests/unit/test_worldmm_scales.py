"""WorldMM's numbers, and which windows of its scales are complete when."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import strategies.worldmm.settings
from strategies.registry import strategy_names
from strategies.worldmm.captions import (
    ScaleWindow,
    due_windows,
    finer_windows,
    summarised_scale,
    window_at,
)
from strategies.worldmm.settings import HOUR, MINUTE, SECOND, WorldMemorySettings
from tests.support.packages import ROOT

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


def test_a_window_is_due_once_only() -> None:
    first = due_windows(SETTINGS.scales_ms, [0], 0, 30 * SECOND)
    assert [window.number for window in first] == [0]
    assert due_windows(SETTINGS.scales_ms, [0], 30 * SECOND, 60 * SECOND) == ()


def test_the_end_of_a_video_completes_what_has_begun() -> None:
    due = due_windows(SETTINGS.scales_ms, [5 * SECOND], 0, 20 * SECOND, ended=True)
    assert [window.scale_ms for window in due] == list(SETTINGS.scales_ms)


@given(TIMES, st.lists(st.integers(0, 3 * HOUR), max_size=6))
def test_built_in_steps_or_at_once_the_windows_are_the_same(
    times: list[int], stops: list[int]
) -> None:
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
    hour = ScaleWindow(scale_ms=HOUR, number=2)
    parts = list(finer_windows(hour, 10 * MINUTE))
    assert parts[0].span.start_ms == 2 * HOUR
    assert parts[-1].end_ms == 3 * HOUR
    assert len(parts) == 6
