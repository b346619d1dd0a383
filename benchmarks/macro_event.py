"""``python -m benchmarks macro_event``: what a new macro event of a day-long video costs us.

A day of clips with speech, descriptions, text and people is built clip by clip and stored. Counted
is the processor time of this process, without the text encoder, of each clip that completes a macro
event: cutting the window, its graph, the super events and the root above it, and its rows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from agent.builder import BuildModels
from benchmarks.lines import Line, Taken, costs
from domain.built import BuiltMemory, Change
from models.sentences import SentenceParser
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.builds import StepMade, apply_change
from strategies.memdreamer.builder import hierarchy_builder
from strategies.memdreamer.levels import MACRO
from tests.support.memory import VIDEO, known_video
from tests.support.watched_days import VIDEO as DAY
from tests.support.watched_days import watched_day

CLIPS, LINES, DIMENSIONS = 2_880, 8, 384
"""A day in clips of 30 s, the lines of each that were said or described, and sizes of vectors."""
COMPARED = 24
"""Macro events at the start, after the first super event, and at the end that are compared."""
BAR_MS = 50.0
BUILDER = "memdreamer"


class CountedEncoder:
    """Vectors that are near for texts that begin alike, and the processor time they took."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a unit vector for each text, (N, D)."""
        began = time.process_time()
        rows = [self._vector(text) for text in texts]
        found = np.asarray(rows, dtype=np.float32).reshape(len(texts), DIMENSIONS)
        self.seconds += time.process_time() - began
        return found

    def _vector(self, text: str) -> NDArray[np.float64]:
        total = np.zeros(DIMENSIONS)
        for part in (text[:8], text):
            total += np.random.default_rng(crc32(part.encode())).normal(size=DIMENSIONS)
        return total / np.linalg.norm(total)


def lines() -> Iterator[Line]:
    """The last macro events of a day, beside the bar and beside the first ones."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store:
                known_video(store, CLIPS)
                spent = list(_spent(store))
                first, last = Taken(tuple(spent[:COMPARED])), Taken(tuple(spent[-COMPARED:]))
                what = "CPU of a macro event"
                yield costs(f"{what}, end of a day", last, Taken((BAR_MS,)), "bar", 1.0)
                yield costs(f"{what}, end of a day", last, first, "its start")
        finally:
            EmbeddedPostgres(home).stop()


def _spent(store: Store) -> Iterator[float]:
    """Yield the milliseconds of processor time a macro event, of each clip that completes some."""
    encoder = CountedEncoder()
    models = BuildModels(encoder.embed, SentenceParser(Home.default().weights))
    build = hierarchy_builder().begin(DAY, BuiltMemory(), (), models)
    for clip in watched_day(CLIPS, lines=LINES):
        began, encoded = time.process_time(), encoder.seconds
        change = build.step([clip], ended=clip.clip == CLIPS - 1)
        _store(store, clip.clip, change)
        took = time.process_time() - began - (encoder.seconds - encoded)
        if macros := sum(node.level == MACRO for node in change.nodes):
            yield 1_000 * took / macros


def _store(store: Store, clip: int, change: Change) -> None:
    with store.begin() as session:
        apply_change(session, VIDEO, BUILDER, StepMade(clip, 1, "counted"), change)
