"""Segments, edges and patches: read as of a clip, revised, and cut where clips are deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Select,
    Text,
    Update,
    and_,
    any_,
    bindparam,
    cast,
    column,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    type_coerce,
    union_all,
    update,
)
from sqlalchemy.orm import Session, aliased

from domain.media import ClipState
from domain.memories import AbsorbedSegment, OpenEdge, OpenSegment
from domain.time import TimeSpan
from store.queries.conditions import has_any_clip, is_any_of, is_any_text
from store.tables.schema import ClipRow, EdgeRow, PatchRow, SegmentRevisionRow, SegmentRow, VideoRow

EDGES = select(
    EdgeRow.id,
    EdgeRow.source_id.label("source"),
    EdgeRow.target_id.label("target"),
    EdgeRow.relation,
    EdgeRow.explicit,
    EdgeRow.confidence,
    EdgeRow.rationale,
    EdgeRow.evidence,
).order_by(EdgeRow.id)
"""The fields of edges by id, in order of id."""

EMPTY: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True)
class PatchAt:
    """A patch as applied after a window, which clips it left uncovered, and who wrote it.

    ``writers`` are ``domain.built.RULES`` or models by name.
    """

    id: int
    at_clip: int
    first_clip: int
    repairs: int
    applied: dict[str, Any]
    dropped: list[Any]
    pending: tuple[int, ...]
    writers: tuple[str, ...] = ()


def patches_of(session: Session, video_id: str) -> list[PatchAt]:
    """Return all patches of a video, in order."""
    query = select(PatchRow).where(PatchRow.video_id == video_id).order_by(PatchRow.at_clip)
    return [_patch(row) for row in session.scalars(query)]


def videos_without_events(session: Session, video_ids: Sequence[str]) -> list[str]:
    """Return those of these videos that have neither segments nor patches, sorted."""
    row = VideoRow
    empty = [~exists().where(one.video_id == row.id) for one in (PatchRow, SegmentRow)]
    query = select(row.id).where(is_any_text(row.id, video_ids), *empty).order_by(row.id)
    return list(session.scalars(query))


def delete_event_graph(session: Session, video_id: str) -> None:
    """Delete the segments of a video with their revisions and edges, and its patches."""
    for table in (SegmentRow, PatchRow):
        session.execute(delete(table).where(table.video_id == video_id))


def last_patch(session: Session, video_id: str) -> PatchAt | None:
    query = select(PatchRow).where(PatchRow.video_id == video_id)
    row = session.scalars(query.order_by(PatchRow.at_clip.desc()).limit(1)).first()
    return _patch(row) if row else None


def _patch(row: PatchRow) -> PatchAt:
    left, writers = tuple(row.pending), tuple(row.writers)
    return PatchAt(
        row.id, row.at_clip, row.first_clip, row.repairs, row.applied, row.dropped, left, writers
    )


def patch_writers(session: Session, video_ids: Sequence[str]) -> tuple[str, ...]:
    """Return who wrote the patches of these videos, each once, in order of the videos."""
    row = PatchRow
    query = select(row.video_id, row.writers).where(is_any_text(row.video_id, video_ids))
    grouped = query.group_by(row.video_id, row.writers).order_by(func.min(row.at_clip))
    known: dict[str, list[str]] = {}
    for video, names in session.execute(grouped):
        known.setdefault(video, []).extend(names)
    return tuple(dict.fromkeys(name for video in video_ids for name in known.get(video, ())))


def save_patch(session: Session, video_id: str, patch: PatchAt) -> None:
    """Store a patch under a new id, replacing the one for the same clip."""
    same_clip = and_(PatchRow.video_id == video_id, PatchRow.at_clip == patch.at_clip)
    session.execute(delete(PatchRow).where(same_clip))
    values = {
        "video_id": video_id,
        "at_clip": patch.at_clip,
        "first_clip": patch.first_clip,
        "repairs": patch.repairs,
        "applied": patch.applied,
        "dropped": patch.dropped,
        "pending": list(patch.pending),
        "writers": list(patch.writers),
    }
    session.execute(insert(PatchRow), [values])


def open_segment(number: int, row: SegmentRevisionRow) -> OpenSegment:
    """Return a stored revision, detached from its session."""
    history = tuple(AbsorbedSegment(**absorbed) for absorbed in row.history)
    return OpenSegment(number, row.revision, row.label, row.summary, tuple(row.clips), history)


def open_segments_near(
    session: Session, video_id: str, *, labels: Collection[str] = (), clips: Collection[int] = ()
) -> dict[int, OpenSegment]:
    """Return the open segments with one of these labels or clips, by id, in order of number."""
    # Each of the two is looked up in its own index before the join: a planner without statistics of
    # fresh tables would otherwise scan all segments of the video.
    wanted = {"labels": sorted(set(labels)), "clips": sorted(set(clips))}
    given = {name: values for name, values in wanted.items() if values}
    if not given:
        return {}
    rows = session.execute(_near_query(tuple(given)), {"video": video_id, **given})
    unique: dict[int, SegmentRevisionRow] = dict(rows.all())
    return {row.segment_id: open_segment(number, row) for number, row in sorted(unique.items())}


@cache
def _near_query(given: tuple[str, ...]) -> Select[int, SegmentRevisionRow]:
    """Return the query for the given conditions."""
    # It is cached, since building it takes longer than running it.
    row, open_now = SegmentRevisionRow, SegmentRevisionRow.to_clip.is_(None)
    labels = bindparam("labels", type_=ARRAY(Text))
    clips = bindparam("clips", type_=ARRAY(BigInteger))
    conditions = {
        "labels": (row.label == any_(cast(labels, ARRAY(Text)))) & open_now,
        "clips": row.clips.bool_op("&&")(cast(clips, ARRAY(BigInteger))) & open_now,
    }
    candidates = union_all(*(select(SegmentRevisionRow).where(conditions[name]) for name in given))
    near = aliased(SegmentRevisionRow, candidates.cte().prefix_with("MATERIALIZED"))
    of_video = and_(SegmentRow.id == near.segment_id, SegmentRow.video_id == bindparam("video"))
    number = select(SegmentRow.number).where(of_video).scalar_subquery()
    # Other videos have the same clips and labels: their rows are filtered in the database.
    return select(number, near).where(number.is_not(None))


def closest_segments(
    session: Session, video_id: str, vector: Sequence[float], limit: int
) -> dict[int, OpenSegment]:
    """Return the open segments closest to ``vector``, by id, closest first."""
    distance = SegmentRevisionRow.embedding.cosine_distance(vector)
    query = (
        select(SegmentRow.number, SegmentRevisionRow)
        .join(SegmentRevisionRow, SegmentRevisionRow.segment_id == SegmentRow.id)
        .where(SegmentRow.video_id == video_id)
        .where(SegmentRevisionRow.to_clip.is_(None), SegmentRevisionRow.embedding.is_not(None))
        .order_by(distance, SegmentRow.number)
        .limit(limit)
    )
    return {row.segment_id: open_segment(number, row) for number, row in session.execute(query)}


def open_edges_of(session: Session, segment_ids: Iterable[int]) -> dict[int, OpenEdge]:
    """Return the open edges that start or end at one of these segments, by id, in order of id."""
    row, ids = EdgeRow, set(segment_ids)
    # Looked up one by one: a join would go through all segments where there are no statistics.
    source, target = (
        select(SegmentRow.number).where(SegmentRow.id == end).scalar_subquery()
        for end in (row.source_id, row.target_id)
    )
    evidence = type_coerce(row.evidence, ARRAY(BigInteger, as_tuple=True))
    touches = or_(is_any_of(row.source_id, ids), is_any_of(row.target_id, ids))
    query = select(row.id, source, target, row.relation, row.explicit, row.confidence)
    query = query.add_columns(row.rationale, evidence).where(touches, row.to_clip.is_(None))
    rows = session.execute(query.order_by(row.id))
    return {edge[0]: OpenEdge(*edge[1:]) for edge in rows}


def segment_ids(session: Session, video_id: str, numbers: Iterable[int]) -> dict[int, int]:
    """Return the ids of these segments of a video, by number."""
    row = SegmentRow
    query = select(row.number, row.id).where(row.video_id == video_id)
    return dict(session.execute(query.where(is_any_of(row.number, numbers))).all())


def next_segment_number(session: Session, video_id: str) -> int:
    query = select(func.max(SegmentRow.number)).where(SegmentRow.video_id == video_id)
    last = session.scalar(query)
    return 0 if last is None else last + 1


def add_segments(session: Session, video_id: str, numbers: Sequence[int]) -> dict[int, int]:
    """Create segments; return their row ids by number."""
    rows = [{"video_id": video_id, "number": number} for number in numbers]
    if not rows:
        return {}
    returning = insert(SegmentRow).returning(SegmentRow.id, sort_by_parameter_order=True)
    return dict(zip(numbers, session.scalars(returning, rows), strict=True))


def add_revisions(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Open revisions from rows of all columns of ``segment_revisions`` but the closing ones."""
    if rows:
        blank = {"to_clip": None, "absorbed_into": None}
        session.execute(insert(SegmentRevisionRow), [blank | row for row in rows])


