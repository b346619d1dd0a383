"""Which text encoders made the vectors of a video's rows.

A row with a vector names its encoder. It is the text model on record for its video
(``videos.models``), or one of ``videos.encoders``, which names all others that its rows may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Composable, Composed, Literal
from sqlalchemy import TextClause, all_, func, literal, or_, text, update
from sqlalchemy.orm import Session

from domain.memories import MemoryDraft, MemoryKind, MemorySource, Scope
from domain.time import TimeSpan
from store.queries.conditions import Reader, reading_driver, text_array
from store.tables.schema import (
    LOOKED_AT,
    ClipRow,
    FrameRow,
    KeyframeRow,
    MemoryRow,
    SegmentRevisionRow,
    VideoRow,
)

MANY = 1_000
"""In a view of more videos, the encoders of the whole library are looked at first."""
_OF_LIBRARY = "SELECT DISTINCT models->>'text', encoders FROM videos"
_IN_VIEW = """
    SELECT DISTINCT models->>'text', encoders
    FROM unnest(%s::text[]) AS view (id) JOIN videos USING (id)
"""


def encoders_in_view(database: Reader, scopes: Sequence[Scope]) -> list[str]:
    """Return the names of the encoders that rows in view may have, sorted."""
    driver = reading_driver(database)
    if len(scopes) > MANY and len(rows := driver.execute(_OF_LIBRARY).fetchall()) == 1:
        ((own, others),) = rows
        if own and not others:
            return [own]
    videos = text_array([scope.video for scope in scopes])
    rows = driver.execute(_IN_VIEW, (videos,), prepare=False).fetchall()
    return sorted({name for own, others in rows for name in (own, *(others or ())) if name})


@dataclass(frozen=True)
class QueryPart:
    """One encoder's numbers within the vector of a query: ``size`` of them from ``start``.

    A row's cosine is ``offset + factor * cosine``, on the scale that all encoders of a search
    share.
    """

    encoder: str
    start: int
    size: int
    factor: float = 1.0
    offset: float = 0.0

    @property
    def place(self) -> slice:
        """Where the numbers are."""
        return slice(self.start, self.start + self.size)


def part_of_encoder(
    database: Reader, scopes: Sequence[Scope], encoder: str, size: int
) -> QueryPart | None:
    """Return the part of a search by one encoder alone; None: all rows in view are its.

    Args:
        database: A connection or session.
        encoder: Whose rows are searched.
    """
    found = encoders_in_view(database, scopes)
    return None if found == [encoder] else QueryPart(encoder, 0, size)


@dataclass(frozen=True)
class QueryParts:
    """The encoders of a search in a view whose rows have several.

    The vector of a query has the numbers of all ``parts`` after each other, and length 1. A row is
    compared with those of its own encoder. Rows of other encoders cannot be compared: their cosine
    is ``rest``, that of unrelated texts.
    """

    parts: tuple[QueryPart, ...]
    rest: float

    def __iter__(self) -> Iterator[QueryPart]:
        """Yield the parts, in the order of their numbers."""
        return iter(self.parts)

    def part_of(self, encoder: str) -> QueryPart | None:
        """Return the part of a row's encoder; None if it is not of this search."""
        return next((part for part in self.parts if part.encoder == encoder), None)


def by_encoder(
    parts: QueryParts | None, vectors: NDArray[np.float32]
) -> Iterator[tuple[QueryPart | None, NDArray[np.float32]]]:
    """Yield each encoder of a search with its numbers of queries' vectors (Q, D)."""
    if parts is None:
        yield None, vectors
        return
    for part in parts:
        yield part, vectors[:, part.place]


def made_by_part(part: QueryPart, row: LiteralString) -> Composed:
    """Return the SQL condition that an encoder made the vector of a row.

    Args:
        row: The column with the name of the row's encoder.
    """
    # Statements are run with parameters: a per cent sign must not look like one.
    name = Literal(part.encoder.replace("%", "%%"))
    return SQL("{} = {}").format(SQL(row), name)


def made_by_none(parts: QueryParts, row: LiteralString) -> Composed:
    """Return the SQL condition that none of these encoders made the vector of a row."""
    conditions = [made_by_part(part, row) for part in parts]
    return SQL("NOT coalesce({}, false)").format(SQL(" OR ").join(conditions))


