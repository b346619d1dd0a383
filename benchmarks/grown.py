"""A library of any number of memories, with vectors as real ones lie: in clusters.

Two thousand sentences are embedded by the profile's own text model. Each memory says one of them,
and its vector is that sentence's, mixed with another's of the same place and with noise: close
vectors are many, as among the lines of one household. A clip stays in one place, an event too.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session

from models.ports import TextEmbedder
from store.database import Store, open_store
from store.driver import HALFVEC, allocate_ids, pack_halfvec
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.big_library import (
    EVENT_CLIPS,
    LINES,
    OF_CLIP,
    Film,
    add_edges,
    add_film,
    add_keyframes,
    add_people,
    clips_of,
    put,
    times,
    who,
)

Vectors = NDArray[np.float32]

DAY = 2_880
"""Clips of 30 s in a day: the most that one video has."""
SENTENCES = 2_000
BESIDE, NOISE = 0.45, 0.5
"""How much a memory's vector has of another sentence's, and of no sentence's."""
PICTURE = "a" * 64

_WORDS = """
carries washes repairs paints counts hides drops lifts cleans sells wraps weighs photographs moves
opens folds borrows measures

red old small broken heavy wooden blue new dusty round

lamp plate bicycle guitar kettle carpet letter ladder camera blanket basket radio mirror hammer
suitcase candle umbrella notebook

kitchen garden garage attic hallway office shop station park library bathroom cellar
"""
_DOES, _HOW, _WHAT, _WHERE = (words.split() for words in _WORDS.strip().split("\n\n"))


