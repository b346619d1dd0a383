"""Changes to how faster-whisper decodes a recording window by window.

Each window is encoded once, for its language and its words, and a decoder that loops ends when
there are more tokens than can be spoken in the time.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

SHORTEST_S = 0.4
"""So much silence is added after speech, so a shorter remainder has no word."""

_COLUMNS_A_SECOND = 100
_TOKENS_ANYWAY, _TOKENS_A_SECOND = 16, 15
"""The most tokens that can be spoken: English takes a quarter of it."""

_NOTHING: Any = object()
"""The encoding of a window without a word."""
_SILENCE = SimpleNamespace(no_speech_prob=1.0), -math.inf, 0.0, 0.0
"""The result for it, as faster-whisper reports silence."""


class Windows:
    """Wraps a model's encoding and decoding of windows, one recording at a time.

    Args:
        model: one of faster-whisper's, three methods of which are replaced.
    """

    def __init__(self, model: Any) -> None:
        self._encode, self._detect_language = model.encode, model.detect_language
        self._decode, self._longest = model.generate_with_fallback, int(model.max_length)
        self._last: tuple[Any, Any] | None = None
        self._sound_s, self._begun = 0.0, False
        model.encode, model.detect_language = self.encode, self.detect_language
        model.generate_with_fallback = self.decode

    def reset(self) -> None:
        """Start a new recording."""
        self._begun = False

    def encode(self, features: Any) -> Any:
        """Encode a window, or reuse the last encoding if equal; features are (bins, columns)."""
        # How much of a window is sound; its padding is zeros.
        filled = np.flatnonzero(np.asarray(features).any(axis=0))
        self._sound_s = float(filled[-1] + 1) / _COLUMNS_A_SECOND if len(filled) else 0.0
        if self._begun and self._sound_s < SHORTEST_S:
            return _NOTHING
        if self._last is None or not np.array_equal(self._last[0], features):
            self._last = np.array(features), self._encode(features)
        return self._last[1]

    def detect_language(self, *args: Any, features: Any = None, **more: Any) -> Any:
        """Detect the language of the window that is decoded too: of all but the last 10 ms."""
        if features is not None:
            features = features[..., :-1]
        return self._detect_language(*args, features=features, **more)

    def decode(self, encoded: Any, prompt: Any, tokenizer: Any, options: Any) -> Any:
        """Decode a window, to as many tokens as can be spoken in it."""
        self._begun = True
        if encoded is _NOTHING:
            return _SILENCE
        spoken = _TOKENS_ANYWAY + round(_TOKENS_A_SECOND * self._sound_s)
        # CTranslate2 gives out half of the length it is allowed.
        most = 2 * min(spoken, self._longest // 2) - len(prompt)
        return self._decode(encoded, prompt, tokenizer, replace(options, max_new_tokens=most))
