"""What strategies built of a video: how far, what each step adds and closes, and its deletion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.types.json import Jsonb
from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, aliased

from domain.built import BuiltMemory, Change, Entity, EntityKey, Node, Relation, entity_text
from domain.memories import Scope
from domain.time import TimeSpan
from store.driver import HALFVEC, allocate_ids, copy_rows, pack_halfvec, unpack_halfvecs
from store.queries.conditions import is_any_of, is_any_text, valid_at
from store.tables.schema import (
    BuildRow,
    ClipRow,
    EntityRow,
    FrameRow,
    KeeperRow,
    NodeRevisionRow,
    NodeRow,
    RelationRow,
)

if TYPE_CHECKING:
    from domain.built import Vector


class StepMade(NamedTuple):
    """Through which clip a step went, with which version of the builder and which encoder.

    ``writers`` wrote in it: ``domain.built.RULES``, or a model by name.
    """

    through_clip: int
    version: int
    encoder: str
    writers: tuple[str, ...] = ()


def cut_builds(session: Session, video_id: str, clips: Collection[int]) -> None:
    """Delete what was built from the first of these clips on, and the frames of these clips.

    What was built before stays as it was then; the rest can be built again from what is left.
    Frames of other clips stay: a stream cannot be seen twice. What keepers carried on from one of
    these clips is deleted: they begin anew.
    """
    frame, keeper = FrameRow, KeeperRow
    session.execute(delete(frame).where(frame.video_id == video_id, frame.clip.in_(clips)))
    first = min(clips)
    carried = and_(keeper.video_id == video_id, keeper.through_clip >= first)
    session.execute(update(keeper).where(carried).values(state={}))
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
    later = and_(build.video_id == video_id, build.through_clip >= first)
    changed = {"through_clip": first - 1, "built_at": func.now()}
    session.execute(update(build).where(later).values(changed))


def built_refs(session: Session, video_id: str, first: int) -> set[str]:
    """Return the refs of nodes, entities and relations that were built from clip ``first`` on."""
    node, revision = NodeRow, NodeRevisionRow
    nodes = select(node.id).join(revision, revision.node_id == node.id)
    later = and_(node.video_id == video_id, revision.from_clip >= first)
    refs = {f"n{row}" for row in session.scalars(nodes.where(later))}
    for kind, table in (("e", EntityRow), ("r", RelationRow)):
        of_later = and_(table.video_id == video_id, table.from_clip >= first)
        refs |= {f"{kind}{row}" for row in session.scalars(select(table.id).where(of_later))}
    return refs


def delete_builds(session: Session, video_id: str, *, restoring: bool = False) -> None:
    """Delete everything that was built of a video, frames included; keepers begin anew.

    ``restoring``: an earlier state of them comes back. Frames that were kept since stay then.
    """
    for table in (RelationRow, EntityRow, NodeRow, BuildRow):
        session.execute(delete(table).where(table.video_id == video_id))
    of_video = KeeperRow.video_id == video_id
    if restoring:
        session.execute(delete(KeeperRow).where(of_video))
    else:
        session.execute(delete(FrameRow).where(FrameRow.video_id == video_id))
        session.execute(update(KeeperRow).where(of_video).values(state={}))


def delete_build(session: Session, video_id: str, builder: str) -> None:
    """Delete what one builder built of a video, except frames: those cannot be seen again."""
    for table in (RelationRow, EntityRow, NodeRow, BuildRow):
        session.execute(delete(table).where(*of_builder(table, video_id, builder)))


def builders_in_library(session: Session) -> set[str]:
    return set(
        session.scalars(select(BuildRow.builder).where(BuildRow.through_clip >= 0).distinct())
    )


def built_through(session: Session, video_id: str, builder: str) -> int:
    """Return the last clip of a build; -1 where there is none."""
    row = BuildRow
    query = select(row.through_clip).where(row.video_id == video_id, row.builder == builder)
    through = session.scalar(query)
    return -1 if through is None else through


def restart_build(session: Session, video_id: str, builder: str, made: StepMade) -> None:
    """Delete what one builder built of a video, except frames, to build it from the first clip on.

    Replies that a language model gave before are not reused then.
    """
    delete_build(session, video_id, builder)
    values = {"video_id": video_id, "builder": builder, **made._asdict()}
    session.execute(insert(BuildRow).values(values | {"writers": list(made.writers)}))


def build_writers(session: Session, builder: str, video_ids: Sequence[str]) -> tuple[str, ...]:
    """Return who wrote what a builder built of these videos, each once, in order of the videos."""
    row = BuildRow
    query = select(row.video_id, row.writers).where(
        row.builder == builder, row.through_clip >= 0, is_any_text(row.video_id, video_ids)
    )
    known: dict[str, list[str]] = dict(session.execute(query).all())
    return tuple(dict.fromkeys(writer for video in video_ids for writer in known.get(video, ())))


def builds_of(session: Session, video_id: str) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return who built anything of a video, by name, through which clip, and who wrote it."""
    row = BuildRow
    query = select(row.builder, row.through_clip, row.writers)
    begun = query.where(row.video_id == video_id, row.through_clip >= 0).order_by(row.builder)
    return [(one, clip, tuple(names)) for one, clip, names in session.execute(begun)]


