"""The encoders whose vectors a library has: one of texts, one of images."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from domain.errors import InputError
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.time import TimeSpan
from store.queries.conditions import Reader, reading_driver
from store.tables.schema import (
    LOOKED_AT,
    FrameRow,
    KeyframeRow,
    LibraryRow,
    MemoryRow,
    SegmentRevisionRow,
)


def vector_literal(vector: NDArray[np.floating]) -> str:
    """Return the text form of a vector (D,) that pgvector parses."""
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


MOST_NAME = 300
"""Characters of an encoder's name, in what comes from elsewhere."""


class LibraryEncoders(NamedTuple):
    """The names of the encoders that made a library's vectors; None: it has no such vector."""

    text: str | None
    images: str | None

    @classmethod
    def parse(cls, names: Any) -> LibraryEncoders:
        """Return what a file says of the encoders of its vectors.

        Raises:
            ValueError: these are no names.
        """
        text, images = names
        for name in (text, images):
            if name is not None and (not isinstance(name, str) or len(name) > MOST_NAME):
                raise ValueError("a name of an encoder that is none")
        return cls(text, images)


def encoders_of_library(database: Reader) -> LibraryEncoders:
    row = reading_driver(database).execute("SELECT text_encoder, image_encoder FROM library")
    return LibraryEncoders(*row.fetchall()[0])


_HAS_TEXTS = "SELECT EXISTS (SELECT FROM memories WHERE embedding IS NOT NULL)"
_HAS_IMAGES = """
    SELECT EXISTS (SELECT FROM keyframes WHERE embedding IS NOT NULL)
        OR EXISTS (SELECT FROM frames AS f JOIN library AS l ON f.image_encoder = l.image_encoder)
"""


def is_of_library(database: Reader, encoder: str, *, images: bool = False) -> bool:
    """Tell whether a library has vectors of this encoder, or of none: all may have been deleted."""
    if encoders_of_library(database)[images] in (None, encoder):
        return True
    statement = _HAS_IMAGES if images else _HAS_TEXTS
    return not reading_driver(database).execute(statement).fetchall()[0][0]


def check_encoder(database: Reader, encoder: str, *, images: bool = False) -> None:
    """Check that vectors of an encoder may be added to a library.

    Raises:
        InputError: it has vectors of another one.
    """
    if not is_of_library(database, encoder, images=images):
        raise InputError(
            f"this library has vectors of {encoders_of_library(database)[images]}, not of "
            f"{encoder}: take a profile with that model, or change the library to this one's "
            "with 'homer reembed'"
        )


def require_encoder(session: Session, encoder: str, *, images: bool = False) -> None:
    """Check the same for vectors that are stored then; the first ones set the encoder.

    The library is not changed over to another one until the transaction ends.

    Raises:
        InputError: it has vectors of another one.
    """
    column = LibraryRow.image_encoder if images else LibraryRow.text_encoder
    known = select(column)
    # Read without a lock first: two that share one would wait for each other to change the row.
    if session.scalar(known) == encoder == session.scalar(known.with_for_update(read=True)):
        return
    session.execute(select(LibraryRow.id).with_for_update())
    check_encoder(session, encoder, images=images)
    session.execute(update(LibraryRow).values({column: encoder}))


def require_encoders(session: Session, encoders: LibraryEncoders) -> None:
    """Check that vectors that come from elsewhere are of the library's encoders.

    Raises:
        InputError: they are of others.
    """
    for name, images in zip(encoders, (False, True), strict=True):
        if name is not None:
            require_encoder(session, name, images=images)


# Changing a library to other encoders: another one gives every row a vector beside the one it has
# (``next_embedding``), and when all have one, the library is changed over in one transaction.
#
# Rows that have no vector beside theirs yet are counted, and read in batches. Pictures that have no
# vector at all are among them; every text has one.

_MEMORY_LEFT: LiteralString = "m.embedding IS NOT NULL AND (:anew OR m.next_embedding IS NULL)"
_FRAME_LEFT: LiteralString = (
    "k.description_embedding IS NOT NULL AND (:anew OR k.next_description_embedding IS NULL)"
)
_REVISION_LEFT: LiteralString = "r.embedding IS NOT NULL AND (:anew OR r.next_embedding IS NULL)"

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
            WHERE k.video_id = :video AND clip > :after AND {_FRAME_LEFT}) AS row
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
    FROM memories WHERE embedding IS NOT NULL ORDER BY md5(text), id LIMIT :limit
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
        WHERE video_id = :video AND shot <> {LOOKED_AT} AND CASE :left
            WHEN 'all' THEN true WHEN 'new' THEN embedding IS NULL ELSE next_embedding IS NULL END
    UNION ALL SELECT '{KEPT}', id, blob FROM frames
        WHERE video_id = :video AND CASE :left WHEN 'all' THEN true
            WHEN 'new' THEN image_encoder IS DISTINCT FROM (SELECT image_encoder FROM library)
            ELSE next_embedding IS NULL END