def sentences() -> list[str]:
    """Return what is remembered of somebody; neighbours in the list share their place."""
    every = itertools.product(_DOES, _HOW, _WHAT)
    drawn = np.random.default_rng(1).permutation(len(_DOES) * len(_HOW) * len(_WHAT))[:SENTENCES]
    said = list(every)
    each = SENTENCES // len(_WHERE) + 1
    return [
        "{} the {} {} in the ".format(*said[n]) + _WHERE[place // each]
        for place, n in enumerate(drawn.tolist())
    ]


@dataclass(frozen=True, eq=False)
class World:
    """What there is to remember: S sentences and their vectors (S, D), unit length."""

    said: Sequence[str]
    vectors: Vectors

    @cached_property
    def each(self) -> int:
        """Sentences of one place."""
        return len(self.said) // len(_WHERE) + 1

    def drawn(self, recording: Film) -> NDArray[np.int64]:
        """Which sentence each memory of a film says, (clips, LINES): of the place of its event."""
        dice = np.random.default_rng(_seed(recording))
        place = dice.integers(0, len(_WHERE), recording.clips // EVENT_CLIPS + 1)
        of_clip = np.repeat(place, EVENT_CLIPS)[: recording.clips, None] * self.each
        chosen = of_clip + dice.integers(0, self.each, (recording.clips, LINES))
        return np.asarray(np.minimum(chosen, len(self.said) - 1))

    def near(self, chosen: NDArray[np.int64], seed: int) -> Vectors:
        """Unit vectors around those sentences, shape (N, D)."""
        dice = np.random.default_rng(seed)
        own = self.vectors[chosen]
        beside = (chosen // self.each) * self.each + dice.integers(0, self.each, len(chosen))
        other = self.vectors[np.minimum(beside, len(self.said) - 1)]
        noise = dice.standard_normal(own.shape, dtype=np.float32) / np.sqrt(own.shape[1])
        return unit(own + BESIDE * other + np.float32(NOISE) * noise)


def world(model: TextEmbedder) -> World:
    """Return the sentences under a text model; half a minute or less."""
    said = sentences()
    return World(said, unit(model.embed(said)))


def unit(rows: NDArray[Any]) -> Vectors:
    """Return rows of length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def days(memories: int) -> Iterator[Film]:
    """Videos of the same length, a day at most, that have about so many memories together."""
    clips = max(EVENT_CLIPS, memories // LINES)
    count = -(-clips // DAY) if clips > DAY else min(2, clips // EVENT_CLIPS)
    for number in range(count):
        share = clips * (number + 1) // count - clips * number // count
        yield Film(f"{number:016x}", f"day {number}", share)


def short_videos(videos: int, clips: int) -> Iterator[Film]:
    """Yield so many videos, each of so many clips."""
    for number in range(videos):
        yield Film(f"{number:016x}", f"film {number}", clips)


def grow(store: Store, world: World, films: Iterable[Film]) -> list[Film]:
    """Fill a store; one transaction a video, then ``VACUUM ANALYZE``. Returns its videos."""
    videos = list(films)
    for recording in videos:
        with store.begin() as session:
            add_film(session, recording)
            add_keyframes(session, recording, PICTURE)
            add_people(session, recording, PICTURE)
            _events(session, recording, world, _memories(session, recording, world))
    with psycopg.connect(store.psycopg_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return videos


@contextmanager
def scratch_store() -> Iterator[Store]:
    """Yield an empty library in an embedded Postgres of its own; it is thrown away afterwards."""
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ):
        os.environ.pop("HOMER_DATABASE_URL", None)
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store:
                yield store
        finally:
            EmbeddedPostgres(home).stop()


def vectors_of(world: World, recording: Film) -> Vectors:
    """Return the unrounded vectors of a film's memories, in order, shape (clips * LINES, D)."""
    return world.near(world.drawn(recording).ravel(), _seed(recording))


def _memories(session: Session, recording: Film, world: World) -> Vectors:
    vectors, drawn = vectors_of(world, recording), world.drawn(recording).ravel().tolist()
    ids = allocate_ids(session, "memories", len(drawn))
    types = {**OF_CLIP, "id": "int8", "kind": "text", "source": "text", "text": "text"}
    moments = [(c, n, at) for c in range(recording.clips) for n, at in enumerate(times(c, LINES))]
    rows = (
        (recording.id, clip, at, at + 3_000, one, "episodic", "seen",
         _line(world, recording, clip, n, said), pack_halfvec(vector))
        for (clip, n, at), one, said, vector in zip(moments, ids, drawn, vectors, strict=True)
    )  # fmt: skip
    put(session, "memories", types | {"embedding": HALFVEC}, rows)
    _links(session, recording, moments, ids)
    return vectors


def _line(world: World, recording: Film, clip: int, n: int, said: int) -> str:
    return f"<face_{who(recording, clip, n)}> {world.said[said]}"


def _links(
    session: Session, recording: Film, moments: Sequence[tuple[int, int, int]], ids: list[int]
) -> None:
    found = session.execute(
        text("SELECT number, id FROM identities WHERE video_id = :video AND kind = 'face'"),
        {"video": recording.id},
    )
    faces = {int(number): int(one) for number, one in found}
    rows = (
        (one, faces[who(recording, clip, n)])
        for (clip, n, _), one in zip(moments, ids, strict=True)
    )
    put(session, "memory_links", {"memory_id": "int8", "identity_id": "int8"}, rows)


def _events(session: Session, recording: Film, world: World, vectors: Vectors) -> None:
    """Add events: each has the text of its first memory and the mean vector of its memories."""
    count = recording.clips // EVENT_CLIPS
    ids = allocate_ids(session, "segments", count)
    types = {"id": "int8", "video_id": "text", "number": "int4"}
    put(session, "segments", types, ((s, recording.id, n) for n, s in enumerate(ids)))
    whole = vectors[: count * EVENT_CLIPS * LINES]
    means = unit(whole.reshape(count, -1, vectors.shape[1]).mean(1))
    said = world.drawn(recording)
    types = {"segment_id": "int8", "revision": "int4", "label": "text", "summary": "text"}
    types |= {"clips": "int8[]", "history": "jsonb", "from_clip": "int4", "embedding": HALFVEC}
    rows = (
        (s, 0, f"event {n}", f"Somebody {world.said[said[n * EVENT_CLIPS, 0]]}.", clips_of(n), "[]",
         clips_of(n)[-1], pack_halfvec(means[n]))
        for n, s in enumerate(ids)
    )  # fmt: skip
    put(session, "segment_revisions", types, rows)
    add_edges(session, recording, ids)


def _seed(recording: Film) -> int:
    return int(recording.id, 16) + 10