def built_encoders(session: Session, builder: str, video_ids: Sequence[str]) -> dict[str, str]:
    """Return the text encoder of what a builder built of each of these videos that it built."""
    row = BuildRow
    query = select(row.video_id, row.encoder).where(
        row.builder == builder, row.through_clip >= 0, is_any_text(row.video_id, video_ids)
    )
    return dict(session.execute(query).all())


def built_at(session: Session, video_id: str, builder: str) -> datetime | None:
    """Return when the last step of a build was stored; None where there is none."""
    row = BuildRow
    query = select(row.built_at).where(row.video_id == video_id, row.builder == builder)
    return session.scalar(query)


def built_version(session: Session, video_id: str, builder: str) -> tuple[Any, ...]:
    """Return what changes whenever something of a build does; empty where there is none."""
    row = BuildRow
    query = select(row.through_clip, row.built_at, row.version, row.encoder)
    found = session.execute(query.where(row.video_id == video_id, row.builder == builder)).first()
    return tuple(found or ())


def read_built(session: Session, video_id: str, builder: str) -> BuiltMemory:
    """Return all that a builder built of a video, closed revisions and relations included."""
    n, v, e, r = NodeRow, NodeRevisionRow, EntityRow, RelationRow
    query = select(n.id, n.level, n.number, v.label, v.text, v.start_ms, v.end_ms, v.children)
    query = query.add_columns(v.from_clip, v.to_clip, func.halfvec_send(v.embedding))
    query = query.join(v, v.node_id == n.id).where(*of_builder(n, video_id, builder))
    rows = session.execute(query.order_by(v.from_clip, v.id)).all()
    nodes = [
        Node(
            level=row.level,
            number=row.number,
            text=row.text,
            span=TimeSpan.of(row.start_ms, row.end_ms),
            from_clip=row.from_clip,
            label=row.label,
            children=tuple(row.children),
            vector=vector,
            to_clip=row.to_clip,
            id=row.id,
            builder=builder,
        )
        for row, vector in zip(rows, _vectors(row[-1] for row in rows), strict=True)
    ]
    naming = select(e.id, e.type, e.name, e.from_clip, e.attributes, func.halfvec_send(e.embedding))
    named = session.execute(naming.where(*of_builder(e, video_id, builder)).order_by(e.id)).all()
    entities = {
        row.id: Entity(EntityKey(row.type, row.name), row.from_clip, row.attributes, vector, row.id)
        for row, vector in zip(named, _vectors(row[-1] for row in named), strict=True)
    }
    stated = select(r.id, r.level, r.subject_id, r.predicate, r.object_id, r.node_id, r.start_ms)
    stated = stated.add_columns(r.end_ms, r.evidence, r.confidence, r.from_clip, r.to_clip)
    stated = stated.add_columns(func.halfvec_send(r.embedding)).order_by(r.from_clip, r.id)
    related = session.execute(stated.where(*of_builder(r, video_id, builder))).all()
    stating = {node.id: (node.level, node.number) for node in nodes}
    relations = [
        Relation(
            level=row.level,
            subject=entities[row.subject_id].key,
            predicate=row.predicate,
            object=entities[row.object_id].key,
            span=TimeSpan.of(row.start_ms, row.end_ms),
            from_clip=row.from_clip,
            evidence=tuple(row.evidence),
            node=stating.get(row.node_id),
            confidence=row.confidence,
            vector=vector,
            to_clip=row.to_clip,
            id=row.id,
        )
        for row, vector in zip(related, _vectors(row[-1] for row in related), strict=True)
    ]
    made = session.get(BuildRow, (video_id, builder)) or BuildRow(
        through_clip=-1, version=0, encoder=""
    )
    return BuiltMemory(
        through_clip=made.through_clip,
        version=made.version,
        encoder=made.encoder,
        nodes=tuple(nodes),
        entities=tuple(entities.values()),
        relations=tuple(relations),
    )


