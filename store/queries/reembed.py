"""Rows whose vector another encoder made: counted, read in batches, and given new vectors.

Every statement takes ``:encoder``, the encoder that they are to have, and ``:video``. Pictures that
have no vector yet are among them; every text has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

from sqlalchemy import TextClause, text, update
from sqlalchemy.orm import Session

from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.time import TimeSpan
from store.tables.schema import (
    LOOKED_AT,
    ClipRow,
    FrameRow,
    KeyframeRow,
    MemoryRow,
    SegmentRevisionRow,
)

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
