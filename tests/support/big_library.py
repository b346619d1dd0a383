"""A library of many clips, put into the store row by row: what watching it would leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.media import Video
from domain.time import TimeSpan
from store.database import Store
from store.driver import HALFVEC, allocate_ids, copy_rows, pack_halfvec
from store.queries.videos import DONE, add_video, set_video_state
from tests.support.machine import VIDEO

CLIP_MS = 30_000
PEOPLE_EVERY, EVENT_CLIPS, EXEMPLARS = 20, 3, 5
"""One person in so many clips; clips of an event; vectors that a person is known by."""
LINES, SIGHTINGS, FRAMES = 8, 4, 3
"""Of each clip."""
PICTURE = "a" * 64
"""The SHA-256 of every image: nothing is kept under it unless a test does so."""


@dataclass(frozen=True)
class Film:
    """A video to be put in, with this many clips."""

    id: str
    title: str
    clips: int

    @property
    def people(self) -> int:
        """How many there are to be met, each with a face, every second one with a voice."""
        return max(2, self.clips // PEOPLE_EVERY)


def recordings(clips: int, videos: int = 5) -> Iterator[Film]:
    """Videos that have ``clips`` clips together; the first, of the id ``VIDEO``, has most."""
    others = clips // (2 * videos)
    yield Film(VIDEO, "a whole week", clips - others * (videos - 1))
    for number in range(1, videos):
        yield Film(f"{number:016x}", f"day {number}", others)


def fill_library(store: Store, clips: int, videos: int = 5, picture: str = PICTURE) -> None:
    """``clips`` clips in several videos, with people, events, memories and keyframes."""
    with store.begin() as session:
        for recording in recordings(clips, videos):
            add_film(session, recording)
            _memories(session, recording)
            add_keyframes(session, recording, picture)
            add_people(session, recording, picture)
            _events(session, recording)


def add_film(session: Session, recording: Film) -> None:
    length = recording.clips * CLIP_MS
    add_video(
        session,
        Video(id=recording.id, title=recording.title, path=None, duration_ms=length),
        [],
        {},
    )
    set_video_state(session, recording.id, DONE)
    types = {"clip": "int4", "start_ms": "int8", "end_ms": "int8", "state": "text"}
    more = {"attempts": "int4", "gaps": "jsonb", "text": "text"}
    rows = (
        (
            recording.id,
            n,
            n * CLIP_MS,
            (n + 1) * CLIP_MS,
            "done",
            0,
            "[]",
            f"what clip {n} is about",
        )
        for n in range(recording.clips)
    )
    put(session, "clips", {"video_id": "text", **types, **more}, rows)


def put(
    session: Session, table: str, types: Mapping[str, str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Append rows; "[]" stands for an empty list where it is JSON."""
    copy_rows(session, table, types, [tuple(map(_sent, row)) for row in rows])


def _sent(value: Any) -> Any:
    from psycopg.types.json import Jsonb

    return Jsonb([]) if value == "[]" else value


OF_CLIP = {"video_id": "text", "clip": "int4", "start_ms": "int8", "end_ms": "int8"}


def _memories(session: Session, recording: Film) -> None:
    types = {**OF_CLIP, "kind": "text", "source": "text", "speaker": "text", "text": "text"}
    rows = (
        (recording.id, clip, at, at + 3_000, "episodic", "said", None, _line(recording, clip, n))
        for clip in range(recording.clips)
        for n, at in enumerate(times(clip, LINES))
    )
    put(session, "memories", types, rows)


def _line(recording: Film, clip: int, n: int) -> str:
    return f"<face_{who(recording, clip, n)}> opens door {clip} for the time {n} and goes on"