"""
_COUNT_PICTURES = text(f"SELECT count(*) FROM ({_PICTURES_LEFT}) AS picture")
_PICTURES = text(f"""
    SELECT kind, id, blob FROM ({_PICTURES_LEFT}) AS picture
    WHERE (kind, id) > (:after_kind, :after) ORDER BY kind, id LIMIT :limit
""")


class RowsLeft(NamedTuple):
    """How many rows have no vector of the next encoder, and the characters of their texts."""

    rows: int
    characters: int


class Line(NamedTuple):
    """A memory, with the draft it was before it was stored, as far as its vector depends on it."""

    id: int
    clip: int
    draft: MemoryDraft


def _line(row: int, clip: int, words: str, speaker: str | None) -> Line:
    span, kind = TimeSpan.of(0, 0), MemoryKind.EPISODIC
    draft = MemoryDraft(kind=kind, text=words, span=span, source=MemorySource.SAID, speaker=speaker)
    return Line(row, clip, draft)


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


def is_changed_to(session: Session, encoder: str, *, images: bool) -> bool:
    """Tell whether a change of the library to an encoder is under way, or was interrupted."""
    column = LibraryRow.next_image_encoder if images else LibraryRow.next_text_encoder
    return bool(session.scalar(select(column)) == encoder)


def begin_change(session: Session, encoder: str, *, images: bool) -> None:
    """Begin to change the library to an encoder; vectors of another change are dropped."""
    if is_changed_to(session, encoder, images=images):
        return
    if images:
        session.execute(update(LibraryRow).values(next_image_encoder=encoder))
        # Of the library's own encoder, only pictures without a vector get one.
        for statement in (
            """UPDATE keyframes SET next_embedding =
               CASE WHEN image_encoder = next_image_encoder THEN embedding END FROM library""",
            """UPDATE frames AS f SET next_embedding =
               CASE WHEN f.image_encoder = next_image_encoder THEN embedding END FROM library""",
        ):
            session.execute(text(statement))
        return
    session.execute(update(LibraryRow).values(next_text_encoder=encoder))
    session.execute(text("UPDATE memories SET next_embedding = NULL"))
    session.execute(text("UPDATE keyframes SET next_description_embedding = NULL"))
    session.execute(text("UPDATE segment_revisions SET next_embedding = NULL"))


_CHANGE_TEXTS = (
    """UPDATE memories SET embedding = next_embedding, next_embedding = NULL
       WHERE embedding IS NOT NULL""",
    """UPDATE keyframes SET description_embedding = next_description_embedding,
       next_description_embedding = NULL WHERE description_embedding IS NOT NULL""",
    """UPDATE segment_revisions SET embedding = next_embedding, next_embedding = NULL
       WHERE embedding IS NOT NULL""",
    # A clip's is the mean direction of its memories.
    """UPDATE clips AS c SET embedding = (
           SELECT l2_normalize(avg(m.embedding::vector))::halfvec FROM memories AS m
           WHERE m.video_id = c.video_id AND m.clip = c.clip AND m.embedding IS NOT NULL)
       WHERE c.embedding IS NOT NULL""",
    "UPDATE library SET text_encoder = next_text_encoder, next_text_encoder = NULL",
)
_CHANGE_PICTURES = (
    # A picture that cannot be read any more has no vector of the encoder.
    f"""UPDATE keyframes SET embedding = next_embedding, next_embedding = NULL
        WHERE shot <> {LOOKED_AT}""",
    """UPDATE frames SET embedding = next_embedding, next_embedding = NULL,
       image_encoder = CASE WHEN next_embedding IS NULL THEN NULL ELSE next_image_encoder END
       FROM library""",
    "UPDATE library SET image_encoder = next_image_encoder, next_image_encoder = NULL",
)


def change_over(session: Session, *, images: bool) -> None:
    """Make the vectors beside the library's own ones its own.

    Call ``lock_encoders`` before. Rows without such a vector are left without any.
    """
    for statement in _CHANGE_PICTURES if images else _CHANGE_TEXTS:
        session.execute(text(statement))


def lock_encoders(session: Session) -> None:
    """Keep others from storing vectors until the transaction ends."""
    # Whoever stores vectors calls ``require_encoder`` before it changes any row: the two would wait
    # for each other otherwise.
    session.execute(select(LibraryRow.id).with_for_update())


_TEXTS_LEFT = text(f"""
    SELECT EXISTS (SELECT FROM memories AS m WHERE {_MEMORY_LEFT})
        OR EXISTS (SELECT FROM keyframes AS k WHERE {_FRAME_LEFT})
        OR EXISTS (SELECT FROM segment_revisions AS r WHERE {_REVISION_LEFT})
