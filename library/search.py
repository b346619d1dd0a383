"""Searching the memory once, without a language model: in one mode, or with a strategy's tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from domain.asking import (
    LIKELIEST_ONLY,
    PICTURES_NOT_SEARCHED,
    Mode,
)
from domain.errors import InputError
from domain.memories import Segment
from domain.moments import Found, Moment, Retrieval, SearchCost, image_path
from domain.people import tags_in_words
from domain.time import TimeSpan
from flows.workspace import Workspace
from library.moments import moments_of
from library.params import AsOf, OnCommandLine, Span, Videos
from library.videos import videos_named
from models.text_endpoint import recorded_search
from retrieval.relevance import close_evidence
from retrieval.search_once import example_of, example_of_ref, search_alike, search_once
from store.database import Store
from strategies.named_tools import ToolLine, find_tool, list_tools, parse_arguments, use_once

_SEGMENT = re.compile(r"s?([1-9]\d{0,17})")

Query = Annotated[str, Field(max_length=2000, description="What to look for.")]


def search(
    workspace: Workspace,
    query: Annotated[
        str,
        Field(max_length=2000, description="What to look for; `at` and `like` need none."),
        OnCommandLine(argument=True),
    ] = "",
    video: Videos = (),
    mode: Annotated[
        Mode, Field(description="What to find."), OnCommandLine("--mode", "-m")
    ] = Mode.VIDEO,
    at: Annotated[
        Span | None,
        Field(description="For keyframe: the time to look at, 12:30 or a span."),
        OnCommandLine(metavar="TIME"),
    ] = None,
    like: Annotated[
        str | None,
        Field(
            max_length=20, description="For keyframe: images that look like this one, k12 or f7."
        ),
        OnCommandLine(metavar="IMAGE"),
    ] = None,
    like_file: Annotated[
        Path | None,
        Field(description="For keyframe: images that look like the one in this file."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    focus: Annotated[
        str | None,
        Field(max_length=20, description="For neighbor: the event to move from, s12."),
        OnCommandLine(metavar="EVENT"),
    ] = None,
    as_of: AsOf = None,
) -> Found:
    """Search the memory once, and print what is close with scores and times, 10 at most.

    The modes are video (what was said, read and seen), event (events, and those linked to them),
    keyframe (images, by their content, of a time, or like another one) and neighbor (from the event
    `focus` to the neighbour whose label is the query). Without a video all are searched.

    Examples:
      homer search "the budget" -v talk
      homer search "a red car" --mode keyframe
      homer search -v talk --mode keyframe --at 12:30-12:45
      homer search --mode keyframe --like k12

    Raises:
        InputError: the query is empty, nothing was watched, or arguments do not go together.
        NotFound: there is no such video, event, neighbour or image.
    """
    example = like if like_file is None else str(like_file)
    if mode is not Mode.KEYFRAME and (at is not None or example is not None):
        raise InputError("a time and an example are for images: use the mode keyframe")
    moved = _SEGMENT.fullmatch(focus) if focus is not None else None
    if focus is not None and moved is None:
        raise InputError(f"focus: {focus[:20]!r} is not an event such as s12")
    store = workspace.store
    if example is not None:
        if query or at is not None:
            raise InputError("an example searches by the image alone: leave out query and time")
        # A ref is of an image in view; only who sits at the machine names files of it.
        read = example_of_ref if like_file is None else example_of
        found, _ = search_alike(store, lambda view: read(store, view, example), video, as_of)
        return found_of(store, found, as_of)
    with recorded_search(store) as cost:
        number = int(moved[1]) if moved else None
        found, _ = search_once(
            store, workspace.retrievers, mode, query, video, as_of, number, span=at
        )
    return found_of(store, found, as_of, cost.usage)


def tools(
    store: Store,  # noqa: ARG001 - every act says where it acts
    strategy: Annotated[
        str | None,
        Field(max_length=80, description="Only the tools of this strategy."),
        OnCommandLine("--strategy", "-s", metavar="NAME"),
    ] = None,
) -> list[ToolLine]:
    """List the tools of strategies: what they look things up with when they answer a question.

    Examples:
      homer tools
      homer tools --strategy NAME --json

    Raises:
        NotFound: there is no such strategy.
    """
    return [one.line for one in list_tools(strategy)]


def use_tool(
    workspace: Workspace,
    name: Annotated[str, Field(max_length=40, description="The tool: see 'homer tools'.")],
    query: Annotated[
        str,
        Field(max_length=2000, description="What to look for, if it takes that."),
        OnCommandLine(argument=True),
    ] = "",
    video: Videos = (),
    arguments: Annotated[
        dict[str, Any],
        BeforeValidator(lambda given: given if isinstance(given, dict) else parse_arguments(given)),
        Field(description="Other arguments, by the tool's schema. Repeatable on a command line."),
        OnCommandLine("--argument", "-a", metavar="KEY=VALUE"),
    ] = {},  # noqa: B006 - it is only read
    strategy: Annotated[
        str | None,
        Field(max_length=80, description="The strategy whose tool it is, if several have one."),
        OnCommandLine("--strategy", "-s", metavar="NAME"),
    ] = None,
    as_of: AsOf = None,
) -> Found:
    """Use a tool of a strategy once, without a language model, and print what it finds.

    Examples:
      homer tool event "the budget" -v talk
      homer tool NAME "the budget" -v talk -a lines=5 --json

    Raises:
        InputError: an argument is unknown, missing or wrong, or nothing was watched or built yet.
        NotFound: there is no such tool, strategy or video, or it does not find what is named.
        Ambiguous: several strategies have such a tool.
    """
    named, store = find_tool(name, strategy), workspace.store
    with recorded_search(store) as cost:
        found, _ = use_once(store, workspace.tools, named, query, arguments, video, as_of)
    return found_of(store, found, as_of, cost.usage, named.unbuilt_note)


def found_of(
    store: Store,
    result: Retrieval,
    as_of_ms: int | None = None,
    cost: SearchCost | None = None,
    unbuilt: Callable[[Sequence[str]], str] = lambda _: "",
) -> Found:
    """Return what a search found as doors show it; ``unbuilt`` words what was not searched."""
    notes = (
        LIKELIEST_ONLY if result.selected else "",
        unbuilt(result.unbuilt),
        PICTURES_NOT_SEARCHED if result.unseen and result.nothing_close else "",
    )
    images = {image.video for image in result.images}
    segments = [*([result.focus] if result.focus else []), *result.neighbours]
    titles = {
        name: video.title
        for name, video in videos_named(
            store, [*images, *(segment.video for segment in segments)]
        ).items()
    }
    return Found(
        mode=result.mode,
        query=result.query,
        focus=None if result.focus is None else _event(result.focus, titles),
        evidence=tuple(moments_of(store, result.evidence, as_of_ms)),
        close=len(close_evidence(result)),
        neighbours=tuple(_event(segment, titles) for segment in result.neighbours),
        images=tuple(
            Moment(
                ref=image.ref,
                video=image.video,
                title=titles.get(image.video, image.video),
                span=TimeSpan.of(image.time_ms, image.time_ms),
                clip=image.clip,
                text=tags_in_words(image.description),
                score=round(image.score, 4),
                image=image_path(image.video, image.ref),
            )
            for image in result.images
        ),
        searched=result.searched,
        unbuilt=result.unbuilt,
        notes=tuple(filter(None, notes)),
        cost=cost if cost and cost.requests else None,
    )


def _event(segment: Segment, titles: dict[str, str]) -> Moment:
    return Moment(
        ref=f"s{segment.id}",
        video=segment.video,
        title=titles.get(segment.video, segment.video),
        span=segment.span,
        label=tags_in_words(segment.label),
        text=tags_in_words(segment.summary),
    )
