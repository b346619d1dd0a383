"""All rows that a person left in a video: copied, erased, restored.

Copies are rows as JSON text written and read by Postgres, so that nothing changes on the way:
neither ids nor vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    cast,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.orm import Session

from store.queries.blobs import delete_unnamed_blob_rows, drop_recordings
from store.queries.videos import delete_calls, delete_trajectories
from store.tables.schema import (
    Base,
    BlobRow,
    BuildRow,
    CharacterNameRow,
    ClipRow,
    CorrectionRow,
    EdgeRow,
    EntityRow,
    EvalResultRow,
    ExemplarRow,
    FrameRow,
    IdentityRow,
    IdentityStatementRow,
    JudgementRow,
    KeeperRow,
    KeyframeRow,
    MemoryLinkRow,
    MemoryRow,
    MessageRow,
    ModelCallRow,
    NodeRevisionRow,
    NodeRow,
    ObjectRow,
    ObservationRow,
    PatchRow,
    QuestionRow,
    RelationRow,
    ScreenTextRow,
    SegmentRevisionRow,
    SegmentRow,
    SightingRow,
    TrajectoryEventRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    UtteranceRow,
    VideoRow,
)

NEAR_MS = 200
"""A keyframe within this time of a sighting shows the face."""


class Copy(NamedTuple):
    """A copied row: the table's name, and the row as JSON text."""

    table: str
    row: str


class NamedRow(NamedTuple):
    """A row with texts that may name somebody: its table, its key, and the texts by column."""

    table: type[Base]
    key: Mapping[str, Any]
    texts: Mapping[str, Any]


@dataclass(frozen=True)
class Traces:
    """Rows of one person: identities, keyframes, trajectories."""

    video: str
    identities: Sequence[int]
    keyframes: Sequence[int]
    trajectories: Sequence[str]


def traces_of(session: Session, video_id: str, identities: Sequence[int]) -> Traces:
    """Return the traces of these identities; trajectories are all over the video."""
    frame, sighting = KeyframeRow, SightingRow
    in_view = and_(
        sighting.video_id == video_id,
        sighting.identity_id.in_(identities),
        sighting.box.is_not(None),
        frame.time_ms.between(sighting.start_ms - NEAR_MS, sighting.end_ms + NEAR_MS),
    )
    shown = select(frame.id).where(frame.video_id == video_id, exists().where(in_view))
    trajectories = select(TrajectoryVideoRow.trajectory_id).where(
        TrajectoryVideoRow.video_id == video_id
    )
    frames, runs = session.scalars(shown.order_by(frame.id)), session.scalars(trajectories)
    return Traces(video_id, identities, list(frames), sorted(runs))


def copy_table_rows(
    session: Session, table: type[Base], where: ColumnElement[bool]
) -> Iterator[Copy]:
    name = table.__tablename__
    row = cast(func.to_jsonb(literal_column(name)), Text)
    for content in session.scalars(select(row).select_from(table).where(where)):
        yield Copy(name, content)


def copy_traces(session: Session, traces: Traces) -> Iterator[Copy]:
    """Yield a copy of every row that ``erase_traces`` deletes or changes."""
    for table, where in _rows_of(traces):
        yield from copy_table_rows(session, table, where)


def copy_builds(session: Session, video_id: str) -> Iterator[Copy]:
    of_video = select(NodeRow.id).where(NodeRow.video_id == video_id)
    for table in (BuildRow, KeeperRow, FrameRow, NodeRow, EntityRow, RelationRow):
        yield from copy_table_rows(session, table, table.video_id == video_id)
    yield from copy_table_rows(session, NodeRevisionRow, NodeRevisionRow.node_id.in_(of_video))


