"""How Whisper looks at one window of sound after the other, besides what faster-whisper does.

Each window is encoded once, for its language and its words. A decoder that falls into a loop is
asked again, and what nobody can have said in so short a time is not taken for speech.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

REPETITIVE = 2.4
"""Text that gzip shrinks by more than this is a loop of the decoder, not speech (Whisper, 4.5)."""
LEAST_S = 0.4
"""Behind speech so much is added before Whisper hears it: a rest of less holds no word."""

_COLUMNS_A_SECOND = 100
_TOKENS_ANYWAY, _TOKENS_A_SECOND = 16, 15
"""More tokens than that are not spoken: English takes a quarter of it."""

_NOTHING: Any = object()
"""In place of what a window without a word would be encoded as."""
_SILENCE = SimpleNamespace(no_speech_prob=1.0), -math.inf, 0.0, 0.0
"""What is found in it, as faster-whisper tells silence."""


class Windows:
    """Stands between a model and its windows, of one recording at a time.

    Args:
        model: one of faster-whisper's, three methods of which are replaced.
    """

    def __init__(self, model: Any) -> None:
        self._encode, self._guess = model.encode, model.detect_language
        self._decode, self._longest = model.generate_with_fallback, int(model.max_length)
        self._last: tuple[Any, Any] | None = None
        self._sound_s, self._begun = 0.0, False
        model.encode, model.detect_language = self.encode, self.guess
        model.generate_with_fallback = self.decode

    def begin(self) -> None:
        """What comes is of another recording."""
        self._begun = False

    def encode(self, features: Any) -> Any:
        """What was encoded last where it is the same again; features are (bins, columns)."""
        self._sound_s = _seconds(features)
        if self._begun and self._sound_s < LEAST_S:
            return _NOTHING
        if self._last is None or not np.array_equal(self._last[0], features):
            self._last = np.array(features), self._encode(features)
        return self._last[1]

    def guess(self, *args: Any, features: Any = None, **more: Any) -> Any:
        """The language of the window in which words are looked for: of all but the last 10 ms."""
        if features is not None:
            features = features[..., :-1]
        return self._guess(*args, features=features, **more)

    def decode(self, encoded: Any, prompt: Any, tokenizer: Any, options: Any) -> Any:
        """The words of a window, read with one beam where several fall into a loop."""
        self._begun = True
        if encoded is _NOTHING:
            return _SILENCE
        most = self._most_tokens()
        # CTranslate2 gives out half of the length it is allowed.
        bound = replace(options, max_new_tokens=2 * most - len(prompt))
        found = self._decode(encoded, prompt, tokenizer, bound)
        if found[-1] > REPETITIVE:
            found = self._decode(encoded, prompt, tokenizer, replace(bound, beam_size=1))
        too_many = len(found[0].sequences_ids[0]) >= most < self._longest // 2
        return _SILENCE if too_many else found

    def _most_tokens(self) -> int:
        spoken = _TOKENS_ANYWAY + round(_TOKENS_A_SECOND * self._sound_s)
        return min(spoken, self._longest // 2)


def _seconds(features: Any) -> float:
    """How much of a window is sound: what is missing at its end is filled with zeros."""
    filled = np.flatnonzero(np.asarray(features).any(axis=0))
    return float(filled[-1] + 1) / _COLUMNS_A_SECOND if len(filled) else 0.0
