"""Speech recognition by Whisper on CTranslate2 (faster-whisper), int8 on the CPU by default.

Deterministic: one temperature (0, so nothing is sampled), a fixed number of beams, and no text
carried over from one window to the next.
"""

from __future__ import annotations

import math
import re
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
from models.whisper_windows import Windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from faster_whisper import WhisperModel

BEAM = 5
SHORTEST_S = 0.2
SPOKEN = 0.5
"""Chance of speech from which words are looked for: with a lower one, they are found in music."""
REPEATED = 3
"""Words that come so often in a row were said so often, or the decoder loops."""
_LONGEST_REPEATED = 30
_LEAST_WORD_S, _MOST_WORDS_A_SECOND = 0.04, 8.0
_LEAST_LOUDNESS = 0.05
"""Of a word, as a part of the loudest twentieth of the sound: less is the noise of a room."""
_UNSURE = -1.0
"""Whisper's own bar for a decoding that is not to be believed, as a log-probability."""
_FRAME_S = 0.02


class WhisperRecognizer:
    """Whisper with word times. Only spans in which Silero detects speech are transcribed.

    Args:
        name: how the model is called in the store.
        folder: the CTranslate2 model's folder.
        languages: languages to choose among (ISO 639-1); empty: all that the model knows.
        known: all that the model knows; empty: not told.

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
        """Transcribe 16 kHz mono ``samples``; return an empty list if nobody speaks.

        A loop of the decoder is cut down to what was said, and speech without text stands for
        the rest.
        """
        if len(samples) < SHORTEST_S * SAMPLE_HZ:
            return []
        audio = np.ascontiguousarray(samples, np.float32)
        if not SileroActivity().spans(audio, SPOKEN):
            # Whisper cannot guess the language of silence.
            return []
        with self._lock:
            segments, language = self._decoded(audio, BEAM)
            unsaid = find_loops(_words_of(segments), audio)
            if unsaid:
                # Another decoding seldom falls into the same loop; of what was really said so
                # often, both tell the same.
                others, _ = self._decoded(audio, 1)
                less = find_loops(_words_of(others), audio)
                if sum(map(len, less)) < sum(map(len, unsaid)):
                    segments, unsaid = others, less
        return speech_of(segments, unsaid, language, len(samples) / SAMPLE_HZ)

    def _decoded(self, audio: Samples, beams: int) -> tuple[list[Any], str]:
        model, windows = self._model
        windows.reset()
        segments, info = model.transcribe(
            audio,
            language=self._language(audio),
            beam_size=beams,
            temperature=0.0,
            condition_on_previous_text=False,
            word_timestamps=True,
            vad_filter=True,
            vad_parameters={"threshold": SPOKEN},
        )
        return list(segments), info.language

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


def _words_of(segments: Sequence[Any]) -> list[Any]:
    return [word for segment in segments for word in segment.words or ()]


_BREATH_WORDS = 3
"""More words than these are no breath: if they are unsure, it is said that they were not heard."""


def find_loops(words: Sequence[Any], audio: Samples) -> list[range]:
    """Find the words that are repeated more often than the sound has them.

    Args:
        words: in order, each with ``start`` and ``end`` in seconds and its text, ``word``.
        audio: 16 kHz mono sound that they were recognised in.

    Returns:
        The words of each loop from its first repetition on that was not spoken: one of its words
        takes no time, is spoken too fast, or is not to be heard.
    """
    texts = [re.sub(r"\W", "", word.word).casefold() for word in words]
    frame = int(_FRAME_S * SAMPLE_HZ)
    whole = audio[: len(audio) // frame * frame].reshape(-1, frame).astype(np.float64)
    power = np.square(whole).mean(axis=1)
    least = _LEAST_LOUDNESS**2 * np.quantile(power, 0.95)
    loops, at = list[range](), 0
    while at < len(words):
        size, end = _repetition(texts, at)
        begins, spoken = range(at, end, size), list[bool]()
        for begin in begins:
            repetition = words[begin : min(begin + size, end)]
            seconds = float(repetition[-1].end - repetition[0].start)
            spoken.append(
                len(repetition) <= _MOST_WORDS_A_SECOND * seconds
                and all(
                    word.end - word.start >= _LEAST_WORD_S
                    and power[int(word.start / _FRAME_S) : int(word.end / _FRAME_S) + 1].max(
                        initial=0
                    )
                    >= least
                    for word in repetition
                )
            )
        # One word of a chant may be misplaced; of a loop, most of what follows is.
        loops += [
            range(begin, end)
            for n, begin in enumerate(begins)
            if not spoken[n] and 2 * sum(spoken[n:]) < len(spoken) - n
        ][:1]
        at = max(end, at + 1)
    return loops


def _repetition(texts: Sequence[str], at: int) -> tuple[int, int]:
    """Return how many words are repeated from ``at`` on, and where that ends; ``at`` if none."""
    best = (1, at)
    for size in range(1, min(_LONGEST_REPEATED, (len(texts) - at) // REPEATED) + 1):
        end = at + size
        while end < len(texts) and texts[end] == texts[end - size]:
            end += 1
        if end - at >= REPEATED * size and end > best[1]:
            best = (size, end)
    return best


def speech_of(
    segments: Sequence[Any], unsaid: Sequence[range], language: str, end_s: float
) -> list[Speech]:
    """Convert segments of faster-whisper, without loops and last words that are invented.

    Args:
        unsaid: the words of loops, counted over all segments.
        language: of the recording (ISO 639-1).
        end_s: the length of the recording in seconds.
    """

    def timed(start: float, end: float, text: str) -> Word:
        start_ms, end_ms = (round(1000 * min(max(0.0, at), end_s)) for at in (start, end))
        return Word(start_ms, end_ms, text)

    words = _words_of(segments)
    left_out = {number for loop in unsaid for number in loop}
    speech, number, last = list[Speech](), 0, segments[-1].seek if segments else 0
    lost = [(words[loop[0]].start, words[loop[-1]].end) for loop in unsaid]
    unsure = [0 < s.seek == last and s.avg_logprob < _UNSURE for s in segments]
    ending = next((s for s, no in zip(reversed(segments), unsure[::-1], strict=True) if not no), 0)
    for segment, is_unsure in zip(segments, unsure, strict=True):
        kept = []
        for word in segment.words or ():
            if number not in left_out:
                kept.append(timed(word.start, word.end, word.word))
            number += 1
        # Of the breath after the last sentence, decoded by itself, "Thank you" is made.
        if is_unsure:
            if len(kept) > _BREATH_WORDS:
                lost.append((segment.words[0].start, segment.words[-1].end))
            continue
        while segment is ending and kept and kept[-1].end_ms <= kept[-1].start_ms:
            kept.pop()
        if any(word.text.strip() for word in kept):
            confidence = min(1.0, math.exp(segment.avg_logprob))
            speech.append(Speech(tuple(kept), language, confidence))
    speech += [Speech((timed(start, end, ""),), language, 0.0) for start, end in lost]
    return sorted(speech, key=lambda one: one.words[0].start_ms)