def _rows_of(traces: Traces) -> Iterator[tuple[type[Base], ColumnElement[bool]]]:
    ids, video = traces.identities, traces.video
    yield IdentityRow, IdentityRow.id.in_(ids)
    yield SightingRow, SightingRow.identity_id.in_(ids)
    yield ExemplarRow, ExemplarRow.identity_id.in_(ids)
    yield MemoryLinkRow, MemoryLinkRow.identity_id.in_(ids)
    yield UtteranceRow, UtteranceRow.identity_id.in_(ids)
    statement = IdentityStatementRow
    yield statement, or_(statement.face_id.in_(ids), statement.voice_id.in_(ids))
    yield CharacterNameRow, CharacterNameRow.identity_id.in_(ids)
    yield KeyframeRow, KeyframeRow.id.in_(traces.keyframes)
    yield ObjectRow, _on_keyframes(traces)
    yield BlobRow, BlobRow.video_id == video
    yield CorrectionRow, CorrectionRow.video_id == video
    runs = traces.trajectories
    questions = select(TrajectoryRow.question_id).where(TrajectoryRow.id.in_(runs))
    yield QuestionRow, QuestionRow.id.in_(questions)
    yield TrajectoryRow, TrajectoryRow.id.in_(runs)
    yield TrajectoryVideoRow, TrajectoryVideoRow.trajectory_id.in_(runs)
    yield TrajectoryEventRow, TrajectoryEventRow.trajectory_id.in_(runs)
    yield JudgementRow, JudgementRow.trajectory_id.in_(runs)
    yield ObservationRow, ObservationRow.trajectory_id.in_(runs)
    yield EvalResultRow, _is_evaluation(traces)
    messages = select(func.unnest(ModelCallRow.messages)).where(_is_call(traces))
    yield MessageRow, MessageRow.hash.in_(messages)
    yield ModelCallRow, _is_call(traces)


def _on_keyframes(traces: Traces) -> ColumnElement[bool]:
    times = select(KeyframeRow.time_ms).where(KeyframeRow.id.in_(traces.keyframes))
    return and_(ObjectRow.video_id == traces.video, ObjectRow.time_ms.in_(times))


def _is_evaluation(traces: Traces) -> ColumnElement[bool]:
    """Return the condition for evaluation results: their questions may name the person."""
    row = EvalResultRow
    return or_(row.video_id == traces.video, row.trajectory_id.in_(traces.trajectories))


def _is_call(traces: Traces) -> ColumnElement[bool]:
    """Return the condition for calls of the video's writers and of its trajectories."""
    call = ModelCallRow
    return or_(call.video_id == traces.video, call.trajectory_id.in_(traces.trajectories))


def erase_traces(session: Session, traces: Traces) -> list[str]:
    """Delete the rows of a person, and the trajectories that may have shown them.

    Returns:
        SHA-256 of the files that no video uses any more.
    """
    session.execute(delete(EvalResultRow).where(_is_evaluation(traces)))
    delete_trajectories(session, traces.video)
    delete_calls(session, _is_call(traces))
    drop_recordings(session, traces.video)
    session.execute(delete(ObjectRow).where(_on_keyframes(traces)))
    session.execute(delete(KeyframeRow).where(KeyframeRow.id.in_(traces.keyframes)))
    session.execute(delete(IdentityRow).where(IdentityRow.id.in_(traces.identities)))
    return delete_unnamed_blob_rows(session, traces.video)


def blobs_of_traces(session: Session, traces: Traces) -> list[str]:
    """Return the files of the person's sightings and keyframes, and of all frames that are kept."""
    sightings = select(SightingRow.blob).where(SightingRow.identity_id.in_(traces.identities))
    keyframes = select(KeyframeRow.blob).where(KeyframeRow.id.in_(traces.keyframes))
    frames = select(FrameRow.blob).where(FrameRow.video_id == traces.video)
    queries = (sightings, keyframes, frames)
    return sorted({sha for query in queries for sha in session.scalars(query) if sha})


