"""``homer search``: one retrieval."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from agent.strategy import Strategy
from cli.console import note, say, say_json, say_table
from cli.options import (
    SEVERAL_WORDS,
    AsOf,
    Json,
    Profile,
    Videos,
    WordsCommand,
    parse_as_of,
    parse_at,
)
from domain.asking import LIKELIEST_ONLY, PICTURES_NOT_SEARCHED, Mode
from domain.errors import InputError
from domain.people import tags_in_words
from flows.workspace import open_workspace
from retrieval.built_views import unbuilt_note
from retrieval.closeness import close_evidence
from retrieval.encoders import encoder_note
from retrieval.images_alike import example_of
from retrieval.result import Retrieval
from retrieval.retrievers import Retrievers
from retrieval.search_cost import recorded_search
from retrieval.search_once import search_alike, search_once
from store.queries.calls import SearchUsage
from views.answer_lines import one_line
from views.words import format_span, plain_line, shortened


class SearchMode(StrEnum):
    """The modes that need no focus."""

    EVENT = "event"
    VIDEO = "video"
    KEYFRAME = "keyframe"


def search(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="What to look for, in quotes.")
    ] = "",
    video: Videos = None,
    mode: Annotated[
        SearchMode, typer.Option("--mode", "-m", help="What to find.")
    ] = SearchMode.VIDEO,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="For keyframe: the time to look at, 12:30 or a span."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGE",
            help="For keyframe, without QUERY: images like this one, k12 or f7, or an image file.",
        ),
    ] = None,
    as_of: AsOf = None,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Search the memory once, and print what is close with scores and times, 10 at most.

    The modes are video (what was said, read and seen), event (segments) and keyframe (images).
    Without --video all videos are searched. --at and --like need no QUERY.

    \b
    Examples:
      homer search "the budget" -v talk
      homer search "a red car" --mode keyframe
      homer search -v talk --mode keyframe --at 12:30-12:45
      homer search --mode keyframe --like k12
    """
    as_of_ms, span = parse_as_of(as_of), parse_at(at, Mode(mode))
    if like is not None:
        _refuse_other_searches(query, at, Mode(mode))
    with open_workspace(profile) as workspace:
        if like is not None:
            example = partial(example_of, workspace.store, like=like)
            found, titles = search_alike(workspace.store, example, video or (), as_of_ms)
            return say_found(found) if json else show_found(found, titles)
        retrievers = Retrievers(workspace.store, workspace.toolbox, workspace.settings)
        with recorded_search(workspace.store) as cost:
            found, titles = search_once(
                workspace.store, retrievers, Mode(mode), query, video or (), as_of_ms, span=span
            )
    if json:
        return say_found(found, cost.usage)
    show_found(found, titles)
    return show_cost(cost.usage)


def _refuse_other_searches(query: str, at: str | None, mode: Mode) -> None:
    """Raise an InputError if a search by an example is also another search."""
    if mode is not Mode.KEYFRAME:
        raise InputError("--like is for images: say --mode keyframe")
    if query or at is not None:
        raise InputError("--like searches by the image alone: leave out the query and --at")


SHOWN = 10
"""Pieces of evidence that are printed at most."""


def show_found(found: Retrieval, titles: dict[str, str], strategy: Strategy | None = None) -> None:
    """Print what a search found that is close, with scores and times; of people the names.

    ``strategy``: whose memory was searched, if it has one of its own.
    """
    if found.unloaded:
        note(encoder_note(found.unloaded))
    if found.selected:
        note(LIKELIEST_ONLY)
    if found.unbuilt and strategy is not None:
        left_out = strategy.windows is None
        note(unbuilt_note(found.unbuilt, strategy.memory, left_out=left_out))
    shown = close_evidence(found)[:SHOWN]
    if not shown:
        nearest = "; --json has what is nearest" if found.evidence else ""
        note(f"nothing close was found{nearest}")
        return note(PICTURES_NOT_SEARCHED) if found.unseen else None
    if found.focus is not None:
        say(f"event {format_span(found.focus.span)}  {one_line(found.focus.label)}")
    rows = (
        (
            f"{e.score:.2f}",
            format_span(e.span),
            plain_line(titles.get(e.video, e.video)),
            e.ref,
            shortened(tags_in_words(e.text)),
        )
        for e in shown
    )
    say_table(("score", "time", "video", "ref", "what"), rows)
    if len(shown) < len(found.evidence):
        note(f"{len(found.evidence) - len(shown)} less close ones are not shown: --json has all")
    for neighbour in found.neighbours:
        say(f"near it: {format_span(neighbour.span)}  {one_line(neighbour.label)}")
    return None


def show_cost(usage: SearchUsage) -> None:
    """Print what a search took of an embeddings endpoint, if it was sent anything."""
    if usage.requests:
        note(f"the search took {usage} of the embeddings endpoint")


def say_found(found: Retrieval, usage: SearchUsage | None = None) -> None:
    """Print what a search found as JSON, and what it took if it was sent to an endpoint."""
    took = {"usage": usage._asdict()} if usage and usage.requests else {}
    say_json(found.model_dump(mode="json") | took)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=WordsCommand, context_settings=SEVERAL_WORDS, no_args_is_help=True)(search)
