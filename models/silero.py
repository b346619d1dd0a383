"""Voice activity by Silero, which comes with faster-whisper."""

from __future__ import annotations

import numpy as np

from models.native_runtime import make_idle_threads_sleep
from models.ports import Samples

SAMPLE_HZ = 16_000
SPEECH = 0.35
"""Chance of speech from which it begins. At Silero's own 0.5 much is lost of what is said at some
way from the microphone (`homer eval perception` measures it)."""
SHORTEST_SPEECH_MS = 250
SHORTEST_PAUSE_MS = 300
PAD_MS = 200
"""Added on either side: words begin and end more softly than Silero notices."""


class SileroActivity:
    """Voice activity detection by Silero."""

    name = "silero"

    def spans(self, samples: Samples, chance: float = SPEECH) -> list[tuple[int, int]]:
        """Return spans of speech in 16 kHz ``samples``, in milliseconds, in order, disjoint.

        ``chance`` is that of speech from which it begins.
        """
        make_idle_threads_sleep()
        # After that: OpenMP reads the environment when it is loaded.
        from faster_whisper.vad import VadOptions, get_speech_timestamps

        if not len(samples):
            return []
        options = VadOptions(
            threshold=chance,
            min_speech_duration_ms=SHORTEST_SPEECH_MS,
            min_silence_duration_ms=SHORTEST_PAUSE_MS,
            speech_pad_ms=PAD_MS,
        )
        found = get_speech_timestamps(np.ascontiguousarray(samples, np.float32), options)
        return [(_ms(span["start"]), _ms(span["end"])) for span in found]


def _ms(sample: int) -> int:
    return sample * 1000 // SAMPLE_HZ