def texts_with(session: Session, video_id: str, needles: Sequence[str]) -> Iterator[NamedRow]:
    """Yield rows of a video whose texts may contain one of ``needles``, ignoring case."""
    revisions = SegmentRevisionRow.segment_id.in_(
        select(SegmentRow.id).where(SegmentRow.video_id == video_id)
    )
    own_conditions = {SegmentRevisionRow: revisions, VideoRow: VideoRow.id == video_id}
    columns_by_table: tuple[tuple[type[Base], tuple[str, ...]], ...] = (
        (VideoRow, ("title", "error", "subtitles", "remarks")),
        (ClipRow, ("text", "error", "left_out", "dropped")),
        (KeyframeRow, ("description",)),
        (UtteranceRow, ("text", "speaker")),
        (ScreenTextRow, ("text",)),
        (ObjectRow, ("label",)),
        (IdentityStatementRow, ("reason",)),
        (MemoryRow, ("text", "speaker")),
        (SegmentRevisionRow, ("label", "summary", "history")),
        (EdgeRow, ("rationale",)),
        (PatchRow, ("applied", "dropped")),
    )
    for table, names in columns_by_table:
        columns = [table.__table__.c[name] for name in names]
        of_video = own_conditions.get(table)
        if of_video is None:
            of_video = table.__table__.c.video_id == video_id
        keys = list(table.__table__.primary_key)
        # Postgres's lower case depends on its locale, and JSON escapes quotes: then every row is
        # checked.
        matching: ColumnElement[bool] = true()
        if all(re.fullmatch(r"[\w .'-]*", needle, re.ASCII) for needle in needles):
            texts = [func.lower(cast(column, Text)) for column in columns]
            matching = or_(
                *(
                    lowered.contains(needle.lower(), autoescape=True)
                    for lowered in texts
                    for needle in needles
                )
            )
        query = select(*keys, *columns).where(of_video, matching)
        for row in session.execute(query).all():
            key = {column.name: value for column, value in zip(keys, row, strict=False)}
            yield NamedRow(table, key, dict(zip(names, row[len(keys) :], strict=True)))


def row_condition(row: NamedRow) -> ColumnElement[bool]:
    return and_(*(row.table.__table__.c[name] == value for name, value in row.key.items()))


def update_row(session: Session, row: NamedRow, values: Mapping[str, Any]) -> None:
    session.execute(update(row.table).where(row_condition(row)).values(dict(values)))


def memory_vectors(session: Session, video_id: str, clip: int) -> list[Any]:
    """Return the vectors of a clip's memories, shape (D,) each."""
    row = MemoryRow
    query = select(row.embedding).where(row.video_id == video_id, row.clip == clip)
    return [v for v in session.scalars(query.order_by(row.id)) if v is not None]


def clip_of_row(session: Session, row: NamedRow) -> int:
    """Return the clip of a row of a table whose rows belong to one clip each."""
    return int(session.scalars(select(row.table.__table__.c.clip).where(row_condition(row))).one())


def summary_of(session: Session, revision: int) -> tuple[str, str]:
    row = session.get_one(SegmentRevisionRow, revision)
    return row.label, row.summary


def restore_rows(session: Session, copied: Sequence[Copy]) -> None:
    """Restore rows as they were when they were first copied, overwriting existing ones."""
    names = [table.name for table in Base.metadata.sorted_tables]
    order = {name: position for position, name in enumerate(names)}
    # The first copy is inserted last, so that it remains.
    latest_first = copied[::-1]
    for copy in sorted(latest_first, key=lambda row: order.get(row.table, len(names))):
        table = Base.metadata.tables[copy.table]
        columns = [f'"{column.name}"' for column in table.columns if column.computed is None]
        keys = [f'"{column.name}"' for column in table.primary_key]
        unchanged = {*keys, '"path"'}  # The path of a video's file is only valid in this library.
        changed = [f"{column} = EXCLUDED.{column}" for column in columns if column not in unchanged]
        action = f"UPDATE SET {', '.join(changed)}" if changed else "NOTHING"
        listed = ", ".join(columns)
        source = f"jsonb_populate_record(NULL::{copy.table}, CAST(:row AS jsonb))"
        session.execute(
            text(
                f"INSERT INTO {copy.table} ({listed}) SELECT {listed} FROM {source} "
                f"ON CONFLICT ({', '.join(keys)}) DO {action}"
            ),
            {"row": copy.row},
        )
