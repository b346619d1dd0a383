"""Which text encoders made the vectors of a video's rows.

A row with a vector names its encoder. It is the text model on record for its video
(``videos.models``), or one of ``videos.encoders``, which names all others that its rows may have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString

import numpy as np
from numpy.typing import NDArray
from psycopg.sql import SQL, Composable, Composed, Literal
from sqlalchemy import all_, func, literal, or_, text, update
from sqlalchemy.orm import Session

from domain.memories import Scope
from store.queries.conditions import text_array
from store.queries.view_conditions import Reader, reading_driver
from store.tables.schema import VideoRow

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