""")
_ALL_PICTURES_LEFT = text(f"""
    SELECT '{KEYFRAME}', id, blob FROM keyframes
        WHERE shot <> {LOOKED_AT} AND next_embedding IS NULL
    UNION ALL SELECT '{KEPT}', id, blob FROM frames WHERE next_embedding IS NULL LIMIT :limit
""")


def is_anything_left(
    session: Session, unreadable: Collection[StoredPicture], *, images: bool
) -> bool:
    """Tell whether any text, or any picture besides these, has no vector of the next encoder."""
    if not images:
        return bool(session.execute(_TEXTS_LEFT, {"anew": False}).scalar_one())
    found = session.execute(_ALL_PICTURES_LEFT, {"limit": len(unreadable) + 1})
    return bool({StoredPicture._make(row) for row in found} - set(unreadable))


def rows_left(session: Session, video_id: str, *, anew: bool = False) -> RowsLeft:
    """Count the texts of a video without a vector of the next encoder; ``anew``: all texts."""
    return RowsLeft._make(_run(session, _COUNT, video_id, anew=anew)[0])


def clips_left(
    session: Session, video_id: str, after: int, limit: int, *, anew: bool = False
) -> list[int]:
    """Return the next clips after ``after`` with texts that are left."""
    rows = _run(session, _CLIPS, video_id, anew=anew, after=after, limit=limit)
    return [clip for (clip,) in rows]


def lines_of(session: Session, video_id: str, clips: Sequence[int]) -> list[Line]:
    """Return all memories of clips, by id."""
    rows = session.execute(_MEMORIES, {"video": video_id, "clips": list(clips)})
    return [_line(*row) for row in rows]


def descriptions_of(
    session: Session, video_id: str, clips: Sequence[int]
) -> list[tuple[int, int, str]]:
    """Return id, clip and description of the described keyframes of clips, by id."""
    rows = session.execute(_FRAMES, {"video": video_id, "clips": list(clips)})
    return [(frame, clip, said) for frame, clip, said in rows]


def revisions_left(
    session: Session, video_id: str, after: int, limit: int, *, anew: bool = False
) -> list[Revision]:
    """Return the next revisions of segments after id ``after`` that are left."""
    rows = _run(session, _REVISIONS, video_id, anew=anew, after=after, limit=limit)
    return [Revision._make(row) for row in rows]


def some_lines(session: Session, limit: int) -> list[tuple[str, Line, list[float]]]:
    """Return videos, lines of distinct texts and their vectors, (D,), from all over the library."""
    rows = session.execute(_SOME_LINES, {"limit": limit})
    return [(video, _line(*line), vector) for video, vector, *line in rows]


def pictures_left(
    session: Session, video_id: str, after: StoredPicture | None, limit: int
) -> list[StoredPicture]:
    """Return the next pictures after ``after`` without a vector of the next image encoder.

    Those that a question looked at have no vectors: they are not searched.
    """
    after_kind, after_id = (after.kind, after.id) if after else ("", 0)
    values = {"after_kind": after_kind, "after": after_id, "limit": limit}
    rows = _run(session, _PICTURES, video_id, left="", **values)
    return [StoredPicture._make(row) for row in rows]


def count_pictures_left(session: Session, video_id: str, left: str = "") -> int:
    """Count the pictures without a vector of the next image encoder.

    ``left`` "all": all pictures; "new": those without a vector of the library's own.
    """
    return int(_run(session, _COUNT_PICTURES, video_id, left=left)[0][0])


def _run(session: Session, statement: Any, video_id: str, **values: Any) -> Sequence[Any]:
    return session.execute(statement, {"video": video_id, **values}).all()


Vectors = Mapping[int, Sequence[float]]


def set_next_vectors(session: Session, of: str, vectors: Vectors) -> None:
    """Set the vectors, (D,) each, beside those of rows by id.

    Args:
        of: "memory", "description" or "revision", ``KEYFRAME`` or ``KEPT``.
    """
    table, column = _NEXT[of]
    rows = [{"id": row, column: vector} for row, vector in vectors.items()]
    if rows:
        session.execute(update(table), rows)


_NEXT: dict[str, tuple[type[Any], str]] = {
    "memory": (MemoryRow, "next_embedding"),
    "description": (KeyframeRow, "next_description_embedding"),
    "revision": (SegmentRevisionRow, "next_embedding"),
    KEYFRAME: (KeyframeRow, "next_embedding"),
    KEPT: (FrameRow, "next_embedding"),
}
