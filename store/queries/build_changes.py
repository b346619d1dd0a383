"""Stores what one step of a build adds and closes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from psycopg.types.json import Jsonb
from sqlalchemy import and_, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from domain.built import Change, Entity, EntityKey, Node
from store.driver import HALFVEC, allocate_ids, copy_rows, pack_halfvec
from store.queries.builds import StepMade, of_builder
from store.queries.conditions import is_any_of, is_any_text
from store.tables.schema import BuildRow, EntityRow, NodeRevisionRow, NodeRow, RelationRow

_NODE = {"id": "int8", "video_id": "text", "builder": "text", "level": "text", "number": "int4"}
_REVISION = {
    "node_id": "int8",
    "label": "text",
    "text": "text",
    "start_ms": "int8",
    "end_ms": "int8",
    "children": "int8[]",
    "from_clip": "int4",
    "to_clip": "int4",
    "embedding": HALFVEC,
}
_ENTITY = {
    "id": "int8",
    "video_id": "text",
    "builder": "text",
    "type": "text",
    "name": "text",
    "attributes": "jsonb",
    "from_clip": "int4",
    "embedding": HALFVEC,
}
_RELATION = {
    "video_id": "text",
    "builder": "text",
    "level": "text",
    "subject_id": "int8",
    "predicate": "text",
    "object_id": "int8",
    "node_id": "int8",
    "start_ms": "int8",
    "end_ms": "int8",
    "evidence": "int8[]",
    "confidence": "float8",
    "from_clip": "int4",
    "to_clip": "int4",
    "embedding": HALFVEC,
}


def apply_change(
    session: Session, video_id: str, builder: str, made: StepMade, change: Change
) -> None:
    """Store what one step of a build adds and closes, and how far it went."""
    closing = _node_ids(
        session, video_id, builder, [(one.level, one.number) for one in change.closed_nodes]
    )
    _close_revisions(
        session, [(closing[one.level, one.number], one.clip) for one in change.closed_nodes]
    )
    nodes = _add_nodes(session, video_id, builder, change.nodes)
    stating = {draft.node for draft in change.relations if draft.node} - nodes.keys()
    nodes |= _node_ids(session, video_id, builder, stating)
    _add_entities(session, video_id, builder, change.entities)
    joined = [*change.relations, *change.closed]
    ends = {key for relation in joined for key in (relation.subject, relation.object)}
    ids = _entity_ids(session, video_id, builder, ends)
    r = RelationRow
    for one in change.closed:
        still = and_(
            *of_builder(r, video_id, builder),
            r.level == one.level,
            r.subject_id == ids[one.subject],
            r.predicate == one.predicate,
            r.object_id == ids[one.object],
            r.to_clip.is_(None),
        )
        session.execute(update(r).where(still).values(to_clip=one.to_clip))
    rows = [
        (
            video_id,
            builder,
            draft.level,
            ids[draft.subject],
            draft.predicate,
            ids[draft.object],
            nodes.get(draft.node) if draft.node else None,
            draft.span.start_ms,
            draft.span.end_ms,
            list(draft.evidence),
            draft.confidence,
            draft.from_clip,
            draft.to_clip,
            pack_halfvec(draft.vector),
        )
        for draft in change.relations
    ]
    copy_rows(session, "relations", _RELATION, rows)
    where = {"video_id": video_id, "builder": builder}
    known = session.scalar(select(BuildRow.writers).filter_by(**where)) or ()
    progress = made._asdict() | {"writers": list(dict.fromkeys((*known, *made.writers)))}
    row = insert(BuildRow).values(**where, **progress)
    session.execute(
        row.on_conflict_do_update(
            index_elements=["video_id", "builder"], set_=progress | {"built_at": func.now()}
        )
    )


def _add_nodes(
    session: Session, video_id: str, builder: str, drafts: Sequence[Node]
) -> dict[tuple[str, int], int]:
    """Add revisions of nodes, closing those before; return the nodes' ids by level and number."""
    keys = list(dict.fromkeys((draft.level, draft.number) for draft in drafts))
    if not keys:
        return {}
    ids = _node_ids(session, video_id, builder, keys)
    stored = [one for one in drafts if (one.level, one.number) in ids]
    _close_revisions(session, [(ids[one.level, one.number], one.from_clip) for one in stored])
    new = [key for key in keys if key not in ids]
    ids |= zip(new, allocate_ids(session, "nodes", len(new)), strict=True)
    copy_rows(session, "nodes", _NODE, [(ids[key], video_id, builder, *key) for key in new])
    rows = [
        (
            ids[draft.level, draft.number],
            draft.label,
            draft.text,
            draft.span.start_ms,
            draft.span.end_ms,
            list(draft.children),
            draft.from_clip,
            draft.to_clip,
            pack_halfvec(draft.vector),
        )
        for draft in drafts
    ]
    copy_rows(session, "node_revisions", _REVISION, rows)
    return ids


def _node_ids(
    session: Session, video_id: str, builder: str, keys: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], int]:
    wanted = set(keys)
    if not wanted:
        return {}
    levels, numbers = {level for level, _ in wanted}, {number for _, number in wanted}
    n = NodeRow
    query = select(n.level, n.number, n.id).where(*of_builder(n, video_id, builder))
    query = query.where(is_any_text(n.level, levels), is_any_of(n.number, numbers))
    rows = session.execute(query)
    return {key: node for level, number, node in rows if (key := (level, number)) in wanted}


def _close_revisions(session: Session, closed: Iterable[tuple[int, int]]) -> None:
    """Close those revisions that are valid still, of nodes, each from its first clip on."""
    first: dict[int, int] = {}
    for node, clip in closed:
        first.setdefault(node, clip)
    of_clip: dict[int, list[int]] = {}
    for node, clip in first.items():
        of_clip.setdefault(clip, []).append(node)
    r = NodeRevisionRow
    for clip, nodes in of_clip.items():
        still = and_(is_any_of(r.node_id, nodes), r.to_clip.is_(None))
        session.execute(update(r).where(still).values(to_clip=clip))


def _add_entities(session: Session, video_id: str, builder: str, drafts: Sequence[Entity]) -> None:
    known = _entity_ids(session, video_id, builder, {draft.key for draft in drafts})
    new = {draft.key: draft for draft in reversed(drafts) if draft.key not in known}
    ids = allocate_ids(session, "entities", len(new)) if new else []
    rows = [
        (
            entity,
            video_id,
            builder,
            draft.key.type,
            draft.key.name,
            Jsonb(draft.attributes),
            draft.from_clip,
            pack_halfvec(draft.vector),
        )
        for entity, draft in zip(ids, reversed(new.values()), strict=True)
    ]
    copy_rows(session, "entities", _ENTITY, rows)


def _entity_ids(
    session: Session, video_id: str, builder: str, keys: Collection[EntityKey]
) -> dict[EntityKey, int]:
    if not keys:
        return {}
    types, names = {key.type for key in keys}, {key.name for key in keys}
    e = EntityRow
    query = select(e.type, e.name, e.id).where(*of_builder(e, video_id, builder))
    rows = session.execute(query.where(is_any_text(e.type, types), is_any_text(e.name, names)))
    return {key: entity for kind, name, entity in rows if (key := EntityKey(kind, name)) in keys}
