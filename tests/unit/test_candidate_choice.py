"""Candidate generation: the fixed sample, and spans of temporal expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.memories import Scope
from retrieval.candidates import MOST_SPANS, STEP_S, sampled_clips, temporal_spans

HOUR, DAY = 3600.0, 86_400.0
VIDEOS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.integers(0, 200)),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one[0],
)


def scopes_of(videos: list[tuple[str, int]]) -> list[Scope]:
    return [Scope(video=16 * video, last_clip=last) for video, last in videos]


@given(VIDEOS, st.integers(1, 80))
def test_a_sample_has_requested_number_of_clips(videos: list[tuple[str, int]], count: int) -> None:
    scopes = scopes_of(videos)
    sample = sampled_clips(scopes, count)
    assert sample == sampled_clips(scopes, count)
    assert len(sample) == min(count, sum(last + 1 for _, last in videos))
    assert all(0 <= clip <= scopes[number].last_clip for number, clip in sample)
    assert sample <= sampled_clips(scopes, count + 1)


@given(VIDEOS, st.integers(1, 80), st.integers(0, 100))
def test_clips_sampled_of_a_longer_view_are_sampled_of_the_shorter_one_too(
    videos: list[tuple[str, int]], count: int, more: int
) -> None:
    """Of the sampled clips those that were there before stay; so means move little by little."""
    before = sampled_clips(scopes_of(videos), count)
    longer = sampled_clips(scopes_of([(video, last + more) for video, last in videos]), count)
    assert {(number, clip) for number, clip in longer if clip <= videos[number][1]} <= before


@given(VIDEOS, st.integers(1, 80))
def test_order_of_videos_does_not_change_sample(videos: list[tuple[str, int]], count: int) -> None:
    def named(order: list[tuple[str, int]]) -> set[tuple[str, int]]:
        found = sampled_clips(scopes_of(order), count)
        return {(order[number][0], clip) for number, clip in found}

    assert named(videos) == named(videos[::-1])


def test_an_empty_view_has_an_empty_sample() -> None:
    assert sampled_clips([], 9) == set()


def test_a_temporal_expression_gives_a_span_of_the_video() -> None:
    now = 3 * DAY + 20 * HOUR
    ((start, end),) = temporal_spans("What did Ann drink yesterday morning?", now)
    assert 2 * DAY <= start < 2 * DAY + 12 * HOUR
    assert start < end <= 2 * DAY + 14 * HOUR
    assert start % STEP_S == end % STEP_S == 0


@pytest.mark.parametrize("text", ["", "Who sings?", "a red cup"])
def test_text_without_a_temporal_expression_gives_no_spans(text: str) -> None:
    assert temporal_spans(text, 3 * DAY) == []


@given(st.sampled_from(["yesterday", "this morning", "an hour ago", "at 11:00", "usually"]))
def test_spans_are_few_and_in_order(text: str) -> None:
    spans = temporal_spans(f"What happens {text}?", 9 * DAY)
    assert len(spans) <= MOST_SPANS
    assert spans == sorted(spans)
    assert all(0 <= start < end <= 9 * DAY for start, end in spans)
