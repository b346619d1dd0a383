"""Loading models in the background before they are needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

# What the models are made with: importing does not let other threads go on, and two threads that
# import packages of one circle may see halves of them. So no thread of ``preloading`` imports it.
import onnxruntime  # noqa: F401

import models.reranker
import models.text_embedding  # noqa: F401
from domain.errors import HomerError
from models.toolbox import Toolbox

Name = Literal["text", "reranker"]


@contextmanager
def preloading(toolbox: Toolbox, names: Sequence[Name]) -> Iterator[None]:
    """Load these models of the toolbox in a thread, in this order, while the body runs.

    Using one of them meanwhile waits for it, and for none that comes after it.
    """
    thread = threading.Thread(target=_load, args=(toolbox, names), name="models-ahead")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _load(toolbox: Toolbox, names: Sequence[Name]) -> None:
    """Load models; one that cannot be loaded raises when it is used, if ever."""
    with suppress(HomerError, OSError):
        for name in names:
            getattr(toolbox, name)
