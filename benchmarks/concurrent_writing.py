"""Clips written by a language model two at a time, beside one after the other."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.grown import scratch_store
from benchmarks.lines import Line, faster, in_turn
from domain.memories import ClipMemories
from flows import clip_memory
from flows.watching import SilentListener, watch_files
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import ClipContext, Writers
from people.characters import ClipPeople
from perception import perceive_clip
from perception.perceive_clip import Perceived
from store.database import Store
from tests.integration.test_concurrent_writing import Model, scene, workspace_of
from tests.support.media import make_video
from tests.support.memory import SETTINGS

CLIPS, CALL_S = 12, 2.0
BAR = 1.8


class Slow(Model):
    """A model that takes two seconds a clip."""

    def write(self, percept: Any, people: ClipPeople, context: ClipContext) -> ClipMemories:
        """Waits as for a server, and then writes."""
        time.sleep(CALL_S)
        made: ClipMemories = super().write(percept, people, context)
        return made


def lines() -> Iterator[Line]:
    """One line: a film of twelve clips, what is perceived of it given."""
    with (
        tempfile.TemporaryDirectory() as folder,
        scratch_store() as one_store,
        scratch_store() as store,
    ):
        recording = make_video(Path(folder) / "talk.mp4", seconds=2.0 * CLIPS, audio=None)
        two, one = in_turn(
            lambda: _watched(store, recording, 2), lambda: _watched(one_store, recording, 1), runs=1
        )
        yield faster("clips written by a model of 2 s", two, one, "one at a time", BAR)


def _watched(store: Store, recording: Path, at_once: int) -> None:
    """Watch the recording.

    Raises:
        RuntimeError: it could not be watched.
    """
    writers = Writers(Slow(), LocalEventWriter(SETTINGS.memory))
    with (
        patch.object(clip_memory, "make_writers", lambda *_: writers),
        patch.object(perceive_clip, "perceive", _seen),
    ):
        (output,) = watch_files(
            workspace_of(store, store.home, at_once), [recording], SilentListener(), direct=True
        )
    if output.error:
        raise RuntimeError(output.error)


def _seen(raw: Any, *_: object) -> Perceived:
    found = scene(raw.clip.index)
    return Perceived(found.model_copy(update={"clip": raw.clip}), {})
