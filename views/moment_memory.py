"""What is remembered of a moment of a video: by all strategies together, and by each of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.built import EntityKey, entity_text
from domain.marked import marked
from domain.memories import Scope
from domain.time import TimeSpan
from people.corrected import characters_at, people_as_of
from retrieval.people_in_query import view_people, with_current_names
from store.database import Store
from store.queries.clips import clip_at, clips_of, memory_view
from store.queries.events import patch_writers
from store.queries.graph import edges_touching, segments_named, segments_of_clip
from store.queries.keyframes import StoredKeyframe, frames_of
from store.queries.moments import (
    EntityAt,
    NodeAt,
    RelationAt,
    builders_of,
    entities_named,
    frames_near,
    nodes_at,
    relations_at,
)
from views.library import ShownLine, shown_clips
from views.moment import NEAR_MS

MAX_NODES = 40
"""Nodes of a strategy that are shown."""
MAX_RELATIONS = 20
MAX_FRAMES = 6
EVENT, LINE = marked("event"), marked("line")
"""Levels of what all strategies share: segments of the event graph, and memories."""

Names = Mapping[str, str]


class MomentNode(Frozen):
    """Something remembered with a span that holds the moment; ``level`` is a scale or kind."""

    ref: str
    level: str
    label: str
    text: str
    span: TimeSpan


class MomentRelation(Frozen):
    """A relation that holds at the moment; ``span`` is when it was stated. ``ref`` may be ""."""

    ref: str
    level: str
    text: str
    span: TimeSpan


class MomentEntity(Frozen):
    """An end of the relations."""

    ref: str
    text: str


class MomentFrame(Frozen):
    """A stored image near the moment; ``reason`` says why a strategy kept it."""

    ref: str
    time_ms: int
    blob: str
    reason: str


class RememberedMoment(Frozen):
    """What is remembered of a moment by one strategy; "" is what all share.

    ``relations`` are the first of ``relations_total``. ``writers`` wrote its memory of the video,
    of what all share the event graph: rules, or models by name.
    """

    strategy: str
    writers: tuple[str, ...] = ()
    nodes: tuple[MomentNode, ...] = ()
    relations: tuple[MomentRelation, ...] = ()
    relations_total: int = 0
    entities: tuple[MomentEntity, ...] = ()
    frames: tuple[MomentFrame, ...] = ()


def load_moment(
    store: Store, video: str, at_ms: int, as_of_ms: int | None = None
) -> tuple[RememberedMoment, ...]:
    """Return what is remembered of a moment, first what all strategies share.

    Args:
        at_ms: the moment, in milliseconds of video time.
        as_of_ms: only what a question as of then may see; None: what is known now.
    """
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video], as_of_ms).scopes[0]
        clip = clip_at(session, video, at_ms)
        if clip is None or clip > scope.last_clip:
            return (RememberedMoment(strategy=""),)
        names = view_people({video: people_as_of(session, scope)}).names(video)
        shared = _shared(session, scope, clip, at_ms, names)
        return shared, *_built(session, scope, clip, at_ms, names)


def _shared(
    session: Session, scope: Scope, clip: int, at_ms: int, names: Names
) -> RememberedMoment:
    video, last = scope.video, scope.last_clip
    segments = segments_of_clip(session, video, last, clip)
    edges = [edge for one in segments for edge in edges_touching(session, one.id, last)]
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    labels = {one.id: one for one in segments_named(session, video, last, sorted(ends))}
    events = [
        MomentNode(
            ref=f"s{one.id}",
            level=EVENT,
            label=with_current_names(one.label, names),
            text=with_current_names(one.summary, names),
            span=one.span,
        )
        for one in segments
    ]
    relations = [
        MomentRelation(
            ref="",
            level=EVENT,
            text=with_current_names(f"{source.label} {edge.relation} {target.label}", names),
            span=source.span,
        )
        for edge in {edge.id: edge for edge in edges}.values()
        if (source := labels.get(edge.source)) and (target := labels.get(edge.target))
    ]
    stored = [one for one in clips_of(session, video) if one.index == clip]
    (shown,) = shown_clips(session, video, stored, characters_at(session, video, last), last)
    around = [number for number in (clip - 1, clip, clip + 1) if 0 <= number <= last]
    return RememberedMoment(
        strategy="",
        writers=patch_writers(session, [video]),
        nodes=(*(_line(one) for one in shown.lines if _is_near(one.span, at_ms)), *events),
        relations=tuple(relations),
        relations_total=len(relations),
        frames=tuple(_nearest(frames_of(session, video, around), at_ms)),
    )


def _line(line: ShownLine) -> MomentNode:
    return MomentNode(
        ref=f"m{line.id}", level=LINE, label=line.source, text=line.text, span=line.span
    )


def _is_near(span: TimeSpan, at_ms: int) -> bool:
    """Check whether a line is of the moment: it holds it, or is an instant of its second."""
    return span.start_ms <= at_ms < max(span.end_ms, span.start_ms + 1_000)


def _nearest(frames: Sequence[StoredKeyframe], at_ms: int) -> Iterator[MomentFrame]:
    near = [one for one in frames if abs(one.time_ms - at_ms) <= NEAR_MS]
    nearest = sorted(near, key=lambda one: abs(one.time_ms - at_ms))[:MAX_FRAMES]
    for one in sorted(nearest, key=lambda one: one.time_ms):
        yield MomentFrame(ref=f"k{one.id}", time_ms=one.time_ms, blob=one.blob, reason="")


def _built(
    session: Session, scope: Scope, clip: int, at_ms: int, names: Names
) -> Iterator[RememberedMoment]:
    nodes = nodes_at(session, scope, at_ms, MAX_NODES)
    relations = relations_at(session, scope, at_ms, clip, MAX_RELATIONS)
    frames = frames_near(session, scope, at_ms, NEAR_MS, MAX_FRAMES)
    ids = [end for one in relations for end in (one.subject, one.target)]
    entities = entities_named(session, ids)
    for builder, writers in builders_of(session, scope.video).items():
        own = [one for one in relations if one.builder == builder]
        yield RememberedMoment(
            strategy=builder,
            writers=writers,
            nodes=tuple(_node(one, names) for one in nodes if one.builder == builder),
            relations=tuple(_relation(one, entities, names) for one in own),
            relations_total=own[0].total if own else 0,
            entities=tuple(_entities(own, entities, names)),
            frames=tuple(
                MomentFrame(ref=f"f{f.id}", time_ms=f.time_ms, blob=f.blob, reason=f.reason)
                for f in frames
                if f.builder == builder
            ),
        )


def _node(one: NodeAt, names: Names) -> MomentNode:
    return MomentNode(
        ref=f"n{one.id}",
        level=one.level,
        label=with_current_names(one.label, names),
        text=with_current_names(one.text, names),
        span=one.span,
    )


def _relation(one: RelationAt, entities: Mapping[int, EntityAt], names: Names) -> MomentRelation:
    subject, target = (entities[end].name for end in (one.subject, one.target))
    text = subject if one.subject == one.target else f"{subject} {one.predicate} {target}"
    return MomentRelation(
        ref=f"r{one.id}", level=one.level, text=with_current_names(text, names), span=one.span
    )


def _entities(
    relations: Iterable[RelationAt], entities: Mapping[int, EntityAt], names: Names
) -> Iterator[MomentEntity]:
    """Yield the ends of relations, each once."""
    for number in dict.fromkeys(end for one in relations for end in (one.subject, one.target)):
        one = entities[number]
        text = entity_text(EntityKey(one.type, one.name), one.attributes)
        yield MomentEntity(ref=f"e{one.id}", text=with_current_names(text, names))