def close_revisions(
    session: Session, segment_ids: Sequence[int], clip: int, absorbed: Mapping[int, int] = EMPTY
) -> None:
    """Close the open revision of each segment after ``clip``.

    ``absorbed`` maps the ids of segments that were absorbed to those that absorbed them.
    """
    closed = [*segment_ids, *absorbed]
    if closed:
        row = SegmentRevisionRow
        open_revisions = and_(is_any_of(row.segment_id, closed), row.to_clip.is_(None))
        # What ``key`` is paired with, or NULL, in one SQL text for any number of pairs.
        arrays = (
            cast(list(side), ARRAY(BigInteger)) for side in (absorbed.keys(), absorbed.values())
        )
        names = (column("one", BigInteger), column("other", BigInteger))
        table = func.unnest(*arrays).table_valued(*names).render_derived()
        paired_with = select(table.c.other).where(table.c.one == row.segment_id).scalar_subquery()
        values = {"to_clip": clip, "absorbed_into": paired_with}
        _update(session, update(row).where(open_revisions).values(values))


def add_edges(session: Session, video_id: str, clip: int, rows: Sequence[dict[str, Any]]) -> None:
    """Open edges from ``clip`` on."""
    if rows:
        blank = {"video_id": video_id, "from_clip": clip, "to_clip": None}
        session.execute(insert(EdgeRow), [blank | row for row in rows])


