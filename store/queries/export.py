"""All rows of one video and of the answers about it, exported and inserted again.

The tables of a video follow from their foreign keys; only where answers begin is named here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from psycopg.sql import SQL, Identifier
from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    and_,
    cast,
    func,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.orm import Session, aliased

from store.driver import driver_of
from store.queries.forget import Copy
from store.tables.library import GrantRow, SharedLinkRow
from store.tables.schema import (
    AlertClipRow,
    AlertHitRow,
    AlertRow,
    Base,
    CorrectionRow,
    JudgementRow,
    MessageRow,
    ModelCallRow,
    ObservationRow,
    QuestionRow,
    SkillRow,
    TrajectoryRow,
    TrajectoryVideoRow,
    VideoRow,
)

TABLES = Base.metadata.tables
IDENTITY_TABLES = {
    name for name, table in TABLES.items() if "id" in table.c and table.c.id.identity
}
"""Tables with an identity column."""
OWN_TO_LIBRARY = {
    *(AlertRow.__tablename__, AlertClipRow.__tablename__, AlertHitRow.__tablename__),
    *(SharedLinkRow.__tablename__, GrantRow.__tablename__),
}
"""Tables that are not exported with a video: a library's own alerts, links and rights."""
EXPERIENCE = {JudgementRow.__tablename__, ObservationRow.__tablename__, SkillRow.__tablename__}
"""Tables of what a library learns from: neither exported with a video nor ever imported."""
WHO_ASKED = TrajectoryRow.viewer.key
"""The column of trajectories that is not exported, nor accepted: it names a user."""
_OF_ANOTHER = re.compile(" of video [0-9a-f]{16}")


def exported_tables() -> list[str]:
    """Return the tables that hold rows of a video, referenced tables first."""
    conditions = conditions_of_video("")
    return [table.name for table in Base.metadata.sorted_tables if table.name in conditions]


def rows_of_video(session: Session, video: str) -> Iterator[Copy]:
    """Yield every row of a video and of the trajectories over it alone, in insertion order.

    Corrections that join its people with those of other videos do not name these.
    """
    conditions = conditions_of_video(video)
    for name in exported_tables():
        table = TABLES[name]
        row = cast(func.to_jsonb(literal_column(name)).op("-")(WHO_ASKED), Text)
        query = select(row).select_from(table).where(conditions[name])
        query = query.order_by(*table.primary_key).execution_options(yield_per=500)
        for content in session.scalars(query):
            if name == CorrectionRow.__tablename__:
                content = _OF_ANOTHER.sub(" of another video", content)
            yield Copy(name, content)


def _trajectories_of(video: str) -> Select[str]:
    """Select the trajectories whose view has this video and no other."""
    searched, other = TrajectoryVideoRow, aliased(TrajectoryVideoRow)
    others = select(other.video_id).where(other.trajectory_id == searched.trajectory_id)
    alone = ~others.where(other.video_id != video).exists()
    return select(searched.trajectory_id).where(searched.video_id == video, alone)


def conditions_of_video(video: str) -> dict[str, ColumnElement[bool]]:
    """Return what selects the rows of a video in each table that has some, and of its answers."""
    trajectories = _trajectories_of(video)
    by_writers = and_(ModelCallRow.video_id == video, ModelCallRow.trajectory_id.is_(None))
    of_call = or_(by_writers, ModelCallRow.trajectory_id.in_(trajectories))
    questions = select(TrajectoryRow.question_id).where(TrajectoryRow.id.in_(trajectories))
    messages = select(func.unnest(ModelCallRow.messages)).where(of_call)
    conditions: dict[str, ColumnElement[bool]] = {
        VideoRow.__tablename__: VideoRow.id == video,
        QuestionRow.__tablename__: QuestionRow.id.in_(questions),
        TrajectoryRow.__tablename__: TrajectoryRow.id.in_(trajectories),
        MessageRow.__tablename__: MessageRow.hash.in_(messages),
        ModelCallRow.__tablename__: of_call,
    }
    for table in Base.metadata.sorted_tables:
        if table.name in OWN_TO_LIBRARY | EXPERIENCE:
            continue
        parents = {key.column.table.name for key in table.foreign_keys}
        if parents and parents <= conditions.keys() and table.name not in conditions:
            if "trajectory_id" in table.c:
                conditions[table.name] = table.c.trajectory_id.in_(_trajectories_of(video))
            elif "video_id" in table.c:
                conditions[table.name] = table.c.video_id == video
            else:
                key = next(key for key in table.foreign_keys if not key.parent.nullable)
                parent = select(key.column).where(conditions[key.column.table.name])
                conditions[table.name] = key.parent.in_(parent)
    return conditions


def known_columns(name: str) -> frozenset[str]:
    """Return the columns that rows of a table may have; none for an unknown table."""
    if name not in exported_tables():
        return frozenset()
    return frozenset(column.name for column in TABLES[name].columns) - {WHO_ASKED}


def any_id_exists(session: Session, name: str, ids: Iterable[int]) -> bool:
    """Check whether a table has a row with one of these ids."""
    query = f"SELECT EXISTS (SELECT FROM {TABLES[name].name} WHERE id = ANY(:ids))"
    return bool(session.scalar(text(query), {"ids": list(ids)}))


def known_trajectories(session: Session, ids: Iterable[str]) -> set[str]:
    """Return those of these trajectories that are in the library."""
    query = select(TrajectoryRow.id).where(TrajectoryRow.id.in_(list(ids)))
    return set(session.scalars(query))


def continue_ids_after(session: Session, name: str, last: int) -> None:
    """Continue the ids of a table after ``last`` and after all ids given so far."""
    query = """
        SELECT setval(place, greatest(:last, coalesce(pg_sequence_last_value(place), 0)))
        FROM (SELECT pg_get_serial_sequence(:name, 'id')::regclass AS place) AS one
    """
    session.execute(text(query), {"name": name, "last": last})


def insert_json_rows(
    session: Session, name: str, columns: Sequence[str], rows: Sequence[str]
) -> None:
    """Insert rows given as JSON; messages that exist already are skipped."""
    listed = SQL(", ").join(map(Identifier, columns))
    query = SQL(_ADD).format(Identifier(name), listed)
    if name == MessageRow.__tablename__:
        query += SQL(" ON CONFLICT DO NOTHING")
    driver_of(session.connection()).execute(query, [f"[{','.join(rows)}]"])


_ADD = "INSERT INTO {0} ({1}) SELECT {1} FROM jsonb_populate_recordset(NULL::{0}, %s::jsonb)"
