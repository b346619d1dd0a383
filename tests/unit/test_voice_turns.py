"""Voices told apart by an encoder that hears only the pitch of a tone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import Clip
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.ports import Samples, Vector
from perception.voices import (
    WINDOW_MS,
    SpeakerTurn,
    absorb_small,
    bridge_pauses,
    clip_span,
    cut_windows,
    find_turns,
    group_voices,
)

HZ = 16_000
SETTINGS = WatchSettings()
CLIP = Clip(index=2, span=TimeSpan.of(60_000, 90_000))
PITCHES = (200, 500, 1_100, 2_300)


def tone(pitch: int, seconds: float) -> Samples:
    return np.sin(2 * np.pi * pitch * np.arange(int(seconds * HZ)) / HZ).astype(np.float32)


def quiet(seconds: float) -> Samples:
    return np.zeros(int(seconds * HZ), np.float32)


@dataclass
class Pitch:
    """Embeds a stretch by how much of each known pitch is in it."""

    name: str = "pitch"
    same_speaker: float = 0.5
    lengths: list[int] = field(default_factory=list)

    def embed(self, samples: Samples) -> Vector:
        self.lengths.append(len(samples) * 1000 // HZ)
        ms = np.arange(len(samples)) / HZ
        power = [abs(np.exp(-2j * np.pi * p * ms) @ samples) for p in PITCHES]
        vector = np.array(power, np.float32) + 1e-6
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


def turns_of(*parts: tuple[int | None, float]) -> tuple[list[SpeakerTurn], Samples, Pitch]:
    """Speak the parts (pitch, seconds) one after the other; None is a pause."""
    samples = np.concatenate([tone(p, s) if p else quiet(s) for p, s in parts])
    spans: list[tuple[int, int]] = []
    at = 0
    for pitch, seconds in parts:
        end = at + round(seconds * 1000)
        if pitch and spans and spans[-1][1] == at:
            spans[-1] = (spans[-1][0], end)
        elif pitch:
            spans.append((at, end))
        at = end
    encoder = Pitch()
    return find_turns(samples, spans, encoder, HZ), samples, encoder


def test_nobody_speaks() -> None:
    assert find_turns(quiet(3), [], Pitch(), HZ) == []
    assert find_turns(quiet(3), [(100, 300)], Pitch(), HZ) == []


def test_one_voice_is_one_turn_over_short_pauses() -> None:
    turns, *_ = turns_of((200, 4), (None, 0.3), (200, 3))
    assert turns == [SpeakerTurn(0, 7_300, 0)]


def test_two_voices_without_a_pause_are_parted_where_they_change() -> None:
    turns, *_ = turns_of((200, 5), (1_100, 6))
    assert [turn.voice for turn in turns] == [0, 1]
    assert turns[0].end_ms == turns[1].start_ms == pytest.approx(5_000, abs=WINDOW_MS)
    assert (turns[0].start_ms, turns[-1].end_ms) == (0, 11_000)


def test_a_voice_that_comes_back_keeps_its_number() -> None:
    turns, *_ = turns_of((500, 4), (None, 1), (200, 4), (None, 1), (500, 4), (None, 1), (2_300, 4))
    assert [turn.voice for turn in turns] == [0, 1, 0, 2]


def test_a_scrap_too_short_to_be_a_person_goes_to_the_likest_voice() -> None:
    turns, *_ = turns_of((200, 5), (None, 1), (1_100, 0.6), (None, 1), (200, 5))
    assert {turn.voice for turn in turns} == {0}


@given(st.integers(0, 50_000), st.integers(0, 20_000))
def test_windows_cover_a_span_and_stay_within_it(start: int, length: int) -> None:
    windows = cut_windows(start, start + length)
    if length < 400:
        assert windows == []
        return
    assert windows[0][0] == start
    assert windows[-1][1] == start + length
    assert all(0 < b - a <= WINDOW_MS for a, b in windows)
    for (_, end), (begin, _) in itertools.pairwise(windows):
        assert begin < end


turn_lists = st.lists(
    st.tuples(st.integers(0, 800), st.integers(1, 3_000), st.integers(0, 2)), max_size=12
)


@given(turn_lists)
def test_bridging_loses_no_time_and_leaves_no_short_pause(rows: list[tuple[int, int, int]]) -> None:
    turns, at = [], 0
    for pause, length, voice in rows:
        turns.append(SpeakerTurn(at + pause, at + pause + length, voice))
        at += pause + length
    bridged = bridge_pauses(turns)
    for a, b in itertools.pairwise(bridged):
        assert a.end_ms <= b.start_ms
        assert a.voice != b.voice or b.start_ms - a.end_ms >= 500
    for turn in turns:
        assert any(
            b.voice == turn.voice and b.start_ms <= turn.start_ms and turn.end_ms <= b.end_ms
            for b in bridged
        )


def test_a_voice_is_known_by_its_turns_of_two_seconds_and_more() -> None:
    turns, samples, encoder = turns_of((200, 4), (None, 1), (1_100, 3), (None, 1), (200, 1.9))
    groups = group_voices(turns, samples, CLIP, encoder, SETTINGS)
    assert [group.number for group in groups] == [0, 1]
    spans = [[str(sighting.span) for sighting in group.sightings] for group in groups]
    assert spans == [["01:00-01:04"], ["01:05-01:08"]]
    assert groups[0].sightings[0].quality == 4.0
    assert groups[0].sightings[0].score == pytest.approx(1)
    assert np.argmax(groups[1].sightings[0].vector) == PITCHES.index(1_100)


def test_no_more_than_ten_seconds_of_a_turn_are_embedded() -> None:
    encoder = Pitch()
    group_voices([SpeakerTurn(0, 25_000, 0)], tone(200, 25), CLIP, encoder, SETTINGS)
    assert encoder.lengths == [10_000]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 500, (60_000, 60_500)),
        (-40, 500, (60_000, 60_500)),
        (29_900, 31_000, (89_900, 90_000)),
        (31_000, 32_000, (90_000, 90_000)),
        (700, 600, (60_700, 60_700)),
    ],
)
def test_times_stay_within_the_clip(start: int, end: int, expected: tuple[int, int]) -> None:
    assert clip_span(start, end, CLIP) == TimeSpan.of(*expected)


def test_small_clusters_are_absorbed_unless_all_are_small() -> None:
    rows = np.eye(3, dtype=np.float32)[[0, 0, 0, 1, 2, 2, 2]]
    rows[3] = (0.6, 0.8, 0.0)
    assert absorb_small(rows, [0, 0, 0, 1, 2, 2, 2], 3) == [0, 0, 0, 0, 1, 1, 1]
    assert absorb_small(rows[:2], [0, 1], 3) == [0, 0]
