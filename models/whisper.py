"""Speech recognition by Whisper on CTranslate2 (faster-whisper), int8 on the CPU.

Deterministic: one temperature (0, so nothing is sampled), a fixed beam, and no text carried over
from one window to the next.
"""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from domain.errors import SetupError
from models.onnx import threads_allowed
from models.openmp import sleep_while_waiting
from models.ports import Samples, Speech, Word
from models.silero import SAMPLE_HZ, SileroActivity

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

BEAM = 5
SHORTEST_S = 0.2
REPETITIVE = 2.4
"""Text that gzip shrinks by more than this is a loop of the decoder, not speech (Whisper, 4.5)."""


class WhisperRecognizer:
    """Whisper with word times. Only stretches in which Silero hears a voice are transcribed.

    Args:
        name: how the model is called in the store.
        folder: the CTranslate2 model's folder.
        languages: languages to choose among (ISO 639-1); empty: all that the model knows.
        known: all that the model knows.

    Raises:
        SetupError: a language is to be chosen that the model does not know.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        languages: tuple[str, ...] = (),
        known: tuple[str, ...] = (),
    ) -> None:
        if unknown := [one for one in languages if known and one not in known]:
            raise SetupError(
                f"{name} does not know the language {', '.join(unknown)}: take codes such as "
                f"{', '.join(known[:5])}; `homer models --json` lists all"
            )
        self.name = name
        self.languages = languages or known
        self._allowed = languages
        self._folder = folder

    def transcribe(self, samples: Samples) -> list[Speech]:
        """Recognise 16 kHz mono ``samples``; an empty list where nobody speaks."""
        if len(samples) < SHORTEST_S * SAMPLE_HZ:
            return []
        audio = np.ascontiguousarray(samples, np.float32)
        if not SileroActivity().spans(audio):
            # Whisper would still spend a second on guessing the language of silence.
            return []
        segments, info = self._model.transcribe(
            audio,
            language=self._language(audio),
            beam_size=BEAM,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
            vad_filter=True,
        )
        end_ms = len(samples) * 1000 // SAMPLE_HZ
        speech = (_speech(segment, info.language, end_ms) for segment in segments)
        return [part for part in speech if part is not None]

    @cached_property
    def _model(self) -> WhisperModel:
        sleep_while_waiting()
        from faster_whisper import WhisperModel

        model = WhisperModel(
            str(self._folder),
            device="cpu",
            compute_type="int8",
            cpu_threads=threads_allowed(),
            num_workers=1,
            local_files_only=True,
        )
        _encode_once(model)
        return model

    def _language(self, audio: Samples) -> str | None:
        """The likeliest of the languages allowed; None lets Whisper choose among all."""
        if len(self._allowed) < 2:
            return self._allowed[0] if self._allowed else None
        _, _, likely = self._model.detect_language(audio=audio, vad_filter=True)
        allowed = [(chance, code) for code, chance in likely if code in self._allowed]
        return max(allowed)[1] if allowed else self._allowed[0]


def _encode_once(model: Any) -> None:
    """Let the model use what it encoded to guess the language for the words as well.

    It encodes each window for the one and again for the other, a quarter of all its work. The two
    differ in that words are looked for in all but the last 10 ms; so now is the language.
    """
    encode, guess = model.encode, model.detect_language
    last: list[tuple[Any, Any]] = []

    def encode_anew(features: Any) -> Any:
        pair = last[0] if last else None
        if pair is None or not np.array_equal(pair[0], features):
            pair = np.array(features), encode(features)
            last[:] = [pair]
        return pair[1]

    def guess_of_words(*args: Any, features: Any = None, **more: Any) -> Any:
        if features is not None:
            features = features[..., :-1]
        return guess(*args, features=features, **more)

    model.encode, model.detect_language = encode_anew, guess_of_words


def _speech(segment: Any, language: str, end_ms: int) -> Speech | None:
    """The segment in our words; None for a repetition loop or for no words at all."""
    text = segment.text.strip()
    if not text or segment.compression_ratio > REPETITIVE:
        return None
    return Speech(
        start_ms=_ms(segment.start, end_ms),
        end_ms=_ms(segment.end, end_ms),
        text=text,
        language=language,
        confidence=min(1.0, math.exp(segment.avg_logprob)),
        words=tuple(
            Word(_ms(word.start, end_ms), _ms(word.end, end_ms), word.word.strip())
            for word in segment.words or ()
        ),
    )


def _ms(seconds: float, end_ms: int) -> int:
    return min(max(0, round(seconds * 1000)), end_ms)
