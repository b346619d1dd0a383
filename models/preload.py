"""Models that will be needed in a moment are loaded while something else is done."""

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
    """In here the toolbox loads these models, in this order, beside what is done.

    Who wants one of them meanwhile waits for it, and for none that comes after it.
    """
    thread = threading.Thread(target=_load, args=(toolbox, names), name="models-ahead")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _load(toolbox: Toolbox, names: Sequence[Name]) -> None:
    """A model that cannot be loaded says so when it is wanted, if ever."""
    with suppress(HomerError, OSError):
        for name in names:
            getattr(toolbox, name)
