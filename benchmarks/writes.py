"""One clip's memories: a hundred lines with vectors, beside a plain COPY of the same rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import psycopg

from benchmarks.lines import Line, costs, in_turn
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.time import TimeSpan
from store.database import Store, open_store
from store.driver import pack_halfvec
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.memories import add_memories
from tests.support.memory import VIDEO, known_video

ROWS, DIMENSIONS, RUNS = 100, 384, 25
BAR = 2.0
TYPES = ("int8", "text", "int4", "text", "text", "int8", "int8", "text", "text", "bytea")
COPY = (
    "COPY memories (id, video_id, clip, kind, text, start_ms, end_ms, source, speaker, embedding)"
    " FROM STDIN (FORMAT BINARY)"
)
FAR = 10_000_000
"""Ids that no sequence comes to here."""


def lines() -> Iterator[Line]:
    """One line: a transaction of ours beside one of plain COPY, commits included."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store, psycopg.connect(store.psycopg_url) as plain:
                known_video(store, 1)
                yield _line(store, plain)
        finally:
            EmbeddedPostgres(home).stop()


def _line(store: Store, plain: psycopg.Connection) -> Line:
    vectors = np.random.default_rng(0).standard_normal((ROWS, DIMENSIONS)).astype(np.float32)
    ids = count(FAR)
    ours, reference = in_turn(
        lambda: _ours(store, vectors), lambda: _copied(plain, vectors, ids), runs=RUNS
    )
    return costs(f"{ROWS} memories of a clip", ours, reference, "plain COPY", BAR)


def _ours(store: Store, vectors: np.ndarray) -> None:
    drafts = [
        MemoryDraft(
            kind=MemoryKind.EPISODIC,
            text=f"They open door {n}.",
            span=TimeSpan.of(n, n + 1),
            source=MemorySource.SAID,
        )
        for n in range(ROWS)
    ]
    with store.begin() as session:
        add_memories(session, VIDEO, 0, drafts, list(vectors))


def _copied(plain: psycopg.Connection, vectors: np.ndarray, ids: Iterator[int]) -> None:
    with plain.cursor() as cursor, cursor.copy(COPY) as copy:
        copy.set_types(TYPES)
        for n, vector in enumerate(vectors):
            packed, text = pack_halfvec(vector), f"They open door {n}."
            row = (next(ids), VIDEO, 0, "episodic", text, n, n + 1, "said", None, packed)
            copy.write_row(row)
    plain.commit()