def cosine_of(
    vector: NDArray[np.floating],
    parts: QueryParts | None,
    row: LiteralString,
    embedding: LiteralString,
) -> Composed:
    """Return the SQL expression of a row's cosine with a query, on the scale of the search.

    Args:
        vector: The query's, (D,), with the numbers of all encoders.
        parts: The encoders; None: one.
        row: The column with the name of the row's encoder.
        embedding: The column with its vector.
    """
    if parts is None:
        return _case(SQL("true"), vector, 1.0, 0.0, embedding, 0.0)
    cosine = SQL("{}").format(parts.rest)
    for part in parts:
        condition = made_by_part(part, row)
        numbers = vector[part.place]
        cosine = _case(condition, numbers, part.factor, part.offset, embedding, cosine)
    return cosine


def _case(
    condition: Composable,
    vector: NDArray[np.floating],
    factor: float,
    offset: float,
    embedding: LiteralString,
    otherwise: Composable | float,
) -> Composed:
    return SQL(
        "CASE WHEN {condition} AND vector_dims({embedding}) = {size}"
        " THEN {offset} + {factor} * (1 - ({embedding} <=> {vector}::halfvec))"
        " ELSE {otherwise} END"
    ).format(
        condition=condition,
        embedding=SQL(embedding),
        size=Literal(len(vector)),
        offset=Literal(offset),
        factor=Literal(factor),
        vector=Literal(vector_literal(vector)),
        otherwise=otherwise,
    )


def vector_literal(vector: NDArray[np.floating]) -> str:
    """Return the text form of a vector (D,) that pgvector parses."""
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


TEXT, IMAGES = "text", "images"
"""Ports of ``videos.models`` whose models make vectors."""


def record_encoder(session: Session, video_id: str, encoder: str) -> None:
    """Record that rows of a video may have vectors of an encoder.

    Call it in the transaction that stores them, which holds the video's lock.
    """
    is_other = VideoRow.models["text"].astext.is_distinct_from(encoder)
    unnamed = or_(VideoRow.encoders.is_(None), literal(encoder) != all_(VideoRow.encoders))
    values = {"encoders": func.array_append(VideoRow.encoders, encoder)}
    session.execute(
        update(VideoRow).where(VideoRow.id == video_id, is_other, unnamed).values(values)
    )


def settle_encoder(session: Session, video_id: str, encoder: str) -> None:
    """Record that an encoder made all vectors of a video's texts.

    The transaction holds the video's lock, and no row has a vector of another.
    """
    models = VideoRow.models.concat({TEXT: encoder})
    values = {"models": models, "encoders": None}
    session.execute(update(VideoRow).where(VideoRow.id == video_id).values(values))


def settle_image_encoder(session: Session, video_id: str, encoder: str) -> None:
    """Record that an encoder made the vectors of all of a video's pictures that can be read.

    The transaction holds the video's lock.
    """
    models = VideoRow.models.concat({IMAGES: encoder})
    session.execute(update(VideoRow).where(VideoRow.id == video_id).values(models=models))


_ENCODERS_OF_ROWS = """
    SELECT array_agg(DISTINCT name) FROM (
        SELECT encoder AS name FROM memories WHERE video_id = :video
        UNION ALL SELECT description_encoder FROM keyframes WHERE video_id = :video
        UNION ALL SELECT r.encoder FROM segment_revisions AS r
            JOIN segments AS s ON s.id = r.segment_id WHERE s.video_id = :video) AS used
    WHERE name IS NOT NULL
"""


def recount_encoders(session: Session, video_id: str) -> None:
    """Record the encoders of a video's rows anew, after rows were restored."""
    for encoder in session.scalar(text(_ENCODERS_OF_ROWS), {"video": video_id}) or ():
        record_encoder(session, video_id, encoder)


# Rows whose vector another encoder made: counted, read in batches, and given new vectors.
#
# Every statement takes ``:encoder``, the encoder that they are to have, and ``:video``. Pictures
# that have no vector yet are among them; every text has one.

_LEFT: LiteralString = "{} <> :encoder AND {} IS NOT NULL"
_MEMORY_LEFT = _LEFT.format("m.encoder", "m.embedding")
_FRAME_LEFT = _LEFT.format("k.description_encoder", "k.description_embedding")
_CLIP_LEFT = _LEFT.format("c.encoder", "c.embedding")
_REVISION_LEFT = _LEFT.format("r.encoder", "r.embedding")