def who(recording: Film, clip: int, n: int) -> int:
    """Who is the ``n``-th to be met in a clip: everybody comes again, far apart."""
    return (clip // 2 + 7 * n) % recording.people


def times(clip: int, count: int) -> Iterator[int]:
    """So many moments of a clip, in ms, evenly apart."""
    return (clip * CLIP_MS + n * (CLIP_MS // count) for n in range(count))


def add_keyframes(session: Session, recording: Film, picture: str) -> None:
    """Three a clip, all of them ``picture``."""
    scores = dict.fromkeys(("sharpness", "entropy", "quality"), "float8")
    types = {"video_id": "text", "clip": "int4", "time_ms": "int8", "shot": "int4", **scores}
    sizes = {"width": "int4", "height": "int4", "blob": "text"}
    rows = (
        (recording.id, clip, at, n, 1.0, 1.0, 1.0, 64, 36, picture)
        for clip in range(recording.clips)
        for n, at in enumerate(times(clip, FRAMES))
    )
    put(session, "keyframes", types | sizes, rows)


def add_people(session: Session, recording: Film, picture: str) -> None:
    """Faces 0, 1, ... and the voice of every second one, each a person with a name now and then."""
    faces, voices = range(recording.people), range(0, recording.people, 2)
    ids = allocate_ids(session, "identities", len(faces) + len(voices))
    kinds = [*(("face", n) for n in faces), *(("voice", n // 2) for n in voices)]
    rows = [
        (i, recording.id, kind, number, 0, character)
        for character, (i, (kind, number)) in enumerate(zip(ids, kinds, strict=True))
    ]
    types = {"id": "int8", "video_id": "text", "kind": "text", "number": "int4"}
    put(session, "identities", {**types, "first_clip": "int4", "character": "int4"}, rows)
    owners = [*faces, *voices]
    types = {"identity_id": "int8", "number": "int4", "from_clip": "int4"}
    put(session, "character_members", types, ((i, n, 0) for i, n in zip(ids, owners, strict=True)))
    named = (
        (recording.id, ids[n], 0, f"Guest {n} of {recording.title}", "said") for n in faces if n % 3
    )
    types = {"video_id": "text", "identity_id": "int8", "from_clip": "int4", "name": "text"}
    put(session, "character_names", types | {"source": "text"}, named)
    _sightings(session, recording, ids[: recording.people], picture)
    _exemplars(session, recording, ids)


def _sightings(session: Session, recording: Film, faces: list[int], picture: str) -> None:
    types = {**OF_CLIP, "identity_id": "int8", "box": "int8[]", "score": "float8"}
    rows = (
        (
            recording.id,
            clip,
            at,
            at + 2_000,
            faces[who(recording, clip, n)],
            [0, 0, 9, 9],
            0.9,
            25.0,
        )
        for clip in range(recording.clips)
        for n, at in enumerate(times(clip, SIGHTINGS))
    )
    put(session, "sightings", types | {"quality": "float8", "blob": "text"}, _with(rows, picture))


def _with(rows: Iterable[tuple[Any, ...]], last: str) -> Iterator[tuple[Any, ...]]:
    return ((*row, last) for row in rows)


def _exemplars(session: Session, recording: Film, ids: list[int]) -> None:
    """Vectors that have something in common, as those of real faces have."""
    types = {**OF_CLIP, "id": "int8", "identity_id": "int8", "score": "float8", "quality": "float8"}
    made = allocate_ids(session, "sightings", EXEMPLARS * len(ids))
    rows = [
        (recording.id, 0, 0, 500, sighting, ids[n // EXEMPLARS], 0.9, 1.0)
        for n, sighting in enumerate(made)
    ]
    put(session, "sightings", types, rows)
    vectors = _vectors(len(ids), 512)
    types = {"identity_id": "int8", "sighting_id": "int8", "quality": "float8", "vector": "bytea"}
    kept = (
        (ids[n // EXEMPLARS], sighting, 1.0, _packed(vectors[n // EXEMPLARS]))
        for n, sighting in enumerate(made)
    )
    put(session, "exemplars", types, kept)


def _vectors(count: int, size: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(7).standard_normal((count, size))
    rows = drawn + 0.35 * np.random.default_rng(8).standard_normal(size)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _packed(vector: NDArray[np.float32]) -> bytes:
    """pgvector's binary ``vector``: its size, two zero bytes, 32-bit floats."""
    return len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f4").tobytes()


def _events(session: Session, recording: Film) -> None:
    """Events of some clips in a row, each before the next, every fifth its cause."""
    ids = allocate_ids(session, "segments", recording.clips // EVENT_CLIPS)
    types = {"id": "int8", "video_id": "text", "number": "int4"}
    put(session, "segments", types, ((s, recording.id, n) for n, s in enumerate(ids)))
    vector = pack_halfvec(np.full(384, 384**-0.5))
    types = {"segment_id": "int8", "revision": "int4", "label": "text", "summary": "text"}
    types |= {"clips": "int8[]", "history": "jsonb", "from_clip": "int4", "embedding": HALFVEC}
    rows = (
        (
            s,
            0,
            f"event {n}",
            f"<face_{n % recording.people}> does {n}.",
            clips_of(n),
            "[]",
            0,
            vector,
        )
        for n, s in enumerate(ids)
    )
    put(session, "segment_revisions", types, rows)
    add_edges(session, recording, ids)


def clips_of(event: int) -> list[int]:
    return list(range(event * EVENT_CLIPS, (event + 1) * EVENT_CLIPS))


def add_edges(session: Session, recording: Film, ids: list[int]) -> None:
    """Each event before the next, every fifth its cause."""
    types = {"video_id": "text", "source_id": "int8", "target_id": "int8", "relation": "text"}
    types |= {"explicit": "bool", "confidence": "float8", "rationale": "text"}
    rows = (
        (
            recording.id,
            a,
            b,
            "before" if n % 5 else "causes",
            True,
            0.9,
            "So.",
            [EVENT_CLIPS * n],
            0,
        )
        for n, (a, b) in enumerate(pairwise(ids))
    )
    put(session, "edges", types | {"evidence": "int8[]", "from_clip": "int4"}, rows)


def span_of(event: int) -> TimeSpan:
    first, last = clips_of(event)[0], clips_of(event)[-1]
    return TimeSpan.of(first * CLIP_MS, (last + 1) * CLIP_MS)
