"""Sound classification by YAMNet (AudioSet's ontology, 521 classes), on the CPU."""

from __future__ import annotations

import os
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domain.errors import WeightsMissing
from models.ports import Samples

if TYPE_CHECKING:
    from ai_edge_litert.interpreter import Interpreter


# The one place that makes LiteRT interpreters: on the CPU, quiet, in one thread each.

_NOTE = b"INFO: "
_STDERR = 2
_quieting = threading.Lock()


def open_interpreter(path: Path) -> Interpreter:
    """Open an interpreter of a checked ``.tflite`` file; only one thread at a time may use it.

    Raises:
        WeightsMissing: the file cannot be read as a model.
    """
    # Not every machine has a build of it (``Profile.sound_model``).
    from ai_edge_litert.interpreter import Interpreter

    try:
        with _without_native_notes():
            interpreter = Interpreter(str(path), num_threads=1)
            interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as error:
        raise WeightsMissing(f"{path} cannot be loaded as a model: {error}") from error
    return interpreter


@contextmanager
def _without_native_notes() -> Iterator[None]:
    """Leave out the notes that the C++ code writes to standard error, which no setting turns off.

    What else is written there meanwhile is passed on afterwards.
    """
    with _quieting:
        sys.stderr.flush()
        readable, writable = os.pipe()
        saved = os.dup(_STDERR)
        os.dup2(writable, _STDERR)
        os.close(writable)
        try:
            yield
        finally:
            os.dup2(saved, _STDERR)
            os.close(saved)
            with os.fdopen(readable, "rb") as written:
                lines = [line for line in written if not line.startswith(_NOTE)]
            os.write(_STDERR, b"".join(lines))


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
        # The labels by number are packed behind the model in its file.
        model = folder / MODEL
        try:
            with zipfile.ZipFile(model) as packed:
                self.labels = tuple(packed.read(LABELS).decode().splitlines())
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise WeightsMissing(f"{model} has no labels: {error}") from error
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
            # A window starts every half window, and at the last place.
            scores = list[NDArray[np.float32]]()
            for start in (*range(0, last, HOP), last):
                self._interpreter.set_tensor(self._input, padded[start : start + WINDOW])
                self._interpreter.invoke()
                scored = self._interpreter.get_tensor(self._output)[0]
                scores.append(np.asarray(scored, np.float32))
        return np.stack(scores)
