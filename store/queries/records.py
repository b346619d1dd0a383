"""Everything about a video as plain records, with stable names for rows.

Row ids differ between databases, so rows are named by what they are: ``face_3``, ``character_1``,
``segment_7``, the second memory of clip 12 ``memory_12_2``, the first sighting of face 3 in clip 5
``face_3_5_1``. Records have a fixed order: by subject, then clip, then ordinal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, cast, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from store.tables.schema import (
    LOOKED_AT,
    BlobRow,
    BuildRow,
    CharacterMemberRow,
    CharacterNameRow,
    CharacterRow,
    ClipRow,
    CorrectionRow,
    EdgeRow,
    EntityRow,
    ExemplarRow,
    FrameRow,
    IdentityRow,
    IdentityStatementRow,
    KeeperRow,
    KeyframeRow,
    MemoryLinkRow,
    MemoryRow,
    MemoryStrengthRow,
    ModelCallRow,
    NodeRevisionRow,
    NodeRow,
    ObjectRow,
    PatchRow,
    RelationRow,
    ScreenTextRow,
    SegmentRevisionRow,
    SegmentRow,
    SightingRow,
    UtteranceRow,
    VideoRow,
)

Record = dict[str, Any]
Query = Select[*tuple[Any, ...]]


def video_records(session: Session, video_id: str) -> Iterator[Record]:
    """Yield every record of a video; the key ``row`` is its kind.

    Vectors are 12 hex digits of their MD5; clock times and the file's path are left out, so two
    ingestions of one video give equal records.

    Args:
        session: An open transaction, ideally a snapshot.
    """
    for kind, query in _SUBJECTS:
        rows = session.execute(query(video_id).execution_options(yield_per=1000))
        for row in rows.mappings():
            yield {"row": kind} | dict(row)


def _video(video: str) -> Query:
    v = VideoRow
    size = (v.duration_ms, v.width, v.height, v.has_video, v.has_audio)
    source = (v.profile, v.subtitles, v.audio_track, v.remarks)
    return select(v.id, v.title, *size, *source, v.state, v.error, v.models, v.encoders).where(
        v.id == video
    )


def _clips(video: str) -> Query:
    c = ClipRow
    columns = (c.clip, c.start_ms, c.end_ms, c.state, c.error, c.gaps, c.text)
    query = select(*columns, _vector(c.embedding), c.encoder)
    return query.where(c.video_id == video).order_by(c.clip)


def _keyframes(video: str) -> Query:
    k = KeyframeRow
    scores = (k.shot, k.sharpness, k.entropy, k.quality, k.width, k.height)
    columns = (k.clip, k.time_ms, *scores, k.blob, k.description, _vector(k.embedding))
    described = (_vector(k.description_embedding), k.description_encoder, k.image_encoder)
    return _by_clip(select(*columns, *described).where(k.shot != LOOKED_AT), k, video)


def _utterances(video: str) -> Query:
    u = UtteranceRow
    words = (u.origin, u.start_ms, u.end_ms, u.text, u.language, u.confidence, u.speaker)
    query = select(u.clip, *words, _identity_name().label("identity"))
    return _by_clip(query.outerjoin(IdentityRow, IdentityRow.id == u.identity_id), u, video)


def _screen_texts(video: str) -> Query:
    s = ScreenTextRow
    return _by_clip(select(s.clip, s.time_ms, s.text, s.score, s.box), s, video)


def _objects(video: str) -> Query:
    o = ObjectRow
    return _by_clip(select(o.clip, o.time_ms, o.label, o.score, o.box), o, video)


def _identities(video: str) -> Query:
    i = IdentityRow
    query = select(_identity_name().label("name"), i.first_clip).where(i.video_id == video)
    return query.order_by(i.kind, i.number)


def _sightings(video: str) -> Query:
    s, named = SightingRow, _named_sightings(video)
    columns = (s.clip, s.start_ms, s.end_ms, s.box, s.score, s.quality, s.blob)
    query = select(named.c.name, *columns).join(named, named.c.id == s.id)
    return query.order_by(s.clip, s.id)


def _exemplars(video: str) -> Query:
    e, named = ExemplarRow, _named_sightings(video)
    columns = (named.c.name.label("sighting"), e.quality, _vector(e.vector))
    query = select(_identity_name().label("identity"), *columns)
    query = query.join(IdentityRow, IdentityRow.id == e.identity_id)
    query = query.join(named, named.c.id == e.sighting_id)
    return query.order_by(IdentityRow.kind, IdentityRow.number, named.c.clip, named.c.id)


def _characters(video: str) -> Query:
    c = CharacterRow
    query = select(_character_name().label("name"), c.from_clip, c.to_clip)
    return query.where(c.video_id == video).order_by(c.number)


def _members(video: str) -> Query:
    m, identity = CharacterMemberRow, _identity_name().label("identity")
    query = select(_character_name().label("character"), identity, m.from_clip, m.to_clip)
    query = query.join(CharacterRow, CharacterRow.id == m.character_id)
    query = query.join(IdentityRow, IdentityRow.id == m.identity_id)
    order = (CharacterRow.number, m.from_clip, IdentityRow.kind, IdentityRow.number, m.id)
    return query.where(CharacterRow.video_id == video).order_by(*order)


def _names(video: str) -> Query:
    n = CharacterNameRow
    named = (_character_name().label("character"), _identity_name().label("identity"))
    query = select(*named, n.name, n.source, n.from_clip, n.to_clip)
    query = query.join(CharacterRow, CharacterRow.id == n.character_id)
    query = query.join(IdentityRow, IdentityRow.id == n.identity_id)
    order = (CharacterRow.number, n.from_clip, n.id)
    return query.where(CharacterRow.video_id == video).order_by(*order)


def _corrections(video: str) -> Query:
    """Select the corrections in force; undone ones are left out."""
    c = CorrectionRow
    query = select(c.number, c.kind, c.told, c.numbers, c.outcomes, c.act)
    return query.where(c.video_id == video, c.undone.is_(False)).order_by(c.number)


def _statements(video: str) -> Query:
    s, face, voice = IdentityStatementRow, aliased(IdentityRow), aliased(IdentityRow)
    both = (_identity_name(face).label("face"), _identity_name(voice).label("voice"))
    query = select(s.clip, *both, s.support, s.reason)
    query = query.join(face, face.id == s.face_id).join(voice, voice.id == s.voice_id)
    order = (s.clip, face.number, voice.number, s.reason, s.support)
    return query.where(s.video_id == video).order_by(*order)


def _memories(video: str) -> Query:
    m, named = MemoryRow, _named_memories(video)
    columns = (m.kind, m.text, m.start_ms, m.end_ms, m.source, m.speaker, m.superseded_at)
    query = select(named.c.name, m.clip, *columns, _vector(m.embedding), m.encoder)
    return query.join(named, named.c.id == m.id).order_by(m.clip, m.id)


def _memory_links(video: str) -> Query:
    link, named = MemoryLinkRow, _named_memories(video)
    query = select(named.c.name.label("memory"), _identity_name().label("identity"))
    query = query.select_from(link).join(named, named.c.id == link.memory_id)
    query = query.join(IdentityRow, IdentityRow.id == link.identity_id)
    return query.order_by(named.c.clip, named.c.id, IdentityRow.kind, IdentityRow.number)


def _memory_strengths(video: str) -> Query:
    s, named = MemoryStrengthRow, _named_memories(video)
    query = select(named.c.name.label("memory"), s.clip).join(named, named.c.id == s.memory_id)
    return query.order_by(named.c.clip, named.c.id, s.clip)


def _segments(video: str) -> Query:
    s = SegmentRow
    query = select(_segment_name().label("name"))
    return query.where(s.video_id == video).order_by(s.number)


def _revisions(video: str) -> Query:
    r, into = SegmentRevisionRow, aliased(SegmentRow)
    columns = (r.revision, r.label, r.summary, r.clips, r.history, r.from_clip, r.to_clip)
    absorbed = _segment_name(into).label("absorbed_into")
    vector = (_vector(r.embedding), r.encoder)
    query = select(_segment_name().label("segment"), *columns, absorbed, *vector)
    query = query.join(SegmentRow, SegmentRow.id == r.segment_id)
    query = query.outerjoin(into, into.id == r.absorbed_into)
    return query.where(SegmentRow.video_id == video).order_by(SegmentRow.number, r.revision)


def _edges(video: str) -> Query:
    e, source, target = EdgeRow, aliased(SegmentRow), aliased(SegmentRow)
    ends = (_segment_name(source).label("source"), _segment_name(target).label("target"))
    columns = (e.relation, e.explicit, e.confidence, e.rationale, e.evidence)
    query = select(*ends, *columns, e.from_clip, e.to_clip)
    query = query.join(source, source.id == e.source_id).join(target, target.id == e.target_id)
    order = (source.number, target.number, e.from_clip, e.relation, e.id)
    return query.where(e.video_id == video).order_by(*order)


def _patches(video: str) -> Query:
    p = PatchRow
    content = (p.applied, p.dropped, p.pending, p.writers)
    columns = (p.at_clip, p.first_clip, p.repairs, *content)
    return select(*columns).where(p.video_id == video).order_by(p.at_clip)


def _builds(video: str) -> Query:
    b = BuildRow
    columns = (b.builder, b.version, b.encoder, b.through_clip, b.writers)
    return select(*columns).where(b.video_id == video).order_by(b.builder)


def _keepers(video: str) -> Query:
    k = KeeperRow
    query = select(k.builder, k.version, k.through_clip, k.state)
    return query.where(k.video_id == video).order_by(k.builder)


def _frames(video: str) -> Query:
    f = FrameRow
    content = (f.clip, f.time_ms, f.blob, f.width, f.height, f.tier, f.reason, f.image_encoder)
    columns = (f.builder, *content, _vector(f.embedding))
    return select(*columns).where(f.video_id == video).order_by(f.builder, f.time_ms)


def _node_revisions(video: str) -> Query:
    n, r = NodeRow, NodeRevisionRow
    content = (r.label, r.text, r.start_ms, r.end_ms, r.children, r.from_clip, r.to_clip)
    query = select(n.builder, n.level, n.number, *content, _vector(r.embedding))
    query = query.join(r, r.node_id == n.id).where(n.video_id == video)
    return query.order_by(n.builder, n.level, n.number, r.from_clip)


def _entities(video: str) -> Query:
    e = EntityRow
    columns = (e.builder, e.type, e.name, e.attributes, e.from_clip, _vector(e.embedding))
    return select(*columns).where(e.video_id == video).order_by(e.builder, e.type, e.name)


def _relations(video: str) -> Query:
    r, subject, target, node = RelationRow, aliased(EntityRow), aliased(EntityRow), NodeRow
    ends = (_entity_name(subject).label("subject"), _entity_name(target).label("object"))
    stated = func.concat(node.level, "_", node.number).label("node")
    content = (r.start_ms, r.end_ms, r.evidence, r.confidence, r.from_clip, r.to_clip)
    query = select(r.builder, r.level, *ends, r.predicate, stated, *content, _vector(r.embedding))
    query = query.join(subject, subject.id == r.subject_id).join(target, target.id == r.object_id)
    query = query.outerjoin(node, node.id == r.node_id).where(r.video_id == video)
    order = (r.builder, r.level, r.from_clip, r.start_ms, subject.name, r.predicate, target.name)
    return query.order_by(*order, r.id)


def _calls(video: str) -> Query:
    c = ModelCallRow
    request = (c.clip, c.purpose, c.request_hash, c.profile, c.model, c.messages)
    query = select(*request, c.reply, c.error, c.tokens_in, c.tokens_out, c.cost_usd)
    by_writers = (c.video_id == video, c.trajectory_id.is_(None))
    return query.where(*by_writers).order_by(c.clip, c.purpose, c.request_hash, c.id)


def _blobs(video: str) -> Query:
    b, k, f = BlobRow, KeyframeRow, FrameRow
    of_frame = (k.video_id == video, k.blob == b.sha256)
    looked_at = select(k.id).where(*of_frame, k.shot == LOOKED_AT).exists()
    chosen = select(k.id).where(*of_frame, k.shot != LOOKED_AT).exists()
    kept = select(f.id).where(f.video_id == video, f.blob == b.sha256).exists()
    query = select(b.sha256, b.size).where(b.video_id == video, or_(~looked_at, chosen, kept))
    return query.order_by(b.sha256)


_SUBJECTS: tuple[tuple[str, Callable[[str], Query]], ...] = (
    ("video", _video),
    ("clip", _clips),
    ("keyframe", _keyframes),
    ("utterance", _utterances),
    ("screen_text", _screen_texts),
    ("object", _objects),
    ("identity", _identities),
    ("sighting", _sightings),
    ("exemplar", _exemplars),
    ("character", _characters),
    ("character_member", _members),
    ("character_name", _names),
    ("correction", _corrections),
    ("identity_statement", _statements),
    ("memory", _memories),
    ("memory_link", _memory_links),
    ("memory_strength", _memory_strengths),
    ("segment", _segments),
    ("segment_revision", _revisions),
    ("edge", _edges),
    ("patch", _patches),
    ("build", _builds),
    ("keeper", _keepers),
    ("frame", _frames),
    ("node_revision", _node_revisions),
    ("entity", _entities),
    ("relation", _relations),
    ("model_call", _calls),
    ("blob", _blobs),
)


def _vector(column: InstrumentedAttribute[Any]) -> ColumnElement[str]:
    return func.left(func.md5(cast(column, Text)), 12).label(column.key)


def _by_clip(query: Query, table: Any, video: str) -> Query:
    return query.where(table.video_id == video).order_by(table.clip, table.id)


def _identity_name(table: Any = IdentityRow) -> ColumnElement[str]:
    """Return the name of an identity; NULL if an outer join found none."""
    return cast(table.kind, Text).concat("_").concat(cast(table.number, Text))


def _entity_name(table: Any) -> ColumnElement[str]:
    return cast(table.type, Text).concat(" ").concat(table.name)


def _character_name() -> ColumnElement[str]:
    return func.concat("character_", CharacterRow.number)


def _segment_name(table: Any = SegmentRow) -> ColumnElement[str]:
    """Return the name of a segment; NULL if an outer join found none."""
    return cast("segment_", Text).concat(cast(table.number, Text))


def _named_memories(video: str) -> Any:
    m = MemoryRow
    ordinal = func.row_number().over(partition_by=m.clip, order_by=m.id)
    name = func.concat("memory_", m.clip, "_", ordinal).label("name")
    return select(m.id, m.clip, name).where(m.video_id == video).subquery()


def _named_sightings(video: str) -> Any:
    s = SightingRow
    ordinal = func.row_number().over(partition_by=(s.clip, s.identity_id), order_by=s.id)
    name = func.concat(_identity_name(), "_", s.clip, "_", ordinal).label("name")
    query = select(s.id, s.clip, name).join(IdentityRow, IdentityRow.id == s.identity_id)
    return query.where(s.video_id == video).subquery()


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
