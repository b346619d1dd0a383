"""Searching the memory once."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.answers import Retrieved, cited, keyframe_path, scored
from api.app_state import ApiState, Desk
from api.params import AsOf, Profile, as_of_ms
from domain.asking import Mode
from domain.errors import InputError
from domain.memories import Segment
from domain.people import tags_in_words
from retrieval.result import Retrieval, ShownKeyframe
from retrieval.search_once import search_once

router = APIRouter(tags=["search"])
_SEGMENT = re.compile(r"s?([1-9]\d{0,17})")


class EventFound(BaseModel):
    """An event: ``ref`` is what NEIGHBOR takes as `focus`."""

    ref: str
    video: str
    label: str
    summary: str
    start_s: float
    end_s: float


class ImageFound(BaseModel):
    """A keyframe that was chosen: ``image`` is where it is."""

    ref: str
    video: str
    clip: int
    time_s: float
    description: str
    score: float
    image: str


class Found(BaseModel):
    """What a search found, best first.

    ``nothing_close``: no score is high enough to mean anything; what was nearest is listed.
    """

    mode: Mode
    query: str
    focus: EventFound | None = Field(description="the event that the search ended on")
    evidence: list[Retrieved]
    neighbours: list[EventFound] = Field(description="events one edge away from the focus")
    images: list[ImageFound]
    nothing_close: bool
    searched: str = Field(description="where was looked, in words")


@router.get("/search", summary="Search the memory once")
def search(
    desk: Desk,
    q: Annotated[
        str,
        Query(min_length=1, max_length=2000, description="What to look for.", examples=["rain"]),
    ],
    mode: Annotated[Mode, Query(description="What is looked for.")] = Mode.VIDEO,
    video: Annotated[
        list[str] | None,
        Query(max_length=100, description="Ids or titles; without any, all videos. Repeatable."),
    ] = None,
    as_of: AsOf = None,
    focus: Annotated[
        str | None, Query(max_length=20, description="For `neighbor`: the event to move from, s12.")
    ] = None,
    profile: Profile = None,
) -> Found:
    """One search with scores and times, as `homer search` does it.

    - `event`: what went on, and what it is joined with;
    - `video`: what was said, read and seen;
    - `keyframe`: images, by what is on them;
    - `neighbor`: from the event `focus` to the neighbour whose label is `q`.
    """
    at, chosen = as_of_ms(as_of), desk.named(profile)
    with desk.searches.place():
        found, _ = search_once(
            desk.store, desk.retrievers(chosen), mode, q, video or (), at, _segment(focus)
        )
        return _told(desk, found, at)


def _segment(focus: str | None) -> int | None:
    named = _SEGMENT.fullmatch(focus) if focus is not None else None
    if focus is not None and named is None:
        raise InputError(f"focus: {focus[:20]!r} is no event, such as s12")
    return int(named[1]) if named else None


def _told(desk: ApiState, found: Retrieval, at: int | None) -> Found:
    return Found(
        mode=found.mode,
        query=found.query,
        focus=None if found.focus is None else _event(found.focus),
        evidence=scored(cited(desk.store, found.evidence, at), found.evidence),
        neighbours=[_event(one) for one in found.neighbours],
        images=[_image(one) for one in found.images],
        nothing_close=found.nothing_close,
        searched=found.searched,
    )


def _event(one: Segment) -> EventFound:
    return EventFound(
        ref=f"s{one.id}",
        video=one.video,
        label=tags_in_words(one.label),
        summary=tags_in_words(one.summary),
        start_s=one.span.start_ms / 1000,
        end_s=one.span.end_ms / 1000,
    )


def _image(one: ShownKeyframe) -> ImageFound:
    return ImageFound(
        ref=one.ref,
        video=one.video,
        clip=one.clip,
        time_s=one.time_ms / 1000,
        description=tags_in_words(one.description),
        score=round(one.score, 4),
        image=keyframe_path(one.video, one.id),
    )
