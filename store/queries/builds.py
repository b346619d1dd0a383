"""What strategies built of a video: how far, and deletion of what rests on some clips."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from store.tables.schema import (
    BuildRow,
    EntityRow,
    FrameRow,
    NodeRevisionRow,
    NodeRow,
    RelationRow,
)


def cut_builds(session: Session, video_id: str, clips: Collection[int]) -> None:
    """Delete what was built from the first of these clips on, and the frames of these clips.

    What was built before stays as it was then; the rest can be built again from what is left.
    Frames of other clips stay: a stream cannot be seen twice.
    """
    frame = FrameRow
    session.execute(delete(frame).where(frame.video_id == video_id, frame.clip.in_(clips)))
    first = min(clips)
    relation, entity, node, revision = RelationRow, EntityRow, NodeRow, NodeRevisionRow
    of_video = select(node.id).where(node.video_id == video_id)
    for table, own in (
        (relation, relation.video_id == video_id),
        (revision, revision.node_id.in_(of_video)),
    ):
        session.execute(delete(table).where(own, table.from_clip >= first))
        session.execute(update(table).where(own, table.to_clip >= first).values(to_clip=None))
    session.execute(delete(entity).where(entity.video_id == video_id, entity.from_clip >= first))
    with_revision = select(revision.node_id).where(revision.node_id == node.id).exists()
    session.execute(delete(node).where(node.video_id == video_id, ~with_revision))
    build = BuildRow
    later = (build.video_id == video_id, build.through_clip >= first)
    session.execute(update(build).where(*later).values(through_clip=first - 1))


def delete_builds(session: Session, video_id: str) -> None:
    """Delete everything that was built of a video."""
    for table in (RelationRow, EntityRow, NodeRow, FrameRow, BuildRow):
        session.execute(delete(table).where(table.video_id == video_id))
