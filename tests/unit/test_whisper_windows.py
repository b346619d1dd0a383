"""How Whisper looks at its windows, each once, and which of its words are loops."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from models.speech import SAMPLE_HZ, SHORTEST_TALK_S, Windows, find_loops, speech_of

LONGEST = 448
ALARM = "please leave the building now"


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
        return result, -0.1, 0.0, 1.5

    def transcribe(self, features: Any) -> tuple[Any, Any]:
        return self.detect_language(features=features), self.encode(window(features[:, :-1]))

    def read(self, seconds: float) -> Any:
        """What is decoded of a window of which so much is sound."""
        encoded = self.encode(window(features(round(100 * seconds), len(self.encoded))))
        return self.generate_with_fallback(encoded, [1, 2, 3], None, Options())


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


@pytest.mark.parametrize("seconds", [0.01, 0.14, SHORTEST_TALK_S - 0.02])
def test_a_rest_that_holds_no_word_is_neither_encoded_nor_decoded(seconds: float) -> None:
    model = Model()
    Windows(model)
    model.read(28.0)
    assert silent(model.read(seconds))
    assert len(model.encoded) == len(model.decoded) == 1
    assert not silent(model.read(SHORTEST_TALK_S + 0.02))


def test_all_of_a_short_recording_is_read() -> None:
    model = Model()
    windows = Windows(model)
    model.detect_language(features=features(20))
    assert not silent(model.read(0.2))
    assert silent(model.read(0.2))
    windows.reset()
    assert not silent(model.read(0.2))


@pytest.mark.parametrize("seconds", [0.5, 2.0, 10.0, 30.0])
def test_no_more_is_decoded_than_can_be_said_in_the_time(seconds: float) -> None:
    model = Model(loops=(1, 5))
    Windows(model)
    found, _, _, _ = model.read(seconds)
    assert len(found.sequences_ids[0]) <= min(17 + 15 * seconds, LONGEST // 2)


class Said(NamedTuple):
    """A word as Whisper gives it, with times in seconds."""

    word: str
    start: float
    end: float
    probability: float = 0.9


def said(text: str, start: float, word_s: float = 0.3) -> list[Said]:
    """Words that follow each other at once."""
    return [
        Said(f" {word}", start + n * word_s, start + (n + 1) * word_s)
        for n, word in enumerate(text.split())
    ]


def sound(seconds: float, until: float | None = None) -> NDArray[np.float32]:
    """A loud noise up to a moment, then the faint one of a room."""
    made = np.random.default_rng(1).normal(0, 0.1, int(seconds * SAMPLE_HZ)).astype(np.float32)
    made[int((seconds if until is None else until) * SAMPLE_HZ) :] *= 0.01
    return made


@pytest.mark.parametrize(
    ("words", "until", "lost"),
    [
        (said(" ".join([ALARM] * 4), 0), None, []),
        (said("no no no no no no", 0, 0.15), None, []),
        # One word of a chant is misplaced.
        ([*said("no no no", 0), *said("no", 0.9, 0), *said("no no no", 1)], None, []),
        (said("it was good it was not", 0), None, []),
        # The same words in no time, too fast for a mouth, and where nobody speaks any more.
        (
            [*said(ALARM, 0), *said(ALARM, 2), *said(" ".join([ALARM] * 3), 4, 0.0)],
            None,
            [(10, 25)],
        ),
        ([*said(ALARM, 0), *said(ALARM, 2), *said(ALARM, 4, 0.1)], None, [(10, 15)]),
        (said(" ".join([ALARM] * 5), 0), 3.0, [(10, 25)]),
        ([*said("well", 0), *said("yeah " * 3, 1), *said("yeah " * 9, 3, 0.01)], None, [(4, 13)]),
        # What is said after a loop stays.
        ([*said("so " * 2, 0), *said("so " * 8, 1, 0), *said("we went home", 4)], None, [(2, 10)]),
        # The last repetition was cut off by the bound on tokens.
        ([*said(ALARM, 0), *said(f"{ALARM} {ALARM} please", 3, 0.0)], None, [(5, 16)]),
    ],
)
def test_what_is_repeated_was_said_so_often_or_is_a_loop(
    words: list[Said], until: float | None, lost: list[tuple[int, int]]
) -> None:
    assert [(loop[0], loop[-1] + 1) for loop in find_loops(words, sound(12.0, until))] == lost


@dataclass(frozen=True)
class Segment:
    """As much of a segment as is read; ``seek`` is where its window begins."""

    words: list[Said]
    avg_logprob: float = -0.3
    seek: int = 0


@pytest.mark.parametrize(
    ("segments", "text"),
    [
        # "Thank you" of a breath is unsure and alone in the last window.
        ([Segment(said("we left", 0)), Segment(said("Thank you.", 29), -1.3, 2_850)], "we left"),
        (
            [Segment(said("we left", 0)), Segment(said("for good", 29), -0.6, 2_850)],
            "we left for good",
        ),
        ([Segment(said("all mumbled", 0), -1.3)], "all mumbled"),
        # Of a whole sentence it is said that it was not understood.
        (
            [Segment(said("we left", 0)), Segment(said("my home is far away", 25), -1.1, 2_500)],
            "we left ",
        ),
        ([Segment([*said("we left", 0), *said("you", 0.6, 0.0)])], "we left"),
        ([Segment(said("I", 0, 0.0)), Segment(said("left", 0.1))], "I left"),
    ],
)
def test_a_last_word_that_is_invented_is_not_stored(segments: list[Segment], text: str) -> None:
    assert " ".join(one.text for one in speech_of(segments, [], "en", 30.0)) == text


def test_instead_of_a_loop_it_says_that_somebody_speaks() -> None:
    words = [*said("yes", 0), *said("so so so so", 1), *said("bye", 4)]
    found = speech_of([Segment(words)], [range(2, 5)], "en", 30.0)
    assert [(one.text, one.words[0].start_ms) for one in found] == [("yes so bye", 0), ("", 1_300)]
