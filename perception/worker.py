"""Perceives a clip in another thread, process or machine.

What is handed over is small both ways: which clip of which file is perceived how, and what was
found, with the few JPEGs that are kept. Frames and sound stay where they are decoded.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from domain import faults
from domain.settings import MemorySettings, WatchSettings
from models.onnx import allow_threads
from perception.clip_view import clip_view
from perception.decode import ClipReader, read_clips
from perception.frame_keeper import sample_frames
from perception.perceive_clip import Perceived, PerceptionModels, perceive
from perception.source import SourceInfo


class ModelRecipes(PerceptionModels, Protocol):
    """Models with a recipe, from which a copy loads its own models."""

    @property
    def recipe(self) -> object:
        """The recipe that the models are loaded by."""


@dataclass(frozen=True)
class Order:
    """One clip to perceive. ``threads`` is how many one model of one worker uses.

    ``memory`` says what a model is shown of the clip, ``sampled_ms`` are the intervals at which
    frames are sampled for keepers.
    """

    path: Path
    info: SourceInfo
    clip: int
    tools: ModelRecipes
    settings: WatchSettings
    threads: int
    memory: MemorySettings = field(default_factory=MemorySettings)
    sampled_ms: tuple[int, ...] = ()


@dataclass(frozen=True)
class Delivery:
    """A percept, the seconds it took, and the worker (host, process and thread)."""

    perceived: Perceived
    seconds: float
    by: str


def carry_out(order: Order) -> Delivery:
    """Perceive one clip with this thread's own models, which are loaded once.

    Raises:
        HomerError: as `decode_and_perceive`.
    """
    allow_threads(order.threads)
    known: ModelRecipes | None = getattr(_here, "tools", None)
    if known is None or known.recipe != order.tools.recipe:
        known = _here.tools = copy(order.tools)
    tools, settings = known, order.settings
    reader, sampled_ms = _reader_of(order), order.sampled_ms
    return decode_and_perceive(reader, order.clip, tools, settings, order.memory, sampled_ms)


def decode_and_perceive(
    reader: ClipReader,
    clip: int,
    tools: PerceptionModels,
    settings: WatchSettings,
    memory: MemorySettings,
    sampled_ms: Collection[int] = (),
) -> Delivery:
    """Decode one clip and perceive it with these models, and sample its frames for keepers.

    Raises:
        MediaError: the file is not there, or no longer what was probed.
        SetupError: a model's weights are not there.
        ModelError: a model failed.
    """
    start = time.monotonic()
    raw = reader.clip(clip)
    faults.fault_point(faults.FaultPoint.DECODED)
    # Before perceiving, which empties the frames.
    sampled = sample_frames(raw, sampled_ms, settings.jpeg_quality)
    view = clip_view(raw, memory, settings)
    found = replace(perceive(raw, tools, settings), view=view, sampled=sampled)
    faults.fault_point(faults.FaultPoint.PERCEIVED)
    me = f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"
    return Delivery(found, time.monotonic() - start, me)


_here: Any = threading.local()
"""This thread's models, and the reader of the file that it was last asked for."""


def _reader_of(order: Order) -> ClipReader:
    known: ClipReader | None = getattr(_here, "reader", None)
    if known is None or known.source != (order.path, order.info, order.settings):
        known = _here.reader = ClipReader(order.path, order.info, order.settings, read_clips)
    return known
