"""EventMemAgent's memory: events by histograms, a uniform sample, and any second found again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from models.ports import Image
from strategies.eventmem.event_memory import (
    EventFrames,
    EventMemory,
    EventMemoryState,
    EventRecord,
    FrameUse,
    Segmentation,
    ShortTermMemory,
    correlation,
    memory_at,
)
from strategies.eventmem.settings import EventMemorySettings
from tests.support.full_suite import examples
from tests.support.real_frames import frames_of

SETTINGS = EventMemorySettings()
CLIPS = ("tos_battle_clip.webm", "visualvoice_interview.mp4", "wannaworktogether.mp4")
SECOND = 1_000
STREAMS = st.lists(st.tuples(st.integers(1, 70), st.integers(0, 5)), min_size=1, max_size=8)
"""Events of a stream: how many frames each has, and how many seconds are missing before it."""


def test_the_numbers_are_the_papers() -> None:
    papers = {
        "every_ms": 1_000,
        "frames": 32,
        "same_event": 0.2,
        "least_frames": 8,
        "found": 3,
        "threshold": 0.3,
    }
    assert SETTINGS.model_dump(include=set(papers)) == papers
    with pytest.raises(ValidationError):
        EventMemorySettings.model_validate({"unknown": 1})


def shades(*levels: int) -> Image:
    """A picture of stripes of these greys."""
    row = np.repeat(np.array(levels, np.uint8), 60 // len(levels))
    return np.repeat(np.tile(row, (40, 1))[..., None], 3, axis=2)


DARK, BRIGHT = shades(10, 20, 30), shades(200, 220, 240)


def begins(images: list[Image]) -> list[int]:
    segmentation = Segmentation(SETTINGS)
    return [number for number, image in enumerate(images) if segmentation.begins_event(image)]


def test_an_event_ends_after_more_than_eight_frames_at_an_unlike_one() -> None:
    assert begins([DARK] * 9 + [BRIGHT] * 9 + [DARK]) == [0, 9, 18]
    # Eight frames are too few: the event goes on, and its mean has both.
    assert begins([DARK] * 8 + [BRIGHT] + [DARK] * 20) == [0]
    assert begins([DARK] * 20) == [0]


def real_frames(find: Callable[[str], Path]) -> list[Image]:
    return [image for name in CLIPS for image in frames_of(find(name), 0.5, 50)]


@pytest.mark.full
def test_events_of_real_frames_are_those_of_numpy(shared_media: Callable[[str], Path]) -> None:
    images = real_frames(shared_media)
    found = begins(images)
    # The same rule with numpy's correlation and a mean of all histograms of the event.
    starts: list[int] = []
    event: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
    for number, image in enumerate(images):
        grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        shares = np.bincount(grey.ravel(), minlength=256) / grey.size
        mean = np.mean(event, axis=0) if event else shares
        if not event or (len(event) > 8 and np.corrcoef(shares, mean)[0, 1] < 0.2):
            starts.append(number)
            event = []
        event.append(shares)
    assert found == starts
    assert len(found) >= 4


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [([1, 1], [1, 1], 1.0), ([1, 1], [1, 2], 0.0), ([1, 2], [2, 4], 1.0), ([1, 2], [2, 1], -1.0)],
)
def test_histograms_that_do_not_vary(one: list[float], other: list[float], expected: float) -> None:
    assert correlation(np.array(one, float), np.array(other, float)) == pytest.approx(expected)


def sample(video: str, frames: int, event: int = 0) -> tuple[int, ...]:
    memory = ShortTermMemory(SETTINGS, video)
    for number in range(event * 40):
        memory.add(number, begins_event=number % 40 == 0)
    for number in range(frames):
        memory.add(event * 40 + number * SECOND, begins_event=number == 0)
    (only,) = [one for one in memory.events if one.record.number == event]
    return tuple((time - event * 40) // SECOND for time in only.frames)


def test_samples_are_uniform() -> None:
    streams, frames = examples(500, 2_000), 100
    counts = Counter(frame for seed in range(streams) for frame in sample(f"video {seed}", frames))
    observed = [counts[frame] for frame in range(frames)]
    assert sum(observed) == streams * 32
    # Each stream chooses 32 of 100 without replacement, which varies less than independent draws.
    varies, expected = (frames - 32) / (frames - 1), sum(observed) / frames
    # Chi squared: the 99th percentile of its distribution with 99 degrees of freedom.
    assert sum((count - expected) ** 2 / expected for count in observed) / varies < 134.6


def test_samples_depend_on_the_video_and_the_event_only() -> None:
    assert sample("a", 300) == sample("a", 300)
    assert sample("a", 300) != sample("b", 300)
    assert sample("a", 300, event=1) != sample("a", 300, event=0)


def frames_in(stream: list[tuple[int, int]]) -> list[tuple[int, bool]]:
    found, second = [], 0
    for frames, missing in stream:
        second += missing
        found += [((second + number) * SECOND, number == 0) for number in range(frames)]
        second += frames
    return found


@given(STREAMS)
def test_memory_has_at_most_32_frames_of_the_last_events(stream: list[tuple[int, int]]) -> None:
    memory, evicted = ShortTermMemory(SETTINGS, "v"), list[EventFrames]()
    for time, begins_event in frames_in(stream):
        evicted += memory.add(time, begins_event=begins_event).evicted
        frames = [frame for event in memory.events for frame in event.frames]
        assert len(frames) == len(set(frames)) <= 32
        # It holds more only if the event before, whole, would be too much.
        if evicted:
            assert len(frames) + min(32, evicted[-1].seen) > 32 - 1
    assert [event.record.number for event in (*evicted, *memory.events)] == list(range(len(stream)))


@given(STREAMS)
def test_memory_as_of_any_second_is_found_again_from_record(stream: list[tuple[int, int]]) -> None:
    memory, gone, seen = ShortTermMemory(SETTINGS, "v"), list[EventRecord](), {}
    for time, begins_event in frames_in(stream):
        gone += [one.record for one in memory.add(time, begins_event=begins_event).evicted]
        seen[time] = memory.events
    records = [*gone, *(event.record for event in memory.events)]
    for time, events in seen.items():
        assert memory_at(records, time, SETTINGS, "v") == events
        assert memory_at(records, time + 999, SETTINGS, "v") == events
    assert memory_at(records, -1, SETTINGS, "v") == ()


def test_memory_that_is_killed_at_every_frame_is_same(shared_media: Callable[[str], Path]) -> None:
    images = real_frames(shared_media)
    images = [*images, *images[:1] * 60, *images]
    whole, state = EventMemory(SETTINGS, "v"), EventMemoryState()
    kept: dict[int, FrameUse] = {}
    evicted: list[EventRecord] = []
    for number, image in enumerate(images):
        saved = EventMemoryState.model_validate_json(state.model_dump_json())
        resumed = EventMemory(SETTINGS, "v", saved)
        whole.add(number * SECOND, image)
        resumed.add(number * SECOND, image)
        change = whole.end_clip()
        assert resumed.end_clip() == change
        assert resumed.state == whole.state
        state = resumed.state
        kept = {time: use for time, use in kept.items() if time not in change.dropped}
        kept |= change.added
        evicted += change.evicted
        in_memory = {frame for event in state.events for frame in event.frames}
        first = {record.start_ms for record in evicted}
        first |= {event.record.start_ms for event in state.events}
        assert kept.keys() == in_memory | first
        assert {time for time, use in kept.items() if use is FrameUse.FIRST} == first
    assert len(evicted) >= 5