def close_edges(session: Session, edge_ids: Sequence[int], clip: int) -> None:
    if edge_ids:
        open_edges = and_(is_any_of(EdgeRow.id, edge_ids), EdgeRow.to_clip.is_(None))
        _update(session, update(EdgeRow).where(open_edges).values(to_clip=clip))


def _update(session: Session, change: Update) -> None:
    """Update rows that the session holds no objects of."""
    session.execute(change, execution_options={"synchronize_session": False})


def clip_spans(session: Session, video_id: str, clips: Iterable[int]) -> dict[int, TimeSpan]:
    query = select(ClipRow.clip, ClipRow.start_ms, ClipRow.end_ms).where(
        ClipRow.video_id == video_id, is_any_of(ClipRow.clip, clips)
    )
    return {clip: TimeSpan.of(start, end) for clip, start, end in session.execute(query)}


def done_spans(
    session: Session, video_id: str, clips: Iterable[int], last_clip: int
) -> dict[int, TimeSpan]:
    done = select(ClipRow.clip).where(
        ClipRow.video_id == video_id,
        # Writers may name any number; the column's type would reject larger ones.
        is_any_of(ClipRow.clip, (clip for clip in clips if clip <= last_clip)),
        ClipRow.state == ClipState.DONE,
    )
    return clip_spans(session, video_id, session.scalars(done))


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
