"""Everything about a video as plain records, with stable names for rows.

Row ids differ between databases, so rows are named by what they are: ``face_3``, ``character_1``,
``segment_7``, the second memory of clip 12 ``memory_12_2``, the first sighting of face 3 in clip 5
``face_3_5_1``. Which columns there are, and what refers to what, is read from the tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pgvector.sqlalchemy import HALFVEC, VECTOR
from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Subquery,
    Table,
    Text,
    and_,
    cast,
    func,
    or_,
    select,
)
from sqlalchemy.orm import Session

from store.queries.backup import TABLES, conditions_of_video
from store.tables.schema import LOOKED_AT, BlobRow, FrameRow, KeyframeRow

Record = dict[str, Any]

KINDS = {
    "video": "videos",
    "clip": "clips",
    "keyframe": "keyframes",
    "utterance": "utterances",
    "screen_text": "screen_texts",
    "object": "objects",
    "identity": "identities",
    "sighting": "sightings",
    "exemplar": "exemplars",
    "character_member": "character_members",
    "character_name": "character_names",
    "correction": "corrections",
    "identity_statement": "identity_statements",
    "memory": "memories",
    "memory_link": "memory_links",
    "memory_strength": "memory_strengths",
    "segment": "segments",
    "segment_revision": "segment_revisions",
    "edge": "edges",
    "patch": "patches",
    "build": "builds",
    "keeper": "keepers",
    "frame": "frames",
    "node_revision": "node_revisions",
    "entity": "entities",
    "relation": "relations",
    "model_call": "model_calls",
    "blob": "blobs",
}
"""The table of each kind of record, in their order."""

LEFT_OUT = {
    "videos": {"path", "created_at"},
    "clips": {"attempts", "seconds", "budget", "updated_at", "left_out", "dropped"},
    "keyframes": {"likeness_vector"},
    "memories": {"words"},
    "character_names": {"act"},
    "corrections": {"undone", "made_at"},
    "builds": {"built_at"},
    "model_calls": {"ms", "called_at", "trajectory_id"},
}
"""Columns that two ingestions of one video may fill differently, or that follow from others."""

ORDER = (
    *("builder", "level", "kind", "number", "at_clip", "clip", "from_clip", "revision"),
    *("type", "relation", "predicate", "reason", "support"),
)
"""Records of a kind are ordered by those of these that they have, then by what they refer to."""


def video_records(session: Session, video_id: str) -> Iterator[Record]:
    """Yield every record of a video; the key ``row`` is its kind.

    Vectors are 12 hex digits of their MD5; clock times and the file's path are left out, so two
    ingestions of one video give equal records.

    Args:
        session: An open transaction, ideally a snapshot.
    """
    conditions = conditions_of_video(video_id)
    for kind, table in KINDS.items():
        query = _query(TABLES[table], video_id).where(conditions[table])
        for row in session.execute(query.execution_options(yield_per=1000)).mappings():
            yield {"row": kind} | dict(row)


def _query(table: Table, video: str) -> Select[*tuple[Any, ...]]:
    """Select a table's rows of a video, names in the place of ids."""
    rows: FromClause = table
    named: list[ColumnElement[str]] = []
    others: list[ColumnElement[Any]] = []
    if table.name in _NAMES:
        own = _named(table, video)
        rows = rows.join(own, own.c.id == table.c.id)
        named.append(own.c.name)
    for column in table.columns:
        if column.name in LEFT_OUT.get(table.name, ()) or column.name == "video_id":
            continue
        referred = next(
            (k.column.table for k in column.foreign_keys if k.column.name == "id"), None
        )
        if referred is not None:
            one = _named(referred, video)
            rows = rows.outerjoin(one, one.c.id == column)
            named.append(one.c.name.label(column.name.removesuffix("_id")))
        elif isinstance(column.type, VECTOR | HALFVEC):
            others.append(func.left(func.md5(cast(column, Text)), 12).label(column.name))
        elif column.name != "id" or table.name == "videos":
            others.append(column)
    keys = {**table.c}
    if table.name == "node_revisions":  # The name of a node is that of a builder's level only.
        node = TABLES["nodes"]
        rows = rows.join(node, node.c.id == table.c.node_id)
        keys = {**node.c, **keys}
        others += [node.c.builder, node.c.level, node.c.number]
    order: list[ColumnElement[Any]] = [keys[name] for name in ORDER if name in keys]
    query = select(*named, *others).select_from(rows)
    # What a clip shows and says stands in the order in which it was written.
    if "start_ms" not in table.c and "time_ms" not in table.c:
        order += named
    return query.where(*_recorded(table, video)).order_by(*order, *table.primary_key)


def _recorded(table: Table, video: str) -> Iterator[ColumnElement[bool]]:
    """Yield what rows must fulfil besides being of the video: they were not left by a question."""
    if table.name == "keyframes":
        yield KeyframeRow.shot != LOOKED_AT
    elif table.name == "corrections":
        yield table.c.undone.is_(False)
    elif table.name == "model_calls":
        yield table.c.trajectory_id.is_(None)
    elif table.name == "blobs":
        b, k, f = BlobRow, KeyframeRow, FrameRow
        of_frame = and_(k.video_id == video, k.blob == b.sha256)
        looked_at = select(k.id).where(of_frame, k.shot == LOOKED_AT).exists()
        chosen = select(k.id).where(of_frame, k.shot != LOOKED_AT).exists()
        kept = select(f.id).where(f.video_id == video, f.blob == b.sha256).exists()
        yield or_(~looked_at, chosen, kept)


_NAMES = {
    "identities": ("kind", "number"),
    "segments": ("segment", "number"),
    "nodes": ("level", "number"),
    "entities": ("type", "name"),
    "memories": ("memory", "clip", "ordinal"),
    "sightings": ("identity", "clip", "ordinal"),
}
"""The columns and words that the name of a row is made of; ``ordinal`` counts rows of a clip."""


def _named(table: Table, video: str) -> Subquery:
    """Select id and name of a table's rows of a video."""
    rows: FromClause = table
    parts: dict[str, Any] = dict(table.c)
    if "ordinal" in _NAMES[table.name]:
        counted: list[ColumnElement[Any]] = [table.c.clip]
        if table.name == "sightings":
            identity = _named(TABLES["identities"], video)
            rows = rows.join(identity, identity.c.id == table.c.identity_id)
            parts["identity"] = identity.c.name
            counted.append(identity.c.name)
        parts["ordinal"] = func.row_number().over(partition_by=counted, order_by=table.c.id)
    words = [cast(parts[part], Text) if part in parts else part for part in _NAMES[table.name]]
    name = func.concat_ws(" " if table.name == "entities" else "_", *words).label("name")
    return select(table.c.id, name).select_from(rows).where(table.c.video_id == video).subquery()


# Some readers take these for line ends, though JSON does not: each record must be one line.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def dump_video(session: Session, video_id: str) -> Iterator[str]:
    """Yield canonical JSON lines, without line ends, of everything learned from a video.

    Rows are named by stable names, vectors by a digest; clock times, the file's path and the number
    of attempts are left out. Empty if there is no such video.
    """
    return map(canonical_record, video_records(session, video_id))


def canonical_record(record: Record) -> str:
    """Return a record as JSON on one line: sorted keys, no spaces, UTF-8."""
    text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.translate(_LINE_ENDS)
