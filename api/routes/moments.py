"""What is remembered of a moment of a video, strategy by strategy."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.app_state import State
from api.params import AsOf, as_of_ms, span_of
from api.routes.videos import Name
from domain.people import tags_in_words
from domain.time import TimeSpan
from library.moments import image_path
from views.library import resolve_video
from views.moment_memory import (
    MomentFrame,
    MomentNode,
    MomentRelation,
    RememberedMoment,
    load_moment,
)

router = APIRouter(tags=["videos"])

Moment = Annotated[
    str,
    Query(
        max_length=40,
        description="The moment: seconds, MM:SS, H:MM:SS or d2 H:MM:SS.",
        examples=["12:30"],
    ),
]


class NodeTold(BaseModel):
    """Something whose span holds the moment: a caption, an event, a line."""

    ref: str
    level: str = Field(description="the scale or kind")
    label: str
    text: str
    start_s: float
    end_s: float


class RelationTold(BaseModel):
    """A relation that holds at the moment; its span is when it was stated."""

    ref: str | None
    level: str
    text: str
    start_s: float
    end_s: float


class EntityTold(BaseModel):
    """An end of these relations."""

    ref: str
    text: str


class FrameTold(BaseModel):
    """A stored image near the moment; ``image`` is its path."""

    ref: str
    time_s: float
    reason: str = Field(description="why the strategy kept it")
    image: str


class StrategyMemory(BaseModel):
    """What a strategy remembers of the moment; ``strategy`` is null for what all share."""

    strategy: str | None
    writers: list[str] = Field(
        description="who wrote its memory of the video, of what all share the event graph: "
        "rules, or models by name; empty: not known"
    )
    nodes: list[NodeTold]
    relations: list[RelationTold] = Field(description="the first of `relations_total`")
    relations_total: int
    entities: list[EntityTold]
    frames: list[FrameTold]


class MomentTold(BaseModel):
    """What is remembered of a moment of a video."""

    video: str
    at_s: float
    memory: list[StrategyMemory]


@router.get("/videos/{name}/memory", summary="What is remembered of a moment")
def memory(state: State, name: Name, at: Moment, as_of: AsOf = None) -> MomentTold:
    """What all strategies share of the moment, then what each built of its own.

    Nodes are those whose span holds it, relations those that hold then, frames those near it.
    """
    span = span_of(at)
    at_ms = span.start_ms if span else 0
    with state.store.begin() as session:
        video = resolve_video(session, name).id
    found = load_moment(state.store, video, at_ms, as_of_ms(as_of))
    return MomentTold(video=video, at_s=at_ms / 1000, memory=[_memory(video, one) for one in found])


def _memory(video: str, one: RememberedMoment) -> StrategyMemory:
    return StrategyMemory(
        strategy=one.strategy or None,
        writers=list(one.writers),
        nodes=[_node(node) for node in one.nodes],
        relations=[_relation(relation) for relation in one.relations],
        relations_total=one.relations_total,
        entities=[EntityTold(ref=e.ref, text=tags_in_words(e.text)) for e in one.entities],
        frames=[_frame(video, frame) for frame in one.frames],
    )


def _node(node: MomentNode) -> NodeTold:
    return NodeTold(
        ref=node.ref,
        level=node.level,
        label=tags_in_words(node.label),
        text=tags_in_words(node.text),
        **_seconds(node.span),
    )


def _relation(one: MomentRelation) -> RelationTold:
    return RelationTold(
        ref=one.ref or None, level=one.level, text=tags_in_words(one.text), **_seconds(one.span)
    )


def _frame(video: str, one: MomentFrame) -> FrameTold:
    return FrameTold(
        ref=one.ref, time_s=one.time_ms / 1000, reason=one.reason, image=image_path(video, one.ref)
    )


def _seconds(span: TimeSpan) -> dict[str, float]:
    return {"start_s": span.start_ms / 1000, "end_s": span.end_ms / 1000}
