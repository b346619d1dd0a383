"""Speech recognition by Whisper on CTranslate2 (faster-whisper), int8 on the CPU by default.

Deterministic: one temperature (0, so nothing is sampled), a fixed number of beams, and no text
carried over from one window to the next.
"""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from domain.errors import SetupError
from models.devices import SpeechDevice
from models.native_runtime import limit_arenas, make_idle_threads_sleep
from models.onnx import threads_allowed
from models.ports import Samples, Speech, Word
from models.silero import SAMPLE_HZ, SileroActivity
from models.whisper_windows import REPETITIVE, Windows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from faster_whisper import WhisperModel

BEAM = 5
SHORTEST_S = 0.2


class WhisperRecognizer:
    """Whisper with word times. Only spans in which Silero detects speech are transcribed.

    Args:
        name: how the model is called in the store.
        folder: the CTranslate2 model's folder.
        languages: languages to choose among (ISO 639-1); empty: all that the model knows.
        known: all that the model knows; empty: not told.
        device: where it runs.

    Raises:
        SetupError: a language is to be chosen that the model does not know.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        languages: tuple[str, ...] = (),
        known: tuple[str, ...] = (),
        device: SpeechDevice = SpeechDevice(),  # noqa: B008 - immutable
    ) -> None:
        if unknown := [one for one in languages if known and one not in known]:
            raise SetupError(
                f"{name} does not know the language {', '.join(unknown)}: take codes such as "
                f"{', '.join(known[:5])}; `homer models --json` lists all"
            )
        self.name = name
        self.languages = languages or known
        self._allowed = languages
        self._folder, self._device = folder, device
        self._lock = Lock()

    def transcribe(self, samples: Samples) -> list[Speech]:
        """Transcribe 16 kHz mono ``samples``; return an empty list if nobody speaks."""
        if len(samples) < SHORTEST_S * SAMPLE_HZ:
            return []
        audio = np.ascontiguousarray(samples, np.float32)
        if not SileroActivity().spans(audio):
            # Whisper would still spend a second on guessing the language of silence.
            return []
        end_ms = len(samples) * 1000 // SAMPLE_HZ
        with self._lock:
            segments, language = self._transcribe(audio)
            speech = [_speech(segment, language, end_ms) for segment in segments]
        return [part for part in speech if part is not None]

    def _transcribe(self, audio: Samples) -> tuple[Iterable[Any], str]:
        """Return segments, which are decoded lazily, and their language."""
        model, windows = self._model
        windows.reset()
        segments, info = model.transcribe(
            audio,
            language=self._language(audio),
            beam_size=BEAM,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
            vad_filter=True,
        )
        return segments, info.language

    @cached_property
    def _model(self) -> tuple[WhisperModel, Windows]:
        make_idle_threads_sleep()
        limit_arenas()
        # After that: OpenMP reads the environment when it is loaded.
        from faster_whisper import WhisperModel

        model = WhisperModel(
            str(self._folder),
            device=self._device.device,
            device_index=self._device.number,
            compute_type=self._device.compute_type,
            cpu_threads=threads_allowed(),
            num_workers=1,
            local_files_only=True,
        )
        return model, Windows(model)

    def _language(self, audio: Samples) -> str | None:
        """Return the likeliest allowed language; None lets Whisper choose among all."""
        if len(self._allowed) < 2:
            return self._allowed[0] if self._allowed else None
        _, _, likely = self._model[0].detect_language(audio=audio, vad_filter=True)
        allowed = [(chance, code) for code, chance in likely if code in self._allowed]
        return max(allowed)[1] if allowed else self._allowed[0]


def _speech(segment: Any, language: str, end_ms: int) -> Speech | None:
    """Convert a segment; None for a repetition loop or without words."""
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
