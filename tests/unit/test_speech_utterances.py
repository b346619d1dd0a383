"""Words become utterances, and voices are told apart by the pitch of a tone."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from domain.media import Clip
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.ports import Samples, Speech, Vector, Word
from perception.decode import RawClip, lookahead_ms
from perception.faces_and_voices import (
    WINDOW_MS,
    SpeakerTurn,
    absorb_small,
    bridge_pauses,
    clip_span,
    cut_windows,
    find_turns,
    group_voices,
)
from perception.hearing import NOTHING_HEARD, Heard, find_utterances, recognise, voice_at
from perception.source import clips_of

CLIP = Clip(index=1, span=TimeSpan.of(30_000, 60_000))
SETTINGS = WatchSettings(clip_ms=6_000)
words_st = st.lists(
    st.text(alphabet="abcé。.?! '\"$<", min_size=1, max_size=6).filter(
        lambda w: w.strip() == w and w
    ),
    min_size=1,
    max_size=15,
)
HZ = 16_000
SETTINGS_OF_VOICES = WatchSettings()
CLIP_OF_VOICES = Clip(index=2, span=TimeSpan.of(60_000, 90_000))
PITCHES = (200, 500, 1_100, 2_300)


def speech(text: str, start_ms: int = 0, word_ms: int = 400, joined: str = " ") -> Speech:
    """A stretch whose words follow each other at once, ``word_ms`` long each."""
    words = tuple(
        Word(start_ms + i * word_ms, start_ms + (i + 1) * word_ms, f"{joined}{one}")
        for i, one in enumerate(text.split(" "))
    )
    return Speech(words, "en", 0.8)


def test_a_sentence_is_an_utterance() -> None:
    found = find_utterances(
        [speech("I went home. Then I slept!")], [SpeakerTurn(0, 3_000, 0)], {0}, CLIP
    )
    assert [u.text for u in found] == ["I went home.", "Then I slept!"]
    assert found[0].span == TimeSpan.of(30_000, 31_200)
    assert found[1].span == TimeSpan.of(31_200, 32_400)
    assert {(u.voice, u.language, u.confidence) for u in found} == {(0, "en", 0.8)}


@pytest.mark.parametrize(
    ("stretch", "turns", "utterances"),
    [
        # Another voice begins another utterance, but for one word between two runs of a voice.
        (
            speech("are you there yes I am here"),
            [SpeakerTurn(0, 1_600, 0), SpeakerTurn(1_600, 4_000, 1)],
            [(0, "are you there yes"), (1, "I am here")],
        ),
        (
            speech("one two three four five six"),
            [SpeakerTurn(0, 1_200, 0), SpeakerTurn(1_200, 1_600, 1), SpeakerTurn(1_600, 4_000, 0)],
            [(0, "one two three four five six")],
        ),
        # A voice without a group is distinguished and not named.
        (
            speech("one two three four five six"),
            [SpeakerTurn(0, 1_600, 0), SpeakerTurn(1_600, 3_000, 2)],
            [(0, "one two three four"), (None, "five six")],
        ),
        (speech("你好。 世界 和平", joined=""), [], [(None, "你好。"), (None, "世界和平")]),
        (
            speech('He said "no." Then he left.'),
            [],
            [(None, 'He said "no."'), (None, "Then he left.")],
        ),
    ],
)
def test_utterances_end_with_sentences_and_voices(
    stretch: Speech, turns: list[SpeakerTurn], utterances: list[tuple[int | None, str]]
) -> None:
    found = find_utterances([stretch], turns, {0, 1}, CLIP)
    assert [(u.voice, u.text) for u in found] == utterances


def said_with_pause(pause_ms: int, *texts: str, voices: tuple[int, int] = (0, 0)) -> list[str]:
    first, second = (
        Speech((Word(start, start + 400, one),), "en", 0.5)
        for start, one in zip((0, 400 + pause_ms), texts, strict=True)
    )
    turns = [
        SpeakerTurn(one.words[0].start_ms, one.words[0].end_ms, voice)
        for one, voice in zip((first, second), voices, strict=True)
    ]
    return [one.text for one in find_utterances([first, second], turns, {0, 1}, CLIP)]


def test_a_sentence_goes_on_after_a_short_pause() -> None:
    assert said_with_pause(1_500, "lines", "represent.") == ["lines represent."]


@pytest.mark.parametrize(
    ("pause_ms", "texts", "voices"),
    [
        (3_500, ("lines", "represent."), (0, 0)),
        (1_500, ("Lines.", "Represent."), (0, 0)),
        (1_500, ("lines", "represent."), (0, 1)),
    ],
)
def test_a_long_pause_a_full_stop_and_another_voice_end_a_sentence(
    pause_ms: int, texts: tuple[str, str], voices: tuple[int, int]
) -> None:
    assert said_with_pause(pause_ms, *texts, voices=voices) == [*texts]


def test_speech_without_full_stops_is_still_split() -> None:
    stretches = [speech(" ".join(["word"] * 15), start_ms=7_000 * n) for n in range(4)]
    found = find_utterances(stretches, [SpeakerTurn(0, 30_000, 0)], {0}, CLIP)
    assert [len(one.text.split()) for one in found] == [30, 30]


def test_a_stretch_without_word_times_is_stored_whole() -> None:
    found = find_utterances(
        [Speech((Word(100, 900, "Hm. Yes."),), "de", 0.4)], [SpeakerTurn(0, 999, 2)], {2}, CLIP
    )
    assert [(u.text, u.voice, u.span) for u in found] == [
        ("Hm. Yes.", 2, TimeSpan.of(30_100, 30_900))
    ]


@pytest.mark.parametrize(
    ("start", "end", "voice"),
    [(0, 100, 0), (900, 1_400, 1), (1_900, 2_200, 1), (2_300, 2_500, 1), (9_000, 9_100, None)],
)
def test_a_word_is_of_its_turn_or_the_nearest_one(start: int, end: int, voice: int | None) -> None:
    assert voice_at(start, end, [SpeakerTurn(0, 1_000, 0), SpeakerTurn(1_000, 2_000, 1)]) == voice


@given(words_st, st.lists(st.tuples(st.integers(1, 2_000), st.integers(0, 2)), max_size=6))
def test_no_word_is_lost_or_said_twice(words: list[str], lengths: list[tuple[int, int]]) -> None:
    turns, at = [], 0
    for length, voice in lengths:
        turns.append(SpeakerTurn(at, at + length, voice))
        at += length
    timed = tuple(Word(i * 300, i * 300 + 300, f" {w}") for i, w in enumerate(words))
    found = find_utterances([Speech(timed, "en", 1.0)], turns, {0, 1, 2}, CLIP)
    assert " ".join(u.text for u in found).split() == " ".join(words).split()
    for a, b in itertools.pairwise(found):
        assert a.span.end_ms <= b.span.start_ms


class Listener:
    """Hears the words of a recording whose samples are numbered, and mishears those cut in two."""

    name, languages = "scripted", ("en",)

    def __init__(self, words: list[Word]) -> None:
        self.words = words

    def transcribe(self, samples: Samples) -> list[Speech]:
        begin, end = int(samples[0]) / 16, (int(samples[-1]) + 1) / 16
        heard = [
            Word(
                round(max(word.start_ms, begin) - begin),
                round(min(word.end_ms, end) - begin),
                word.text if begin <= word.start_ms and word.end_ms <= end else " misheard",
            )
            for word in self.words
            if word.start_ms < end and begin < word.end_ms
        ]
        return [Speech(tuple(heard), "en", 0.9)] if heard else []

    def spans(self, samples: Samples) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for word in (word for one in self.transcribe(samples) for word in one.words):
            if found and word.start_ms - found[-1][1] < 300:
                found[-1] = (found[-1][0], word.end_ms)
            else:
                found.append((word.start_ms, word.end_ms))
        return found


@given(st.integers(0, 2**32 - 1))
def test_words_at_the_borders_of_clips_are_heard_whole_and_once(seed: int) -> None:
    random, words, at = np.random.default_rng(seed), list[Word](), 0
    for number in range(80):
        pause, length = (int(ms) for ms in random.integers((0, 20), (500, 200)))
        at += pause if number % 2 else max(pause, 400)
        words.append(Word(at, at + length, f" w{number}."))
        at += length
    whole = np.arange(at * 16 + 16_000, dtype=np.float32)
    clips, listener = clips_of(len(whole) // 16, SETTINGS), Listener(words)
    models: Any = SimpleNamespace(speech=listener, activity=listener)
    raws = [
        RawClip(
            clip,
            [],
            whole[clip.span.start_ms * 16 : clip.span.end_ms * 16],
            following=whole[clip.span.end_ms * 16 :][: lookahead_ms(SETTINGS) * 16],
        )
        for clip in clips
    ]
    # In any order, as workers do, and one after the other, as a stream is heard.
    heard = [recognise(raw, models, SETTINGS) for raw in reversed(raws)][::-1]
    before, streamed = 0, list[Heard]()
    for raw in raws:
        streamed.append(recognise(replace(raw, heard_from_ms=before), models, SETTINGS))
        before = streamed[-1].after_ms
    assert streamed == heard
    said = [
        [u.text for u in one.utterances(earlier.after, clip)]
        for earlier, one, clip in zip([NOTHING_HEARD, *heard], heard, clips, strict=False)
    ]
    assert said == [
        [
            word.text.strip()
            for word in words
            if 2 * clip.span.start_ms <= word.start_ms + word.end_ms < 2 * clip.span.end_ms
        ]
        for clip in clips
    ]
    assert len(clips) > 3
    event(f"words over borders: {sum(bool(one.after) for one in heard)}")


def test_a_full_stop_that_a_cut_invented_is_taken_back() -> None:
    first, own = speech("we drove to the."), speech("store and back.", 1_650)
    heard = Heard(speech=(own,))
    assert [u.text for u in heard.utterances([first], CLIP)] == ["we drove to the store and back."]
    assert len(Heard(speech=(speech("Then we left.", 1_650),)).utterances([first], CLIP)) == 2


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
    assert (windows[0][0], windows[-1][1]) == (start, start + length)
    assert all(0 < b - a <= WINDOW_MS for a, b in windows)
    for (_, end), (begin, _) in itertools.pairwise(windows):
        assert begin < end


@given(
    st.lists(st.tuples(st.integers(0, 800), st.integers(1, 3_000), st.integers(0, 2)), max_size=12)
)
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
    groups = group_voices(turns, samples, CLIP_OF_VOICES, encoder, SETTINGS_OF_VOICES)
    assert [group.number for group in groups] == [0, 1]
    spans = [[str(sighting.span) for sighting in group.sightings] for group in groups]
    assert spans == [["01:00-01:04"], ["01:05-01:08"]]
    assert groups[0].sightings[0].quality == 4.0
    assert groups[0].sightings[0].score == pytest.approx(1)
    assert np.argmax(groups[1].sightings[0].vector) == PITCHES.index(1_100)


def test_no_more_than_ten_seconds_of_a_turn_are_embedded() -> None:
    encoder = Pitch()
    group_voices(
        [SpeakerTurn(0, 25_000, 0)], tone(200, 25), CLIP_OF_VOICES, encoder, SETTINGS_OF_VOICES
    )
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
    assert clip_span(start, end, CLIP_OF_VOICES) == TimeSpan.of(*expected)


def test_small_clusters_are_absorbed_unless_all_are_small() -> None:
    rows = np.eye(3, dtype=np.float32)[[0, 0, 0, 1, 2, 2, 2]]
    rows[3] = (0.6, 0.8, 0.0)
    assert absorb_small(rows, [0, 0, 0, 1, 2, 2, 2], 3) == [0, 0, 0, 0, 1, 1, 1]
    assert absorb_small(rows[:2], [0, 1], 3) == [0, 0]
