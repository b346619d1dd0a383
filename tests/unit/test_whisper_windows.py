"""How Whisper looks at its windows: each once, again where it loops, never at a rest of nothing."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.whisper_windows import SHORTEST_S, Windows

LONGEST = 448
PROMPT = [1, 2, 3]
SOME, LOOP = 1.5, 20.0
"""By how much gzip shrinks what somebody said, and a loop."""


@dataclass(frozen=True)
class Options:
    """As much as is decided about the decoding of a window."""

    beam_size: int = 5
    max_new_tokens: int | None = None


class Model:
    """As much of Whisper as is replaced: both look at the first 3000 columns, the words at all but
    the last one of the recording. ``loops``: with how many beams it does not come to an end."""

    max_length = LONGEST

    def __init__(self, loops: tuple[int, ...] = (), tokens: int = 5) -> None:
        self.encoded: list[Any] = []
        self.decoded: list[Options] = []
        self.loops, self.tokens = loops, tokens

    def encode(self, features: Any) -> tuple[float, int]:
        self.encoded.append(np.array(features))
        return float(features.sum()), len(self.encoded)

    def detect_language(self, audio: Any = None, features: Any = None) -> Any:
        return self.encode(window(features if audio is None else audio))

    def generate_with_fallback(self, _encoded: Any, prompt: Any, _words: Any, options: Any) -> Any:
        self.decoded.append(options)
        loops = options.beam_size in self.loops
        most = (len(prompt) + options.max_new_tokens) // 2
        result = SimpleNamespace(
            sequences_ids=[[7] * min(most, LONGEST if loops else self.tokens)], no_speech_prob=0.1
        )
        return result, -0.1, 0.0, LOOP if loops else SOME

    def transcribe(self, features: Any) -> tuple[Any, Any]:
        return self.detect_language(features=features), self.encode(window(features[:, :-1]))

    def read(self, seconds: float) -> Any:
        """What is decoded of a window of which so much is sound."""
        encoded = self.encode(window(features(round(100 * seconds), len(self.encoded))))
        return self.generate_with_fallback(encoded, PROMPT, None, Options())


def silent(found: Any) -> bool:
    """Whether faster-whisper would pass over what was found."""
    result, likely, _, _ = found
    return bool(result.no_speech_prob > 0.6 and likely < -1)


def window(features: Any) -> Any:
    cut = features[:, :3_000]
    return np.pad(cut, ((0, 0), (0, 3_000 - cut.shape[1])))


def features(columns: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).random((2, columns), np.float32)


@pytest.fixture
def model() -> Model:
    made = Model()
    Windows(made)
    return made


@pytest.mark.parametrize("columns", [2, 500, 3_000, 3_001, 4_500])
def test_a_window_is_encoded_once(model: Model, columns: int) -> None:
    guess, words = model.transcribe(features(columns))
    assert guess == words
    assert len(model.encoded) == 1


def test_what_is_encoded_for_the_words_is_as_it_was(model: Model) -> None:
    model.transcribe(features(500))
    plain = Model()
    plain.transcribe(features(500))
    np.testing.assert_array_equal(model.encoded[-1], plain.encoded[-1])


def test_other_sound_is_encoded_anew(model: Model) -> None:
    first, again, other = (model.transcribe(features(500, seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert len(model.encoded) == 2


def test_a_window_that_was_overwritten_in_place_is_another(model: Model) -> None:
    sound = features(500)
    model.transcribe(sound)
    sound += 1
    model.transcribe(sound)
    assert len(model.encoded) == 2


def test_a_guess_from_sound_alone_is_left_as_it_is(model: Model) -> None:
    model.detect_language(features(500))
    assert model.encoded[0].shape == (2, 3_000)
    np.testing.assert_array_equal(model.encoded[0][:, :500], features(500))


def test_a_loop_is_read_again_with_one_beam() -> None:
    model = Model(loops=(5,))
    Windows(model)
    found = model.read(17.5)
    assert found[-1] == SOME
    assert [one.beam_size for one in model.decoded] == [5, 1]
    assert not silent(found)


def test_what_loops_either_way_is_reported_as_it_is() -> None:
    model = Model(loops=(5, 1))
    Windows(model)
    found = model.read(20.0)
    assert found[-1] == LOOP
    assert len(model.decoded) == 2


def test_what_is_no_loop_is_read_once() -> None:
    model = Model()
    Windows(model)
    assert not silent(model.read(2.0))
    assert len(model.decoded) == 1


@pytest.mark.parametrize("seconds", [0.01, 0.14, SHORTEST_S - 0.02])
def test_a_rest_that_holds_no_word_is_neither_encoded_nor_decoded(seconds: float) -> None:
    model = Model()
    Windows(model)
    model.read(28.0)
    assert silent(model.read(seconds))
    assert len(model.encoded) == len(model.decoded) == 1
    assert not silent(model.read(SHORTEST_S + 0.02))


def test_all_of_a_short_recording_is_read() -> None:
    model = Model()
    windows = Windows(model)
    model.detect_language(features=features(20))
    assert not silent(model.read(0.2))
    assert silent(model.read(0.2))
    windows.reset()
    assert not silent(model.read(0.2))


@pytest.mark.parametrize("seconds", [0.5, 2.0, 10.0])
def test_more_than_can_be_said_in_the_time_is_no_speech(seconds: float) -> None:
    for model in (talker := Model(tokens=round(5 * seconds)), looper := Model(loops=(1, 5))):
        Windows(model)
    assert not silent(talker.read(seconds))
    assert silent(looper.read(seconds))
    most = max(one.max_new_tokens or 0 for one in looper.decoded)
    assert (most + len(PROMPT)) // 2 <= 17 + 15 * seconds


def test_a_long_window_may_have_as_many_words_as_ever() -> None:
    model = Model(tokens=LONGEST)
    Windows(model)
    assert not silent(model.read(30.0))
    assert model.decoded[0].max_new_tokens == LONGEST - len(PROMPT)
