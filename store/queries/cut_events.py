"""Deletion of clips from the event graph: what is removed, cut, and to be rewritten."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from store.queries.cut_clips import has_any_clip
from store.tables.schema import EdgeRow, PatchRow, SegmentRevisionRow, SegmentRow

CUT_RATIONALE = "Part of what this rested on was deleted."
"""The rationale of an edge whose original one was deleted."""


class CutRevision(NamedTuple):
    """A segment revision to be rewritten: its row, its segment, its remaining clips.

    ``number`` is the segment's; ``from_clip`` the clip after which the revision is valid.
    """

    row: int
    segment: int
    number: int
    clips: tuple[int, ...]
    from_clip: int


def cut_segments(
    session: Session, video_id: str, clips: Collection[int]
) -> tuple[set[int], list[CutRevision]]:
    """Delete revisions of these clips alone, and remove the clips from the others.

    Returns:
        The segments that held any of the clips, by id, and the revisions to be rewritten.
    """
    row = SegmentRevisionRow
    query = select(row, SegmentRow.number).join(SegmentRow, SegmentRow.id == row.segment_id)
    query = query.where(SegmentRow.video_id == video_id, has_any_clip(row.clips, clips))
    touched: set[int] = set()
    remaining: list[CutRevision] = []
    for revision, number in session.execute(query.order_by(SegmentRow.number, row.revision)):
        touched.add(revision.segment_id)
        clips_left = tuple(clip for clip in revision.clips if clip not in clips)
        if clips_left:
            remaining.append(
                CutRevision(
                    revision.id, revision.segment_id, number, clips_left, revision.from_clip
                )
            )
            revision.clips, revision.history = list(clips_left), []
        else:
            session.delete(revision)
    session.flush()
    # Delete segments without revisions, with their edges; start others' edges when they start.
    row, edge = SegmentRevisionRow, EdgeRow
    begins = select(row.segment_id, func.min(row.from_clip)).where(row.segment_id.in_(touched))
    first: dict[int, int] = dict(session.execute(begins.group_by(row.segment_id)).all())
    session.execute(delete(SegmentRow).where(SegmentRow.id.in_(set(touched) - first.keys())))
    for segment, clip in first.items():
        ends = or_(edge.source_id == segment, edge.target_id == segment)
        session.execute(delete(edge).where(ends, edge.to_clip <= clip))
        session.execute(update(edge).where(ends, edge.from_clip < clip).values(from_clip=clip))
    return touched, remaining


def revisions_of_clips(session: Session, video_id: str, clips: Collection[int]) -> set[int]:
    row = SegmentRevisionRow
    query = select(row.id).join(SegmentRow, SegmentRow.id == row.segment_id)
    return set(
        session.scalars(
            query.where(SegmentRow.video_id == video_id, has_any_clip(row.clips, clips))
        )
    )


def cut_edges(session: Session, video_id: str, clips: Collection[int]) -> set[int]:
    """Delete edges that rest on these clips alone; remove the clips from the others.

    Returns:
        The segments at their ends.
    """
    row = EdgeRow
    ends: set[int] = set()
    query = select(row).where(row.video_id == video_id, has_any_clip(row.evidence, clips))
    for edge in session.scalars(query):
        ends |= {edge.source_id, edge.target_id}
        clips_left = [clip for clip in edge.evidence if clip not in clips]
        if clips_left:
            edge.evidence, edge.rationale = clips_left, CUT_RATIONALE
        else:
            session.delete(edge)
    session.flush()
    return ends


def load_cut_revision(session: Session, row_id: int) -> CutRevision:
    row = SegmentRevisionRow
    query = select(row.segment_id, SegmentRow.number, row.clips, row.from_clip)
    query = query.join(SegmentRow, SegmentRow.id == row.segment_id).where(row.id == row_id)
    segment, number, clips, from_clip = session.execute(query).one()
    return CutRevision(row_id, segment, number, tuple(clips), from_clip)


def labels_of_other_segments(session: Session, video_id: str, segment: int) -> set[str]:
    row = SegmentRevisionRow
    query = select(row.label).join(SegmentRow, SegmentRow.id == row.segment_id)
    others = and_(SegmentRow.video_id == video_id, row.segment_id != segment)
    return set(session.scalars(query.where(others)))


def rewrite_revision(
    session: Session, revision: int, label: str, summary: str, vector: Sequence[float]
) -> None:
    """Replace the label, summary and vector of a revision."""
    made = {"embedding": list(vector), "next_embedding": None}
    values = {"label": label, "summary": summary, "history": [], **made}
    row = SegmentRevisionRow
    session.execute(update(row).where(row.id == revision).values(values))


def rewrite_patches(session: Session, video_id: str, clips: Collection[int]) -> None:
    """Rewrite patches that may quote these clips from the current graph.

    What their writers proposed is dropped: call it once the graph is final.
    """
    query = select(PatchRow).where(PatchRow.video_id == video_id, PatchRow.at_clip >= min(clips))
    for patch in session.scalars(query):
        row = SegmentRevisionRow
        revisions = select(row.label, row.summary, row.clips)
        revisions = revisions.join(SegmentRow, SegmentRow.id == row.segment_id)
        revisions = revisions.where(SegmentRow.video_id == video_id, row.from_clip == patch.at_clip)
        steps = [
            {
                "segments": [
                    {"label": label, "summary": summary, "clips": list(clips), "extends": None}
                    for label, summary, clips in session.execute(
                        revisions.order_by(SegmentRow.number)
                    )
                ],
                "edges": [],
            }
        ]
        unsettled = [c for c in patch.applied["unsettled"] if c not in clips]
        patch.applied = {"steps": steps, "unsettled": unsettled}
        patch.dropped = []
        patch.pending = [clip for clip in patch.pending if clip not in clips]
    session.flush()
