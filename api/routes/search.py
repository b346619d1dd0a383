"""A single search of the memory."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from api.answers import Retrieved, cite, image_path, with_scores
from api.app_state import ApiState, State
from api.params import AsOf, LookAt, Profile, as_of_ms, span_of
from domain.asking import PICTURES_NOT_SEARCHED, Mode, ToolName
from domain.errors import InputError
from domain.memories import Segment
from domain.people import tags_in_words
from retrieval.images_alike import example_of_ref
from retrieval.result import Retrieval, ShownImage
from retrieval.search_cost import recorded_search
from retrieval.search_once import search_alike, search_once
from store.queries.calls import SearchUsage
from strategies.named_tools import find_tool, list_tools, use_once
from views.strategies import ToolLine, tool_lines

router = APIRouter(tags=["search"])
_SEGMENT = re.compile(r"s?([1-9]\d{0,17})")

SearchQuery = Annotated[
    str,
    Query(
        max_length=2000,
        description="What to look for; `at` and `like` need none.",
        examples=["rain"],
    ),
]
SearchedMode = Annotated[Mode, Query(description="What to search for.")]
Focus = Annotated[
    str | None, Query(max_length=20, description="For `neighbor`: the event to move from, s12.")
]
Like = Annotated[
    str | None,
    Query(max_length=20, description="For `keyframe`: images that look like this one, k12 or f7."),
]


class EventFound(BaseModel):
    """An event: ``ref`` is what NEIGHBOR takes as `focus`."""

    ref: str
    video: str
    label: str
    summary: str
    start_s: float
    end_s: float


class ImageFound(BaseModel):
    """An image that the search selected; ``image`` is its path."""

    ref: str
    video: str
    clip: int
    time_s: float
    description: str
    score: float
    image: str


class CostOfSearch(BaseModel):
    """What a search took of the profile's embeddings endpoint."""

    requests: int
    tokens: int
    cost_usd: float = Field(description="US dollars; 0 where no price is known")


class Found(BaseModel):
    """The results of a search, best first.

    ``nothing_close``: no score is high enough to count; the nearest results are listed.
    """

    mode: ToolName = Field(description="the search mode, or the tool")
    query: str
    focus: EventFound | None = Field(description="the event that the search ended on")
    evidence: list[Retrieved]
    neighbours: list[EventFound] = Field(description="events one edge away from the focus")
    images: list[ImageFound]
    nothing_close: bool
    searched: str = Field(description="what was searched, in words")
    unbuilt: list[str] = Field(
        description="titles of videos of which the memory of the tool's strategy is not built, so "
        "that it was not searched"
    )
    note: str = Field(description="where nothing close was found: what could not be searched")
    cost: CostOfSearch | None = Field(
        default=None, description="where the text encoder is behind an endpoint"
    )


@router.get("/search", summary="Search the memory once")
def search(
    state: State,
    q: SearchQuery = "",
    mode: SearchedMode = Mode.VIDEO,
    video: Annotated[
        list[str] | None,
        Query(max_length=100, description="Ids or titles; without any, all videos. Repeatable."),
    ] = None,
    as_of: AsOf = None,
    focus: Focus = None,
    at: LookAt = None,
    like: Like = None,
    profile: Profile = None,
) -> Found:
    """One search with scores and times, like `homer search`.

    - `event`: events, and the events linked to them;
    - `video`: what was said, read and seen;
    - `keyframe`: images, by their content; those of the time `at`; or those that look like `like`;
    - `neighbor`: from the event `focus` to the neighbour whose label is `q`.
    """
    at_ms, profile_name = as_of_ms(as_of), state.profile_name(profile)
    if mode is not Mode.KEYFRAME and (at is not None or like is not None):
        raise InputError("at and like are for images: use mode=keyframe")
    with state.searches.slot():
        if like is not None:
            if q or at is not None:
                raise InputError("like searches by the image alone: leave out q and at")
            example = partial(example_of_ref, state.store, ref=like)
            result, _ = search_alike(state.store, example, video or (), at_ms)
            return _search_body(state, result, at_ms)
        with recorded_search(state.store) as cost:
            result, _ = search_once(
                state.store,
                state.retrievers(profile_name),
                mode,
                q,
                video or (),
                at_ms,
                _parse_focus(focus),
                span_of(at),
            )
        return _search_body(state, result, at_ms, cost.usage)