_COUNT = text(f"""
    SELECT count(*), coalesce(sum(length(words)), 0) FROM (
        SELECT concat(speaker, text) AS words FROM memories AS m
            WHERE m.video_id = :video AND {_MEMORY_LEFT}
        UNION ALL SELECT description FROM keyframes AS k
            WHERE k.video_id = :video AND {_FRAME_LEFT}
        UNION ALL SELECT concat(label, summary) FROM segment_revisions AS r
            JOIN segments AS s ON s.id = r.segment_id
            WHERE s.video_id = :video AND {_REVISION_LEFT}) AS row
""")
_CLIPS = text(f"""
    SELECT clip FROM (
        SELECT clip FROM memories AS m
            WHERE m.video_id = :video AND clip > :after AND {_MEMORY_LEFT}
        UNION SELECT clip FROM keyframes AS k
            WHERE k.video_id = :video AND clip > :after AND {_FRAME_LEFT}
        UNION SELECT clip FROM clips AS c
            WHERE c.video_id = :video AND clip > :after AND {_CLIP_LEFT}) AS row
    ORDER BY clip LIMIT :limit
""")
_MEMORIES = text("""
    SELECT id, clip, text, speaker FROM memories
    WHERE video_id = :video AND clip = ANY(:clips) AND embedding IS NOT NULL ORDER BY id
""")
_FRAMES = text("""
    SELECT id, clip, description FROM keyframes
    WHERE video_id = :video AND clip = ANY(:clips) AND description_embedding IS NOT NULL
    ORDER BY id
""")
_SOME_LINES = text("""
    SELECT DISTINCT ON (md5(text)) video_id, embedding::real[], id, clip, text, speaker
    FROM memories WHERE encoder = :encoder AND embedding IS NOT NULL
    ORDER BY md5(text), id LIMIT :limit
""")
_REVISIONS = text(f"""
    SELECT r.id, r.label, r.summary FROM segment_revisions AS r
    JOIN segments AS s ON s.id = r.segment_id
    WHERE s.video_id = :video AND r.id > :after AND {_REVISION_LEFT} ORDER BY r.id LIMIT :limit
""")


KEYFRAME, KEPT = "k", "f"
"""Kinds of pictures, as in their refs."""
_PICTURES_LEFT = f"""
    SELECT '{KEYFRAME}' AS kind, id, blob FROM keyframes
        WHERE video_id = :video AND shot <> {LOOKED_AT}
            AND image_encoder IS DISTINCT FROM CAST(:encoder AS text)
    UNION ALL SELECT '{KEPT}', id, blob FROM frames
        WHERE video_id = :video AND image_encoder IS DISTINCT FROM CAST(:encoder AS text)
"""
_COUNT_PICTURES = text(f"SELECT count(*) FROM ({_PICTURES_LEFT}) AS picture")
_PICTURES = text(f"""
    SELECT kind, id, blob FROM ({_PICTURES_LEFT}) AS picture
    WHERE (kind, id) > (:after_kind, :after) ORDER BY kind, id LIMIT :limit
""")


class RowsLeft(NamedTuple):
    """How many rows have a vector of another encoder, and the characters of their texts."""

    rows: int
    characters: int


class Line(NamedTuple):
    """A memory, by what is embedded of it."""

    id: int
    clip: int
    text: str
    speaker: str | None

    @property
    def draft(self) -> MemoryDraft:
        """The memory as it was before it was stored, as far as its vector depends on it."""
        return MemoryDraft(
            kind=MemoryKind.EPISODIC,
            text=self.text,
            span=TimeSpan.of(0, 0),
            source=MemorySource.SAID,
            speaker=self.speaker,
        )


class Description(NamedTuple):
    """A keyframe with what it shows, in words."""

    id: int
    clip: int
    text: str


class Revision(NamedTuple):
    """A revision of a segment."""

    id: int
    label: str
    summary: str

    @property
    def embedded(self) -> str:
        """The text that its vector is computed from."""
        return f"{self.label}. {self.summary}"


class StoredPicture(NamedTuple):
    """A keyframe or a kept frame; ``blob`` is the SHA-256 of its JPEG."""

    kind: str
    id: int
    blob: str


def rows_left(session: Session, video_id: str, encoder: str) -> RowsLeft:
    """Count the rows of a video whose vector another encoder made."""
    return RowsLeft._make(_run(session, _COUNT, video_id, encoder)[0])


