"""The one place that makes LiteRT interpreters: on the CPU, quiet, in one thread each."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import WeightsMissing

if TYPE_CHECKING:
    from ai_edge_litert.interpreter import Interpreter

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
