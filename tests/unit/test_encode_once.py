"""Guessing the language and finding the words of one window encode it once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.whisper import _encode_once


class Model:
    """As much of Whisper as encodes: both look at the first 3000 columns, the words at all but
    the last one of the recording."""

    def __init__(self) -> None:
        self.encoded: list[Any] = []

    def encode(self, features: Any) -> tuple[float, int]:
        self.encoded.append(np.array(features))
        return float(features.sum()), len(self.encoded)

    def detect_language(self, audio: Any = None, features: Any = None) -> Any:
        return self.encode(window(features if audio is None else audio))

    def transcribe(self, features: Any) -> tuple[Any, Any]:
        return self.detect_language(features=features), self.encode(window(features[:, :-1]))


def window(features: Any) -> Any:
    cut = features[:, :3_000]
    return np.pad(cut, ((0, 0), (0, 3_000 - cut.shape[1])))


def features(columns: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).random((2, columns), np.float32)


@pytest.fixture
def model() -> Model:
    made = Model()
    _encode_once(made)
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
