"""Sound classification by YAMNet (AudioSet's ontology, 521 classes), on the CPU."""

from __future__ import annotations

import threading
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from domain.errors import WeightsMissing
from models.litert import open_interpreter
from models.ports import Samples

MODEL = "yamnet.tflite"
LABELS = "yamnet_label_list.txt"
WINDOW = 15_600
"""Samples that the model takes: 0.975 s at 16 kHz."""
HOP = WINDOW // 2


class YamnetClassifier:
    """Scores of each class in half-overlapping windows.

    Args:
        folder: holds ``yamnet.tflite``, which has the labels in it.
    """

    name = "yamnet"
    window = WINDOW
    hop = HOP

    def __init__(self, folder: Path) -> None:
        self.labels = _labels(folder / MODEL)
        self._interpreter = open_interpreter(folder / MODEL)
        self._input = self._interpreter.get_input_details()[0]["index"]
        self._output = self._interpreter.get_output_details()[0]["index"]
        self._lock = threading.Lock()

    def scores(self, samples: Samples) -> NDArray[np.float32]:
        """Score windows of 16 kHz samples: shape (N, 521), each value in [0, 1].

        The last window ends with the samples; too few samples are followed by silence.
        """
        padded = np.pad(samples, (0, max(0, WINDOW - len(samples)))).astype(np.float32)
        last = len(padded) - WINDOW
        with self._lock:
            return np.stack([self._score(padded[s : s + WINDOW]) for s in window_starts(last)])

    def _score(self, window: Samples) -> NDArray[np.float32]:
        self._interpreter.set_tensor(self._input, window)
        self._interpreter.invoke()
        return np.asarray(self._interpreter.get_tensor(self._output)[0], np.float32)


def window_starts(last: int) -> list[int]:
    """Return where windows start: every half window, and at ``last``."""
    return [*range(0, last, HOP), last]


def _labels(model: Path) -> tuple[str, ...]:
    """Return the labels by number, which are packed behind the model in its file."""
    try:
        with zipfile.ZipFile(model) as packed:
            return tuple(packed.read(LABELS).decode().splitlines())
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise WeightsMissing(f"{model} has no labels: {error}") from error