def clips_left(session: Session, video_id: str, encoder: str, after: int, limit: int) -> list[int]:
    """Return the next clips after ``after`` with a vector that another encoder made."""
    rows = _run(session, _CLIPS, video_id, encoder, after=after, limit=limit)
    return [clip for (clip,) in rows]


def lines_of(session: Session, video_id: str, clips: Sequence[int]) -> list[Line]:
    """Return all memories of clips, by id."""
    rows = session.execute(_MEMORIES, {"video": video_id, "clips": list(clips)})
    return [Line(*row) for row in rows]


def descriptions_of(session: Session, video_id: str, clips: Sequence[int]) -> list[Description]:
    """Return the described keyframes of clips, by id."""
    rows = session.execute(_FRAMES, {"video": video_id, "clips": list(clips)})
    return [Description(*row) for row in rows]


def revisions_left(
    session: Session, video_id: str, encoder: str, after: int, limit: int
) -> list[Revision]:
    """Return the next revisions after id ``after`` with a vector that another encoder made."""
    rows = _run(session, _REVISIONS, video_id, encoder, after=after, limit=limit)
    return [Revision(*row) for row in rows]


def some_lines(session: Session, encoder: str, limit: int) -> list[tuple[str, Line, list[float]]]:
    """Return videos, lines of distinct texts and their vectors, (D,), from all over the library."""
    rows = session.execute(_SOME_LINES, {"encoder": encoder, "limit": limit})
    return [(video, Line(*line), vector) for video, vector, *line in rows]


def pictures_left(
    session: Session, video_id: str, encoder: str, after: StoredPicture | None, limit: int
) -> list[StoredPicture]:
    """Return the next pictures after ``after`` without a vector of an image encoder.

    Those that a question looked at have no vectors: they are not searched.
    """
    names = {"after_kind": after.kind if after else "", "after": after.id if after else 0}
    values = {"video": video_id, "encoder": encoder, "limit": limit, **names}
    return [StoredPicture(*row) for row in session.execute(_PICTURES, values)]


def count_pictures_left(session: Session, video_id: str, encoder: str) -> int:
    """Count the pictures of a video without a vector of an image encoder."""
    values = {"video": video_id, "encoder": encoder}
    return int(session.execute(_COUNT_PICTURES, values).scalar_one())


def set_picture_vectors(
    session: Session, vectors: Mapping[StoredPicture, Sequence[float]], encoder: str
) -> None:
    """Replace the image vectors of pictures, (D,) each."""
    for table, kind in ((KeyframeRow, KEYFRAME), (FrameRow, KEPT)):
        rows = [
            {"id": picture.id, "embedding": vector, "image_encoder": encoder}
            for picture, vector in vectors.items()
            if picture.kind == kind
        ]
        if rows:
            session.execute(update(table), rows)


def _run(
    session: Session, statement: TextClause, video_id: str, encoder: str, **values: int
) -> Sequence[Any]:
    names = {"video": video_id, "encoder": encoder}
    return session.execute(statement, names | values).all()


Vectors = Mapping[int, Sequence[float]]


def set_line_vectors(session: Session, vectors: Vectors, encoder: str) -> None:
    """Replace the vectors of memories by id, (D,) each."""
    rows = [{"id": row, "embedding": v, "encoder": encoder} for row, v in vectors.items()]
    if rows:
        session.execute(update(MemoryRow), rows)


def set_description_vectors(session: Session, vectors: Vectors, encoder: str) -> None:
    """Replace the vectors of keyframes' descriptions by id, (D,) each."""
    rows = [
        {"id": row, "description_embedding": v, "description_encoder": encoder}
        for row, v in vectors.items()
    ]
    if rows:
        session.execute(update(KeyframeRow), rows)


def set_revision_vectors(session: Session, vectors: Vectors, encoder: str) -> None:
    """Replace the vectors of segments' revisions by id, (D,) each."""
    rows = [{"id": row, "embedding": v, "encoder": encoder} for row, v in vectors.items()]
    if rows:
        session.execute(update(SegmentRevisionRow), rows)


def set_clip_vectors(
    session: Session, video_id: str, vectors: Mapping[int, Sequence[float] | None], encoder: str
) -> None:
    """Replace the vectors that sum up clips, (D,) each; None: the clip has no memory."""
    rows = [
        {"video_id": video_id, "clip": clip, "embedding": v, "encoder": encoder if v else None}
        for clip, v in vectors.items()
    ]
    if rows:
        session.execute(update(ClipRow), rows)