def of_builder(table: Any, video_id: str, builder: str) -> tuple[ColumnElement[bool], ...]:
    return table.video_id == video_id, table.builder == builder


def _vectors(packed: Iterable[Any]) -> list[Vector | None]:
    """Unpack vectors; None where a row has none."""
    given = list(packed)
    unpacked = iter(unpack_halfvecs(one for one in given if one is not None))
    return [None if one is None else next(unpacked) for one in given]


def cited_built(
    session: Session,
    scope: Scope,
    nodes: Collection[int],
    entities: Collection[int],
    relations: Collection[int],
) -> Iterator[tuple[str, TimeSpan, str, int | None]]:
    """Yield ref, span, text and clip of what of these was built and holds in scope."""
    n, r = NodeRow, NodeRevisionRow
    query = select(n.id, r.label, r.text, r.start_ms, r.end_ms).join(r, r.node_id == n.id)
    holds = and_(n.video_id == scope.video, n.id.in_(sorted(nodes)), valid_at(r, scope.last_clip))
    for node, label, content, start, end in session.execute(query.where(holds)):
        full = f"{label}: {content}" if label else content
        yield f"n{node}", TimeSpan.of(start, end), full, None
    # Entities have the span of the clip in which each is first named.
    e, c = EntityRow, ClipRow
    naming = select(e.id, e.type, e.name, e.attributes, e.from_clip, c.start_ms, c.end_ms)
    naming = naming.join(c, (c.video_id == e.video_id) & (c.clip == e.from_clip))
    naming = naming.where(
        e.video_id == scope.video, e.id.in_(sorted(entities)), e.from_clip <= scope.last_clip
    )
    for entity, kind, name, attributes, clip, start, end in session.execute(naming):
        text = entity_text(EntityKey(kind, name), attributes)
        yield f"e{entity}", TimeSpan.of(start, end), text, clip
    one, subject, target = RelationRow, aliased(EntityRow), aliased(EntityRow)
    stating = select(one.id, subject.name, one.predicate, target.name, one.start_ms, one.end_ms)
    stating = stating.join(subject, subject.id == one.subject_id).join(
        target, target.id == one.object_id
    )
    stated = and_(
        one.video_id == scope.video, one.id.in_(sorted(relations)), valid_at(one, scope.last_clip)
    )
    for relation, who, what, whom, start, end in session.execute(stating.where(stated)):
        yield f"r{relation}", TimeSpan.of(start, end), f"{who} {what} {whom}", None


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
