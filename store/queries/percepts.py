"""Percepts stored as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from domain.media import (
    IdentityKind,
    Percept,
    ScreenText,
    SeenObject,
    Sighting,
    Utterance,
)
from domain.memories import KeyframeDescription
from store.advisory_locks import lock_until_commit, video_key
from store.driver import copy_rows
from store.queries.encoders import require_encoder
from store.queries.memories import Vector
from store.tables.schema import (
    BlobRow,
    ClipRow,
    KeyframeRow,
    ObjectRow,
    ScreenTextRow,
    SightingRow,
    VideoRow,
)

Owners = Mapping[tuple[IdentityKind, int], int]
"""Row id of the identity of each group of a clip, by the group's kind and number."""


def lock_video(session: Session, video_id: str) -> None:
    """Lock a video against writes of other transactions until this one ends."""
    lock_until_commit(session, video_key(video_id))


def clip_state(session: Session, video_id: str, clip: int) -> str | None:
    where = and_(ClipRow.video_id == video_id, ClipRow.clip == clip)
    return session.scalar(select(ClipRow.state).where(where))


def is_unwritten(session: Session, video_id: str, clip: int) -> bool:
    """Check whether a clip is stored with local lines only, since its model failed."""
    where = and_(ClipRow.video_id == video_id, ClipRow.clip == clip, ClipRow.unwritten)
    return session.scalar(select(ClipRow.clip).where(where)) is not None


def add_percept(
    session: Session, video_id: str, percept: Percept, owners: Owners, speakers: Mapping[str, int]
) -> dict[tuple[IdentityKind, int], list[int]]:
    """Store a percept.

    Args:
        owners: The identity row of every group.
        speakers: The identity row of every speaker that the source names.

    Returns:
        The row ids of each group's sightings, in the group's order.
    """
    where = {"video_id": video_id, "clip": percept.clip.index}
    for encoder in {k.image_encoder for k in percept.keyframes if k.image_encoder}:
        require_encoder(session, encoder, images=True)
    keyframes = [
        where
        | k.model_dump(exclude={"vector", "likeness", "image_encoder"})
        | {
            "embedding": None if k.vector is None else list(k.vector),
            "likeness_vector": None if k.likeness is None else list(k.likeness),
        }
        for k in percept.keyframes
    ]
    _insert(session, KeyframeRow, keyframes)
    _insert(session, ScreenTextRow, [where | _on_keyframe(t) for t in percept.screen_texts])
    _insert(session, ObjectRow, [where | _on_keyframe(t) for t in percept.objects])
    place = (video_id, percept.clip.index)
    timed = {
        "speech": percept.utterances,
        "caption": percept.captions,
        "subtitle": percept.subtitles,
        "chapter": percept.chapters,
    }
    texts = [
        (*place, *_utterance(origin, one, owners, speakers))
        for origin, several in timed.items()
        for one in several
    ]
    copy_rows(session, "utterances", _UTTERANCE, texts)
    if percept.gaps:
        pairs = [
            [gap.span.start_ms, gap.span.end_ms, gap.reason.name.lower()] for gap in percept.gaps
        ]
        of_clip = and_(ClipRow.video_id == video_id, ClipRow.clip == percept.clip.index)
        session.execute(update(ClipRow).where(of_clip).values(gaps=pairs))
    groups = [*percept.faces, *percept.voices]
    keys = [(g.kind, g.number) for g in groups for _ in g.sightings]
    rows = [where | _sighting(s, owners[g.kind, g.number]) for g in groups for s in g.sightings]
    if not rows:
        return {}
    returning = insert(SightingRow).returning(SightingRow.id, sort_by_parameter_order=True)
    ids: dict[tuple[IdentityKind, int], list[int]] = {}
    for key, row_id in zip(keys, session.scalars(returning, rows), strict=True):
        ids.setdefault(key, []).append(row_id)
    return ids


def _insert(session: Session, table: type[Any], rows: list[dict[str, Any]]) -> None:
    if rows:
        session.execute(insert(table), rows)


def _on_keyframe(item: ScreenText | SeenObject) -> dict[str, Any]:
    box = item.box
    return item.model_dump() | {"box": [box.x0, box.y0, box.x1, box.y1]}


_UTTERANCE = {
    "video_id": "text",
    "clip": "int4",
    "origin": "text",
    "start_ms": "int8",
    "end_ms": "int8",
    "text": "text",
    "language": "text",
    "confidence": "float8",
    "speaker": "text",
    "identity_id": "int8",
}


def _utterance(
    origin: str, utterance: Utterance, owners: Owners, speakers: Mapping[str, int]
) -> tuple[Any, ...]:
    identity = speakers.get(utterance.speaker or "")
    if identity is None and utterance.voice is not None:
        identity = owners.get((IdentityKind.VOICE, utterance.voice))
    span, speaker = utterance.span, utterance.speaker
    values = (utterance.text, utterance.language, utterance.confidence, speaker, identity)
    return (origin, span.start_ms, span.end_ms, *values)


def _sighting(seen: Sighting, identity_id: int) -> dict[str, Any]:
    box = seen.box
    return {
        "identity_id": identity_id,
        "start_ms": seen.span.start_ms,
        "end_ms": seen.span.end_ms,
        "box": [box.x0, box.y0, box.x1, box.y1] if box else None,
        "score": seen.score,
        "quality": seen.quality,
        "blob": seen.blob,
    }


def describe_keyframes(
    session: Session,
    video_id: str,
    clip: int,
    descriptions: Sequence[KeyframeDescription],
    vectors: Sequence[Vector],
) -> None:
    """Store what keyframes of a clip show, with the vector of each text, shape (D,)."""
    row = KeyframeRow
    for one, vector in zip(descriptions, vectors, strict=True):
        this_frame = and_(row.video_id == video_id, row.clip == clip, row.time_ms == one.time_ms)
        values = {"description": one.text, "description_embedding": list(vector)}
        session.execute(update(row).where(this_frame).values(values))


def add_blobs(session: Session, video_id: str, sizes: Mapping[str, int]) -> None:
    """Record that ``video_id`` uses these blobs (SHA-256 to bytes); existing rows are unchanged."""
    rows = [{"video_id": video_id, "sha256": s, "size": n} for s, n in sorted(sizes.items())]
    if rows:
        session.execute(upsert(BlobRow).on_conflict_do_nothing(), rows)


def title_of(session: Session, video_id: str) -> str:
    return session.scalar(select(VideoRow.title).where(VideoRow.id == video_id)) or ""