class ToolRequest(BaseModel):
    """A use of a tool: its arguments, videos and time."""

    model_config = ConfigDict(extra="forbid")

    query: Annotated[str, Field(max_length=2000)] = ""
    arguments: dict[str, Any] = Field(
        default={}, description="besides `query`: see the tool's schema in GET /tools"
    )
    videos: Annotated[list[Annotated[str, Field(max_length=400)]], Field(max_length=100)] = Field(
        default=[], description="Ids or titles; without any, all videos."
    )
    as_of: Annotated[str, Field(max_length=40)] | None = Field(
        default=None, description="As of this time of the video: MM:SS, H:MM:SS or d2 H:MM:SS."
    )
    strategy: Annotated[str, Field(max_length=80)] | None = Field(
        default=None, description="The strategy whose tool it is, if several have one."
    )
    profile: Annotated[str, Field(max_length=100)] | None = Field(
        default=None, description="Set of models; the server's default."
    )


@router.get("/tools", summary="List tools")
def tools() -> tuple[ToolLine, ...]:
    """The tools of all strategies, with the JSON schemas of their arguments."""
    return tool_lines(list_tools())


@router.post("/tools/{name}", summary="Use a tool once")
def use_tool(
    state: State,
    name: Annotated[str, Path(max_length=40, description="Its name: GET /tools.")],
    body: ToolRequest,
) -> Found:
    """One use of a tool without a language model, like `homer tool`."""
    named, at_ms = find_tool(name, body.strategy), as_of_ms(body.as_of)
    run = state.tools(state.profile_name(body.profile))
    with state.searches.slot():
        with recorded_search(state.store) as cost:
            found, _ = use_once(
                state.store, run, named, body.query, body.arguments, body.videos, at_ms
            )
        return _search_body(state, found, at_ms, cost.usage)


def _parse_focus(focus: str | None) -> int | None:
    match = _SEGMENT.fullmatch(focus) if focus is not None else None
    if focus is not None and match is None:
        raise InputError(f"focus: {focus[:20]!r} is not an event such as s12")
    return int(match[1]) if match else None


def _search_body(
    state: ApiState, result: Retrieval, as_of_ms: int | None, usage: SearchUsage | None = None
) -> Found:
    return Found(
        mode=result.mode,
        query=result.query,
        focus=None if result.focus is None else _event_body(result.focus),
        evidence=with_scores(cite(state.store, result.evidence, as_of_ms), result.evidence),
        neighbours=[_event_body(item) for item in result.neighbours],
        images=[_image_body(item) for item in result.images],
        nothing_close=result.nothing_close,
        searched=result.searched,
        unbuilt=list(result.unbuilt),
        note=PICTURES_NOT_SEARCHED if result.unseen and result.nothing_close else "",
        cost=CostOfSearch(**usage._asdict()) if usage and usage.requests else None,
    )


def _event_body(segment: Segment) -> EventFound:
    return EventFound(
        ref=f"s{segment.id}",
        video=segment.video,
        label=tags_in_words(segment.label),
        summary=tags_in_words(segment.summary),
        start_s=segment.span.start_ms / 1000,
        end_s=segment.span.end_ms / 1000,
    )


def _image_body(image: ShownImage) -> ImageFound:
    return ImageFound(
        ref=image.ref,
        video=image.video,
        clip=image.clip,
        time_s=image.time_ms / 1000,
        description=tags_in_words(image.description),
        score=round(image.score, 4),
        image=image_path(image.video, image.ref),
    )
