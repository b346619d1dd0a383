"""The outline of a video: its chapters with times, as the memory of a strategy has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from domain.base import Frozen
from domain.built import Node, OutlineLevel
from domain.errors import InputError
from domain.memories import Scope
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.words import plain_line
from flows.build import build
from flows.workspace import open_workspace
from library.params import AsOf, OnCommandLine, VideoName
from retrieval.people_in_query import names_as_of, with_current_names
from store.database import Store
from store.progress import SILENT, Progress, import_progress
from store.queries.builds import built_through
from store.queries.clips import memory_view
from store.queries.outline import nodes_of_levels
from store.queries.videos import find_video
from strategies.registry import strategy_of_outlines

DEEPEST = 3
"""Levels of chapters at most."""
Depth = Annotated[
    int,
    Field(
        ge=1,
        le=DEEPEST,
        description="Levels of chapters: 1 super events, 2 also macro events, 3 also what happens.",
    ),
    OnCommandLine(metavar="N"),
]


class OutlineFormat(StrEnum):
    """How an outline is printed."""

    TEXT = "text"
    MD = "md"
    YOUTUBE = "youtube"
    VTT = "vtt"


class Chapter(Frozen):
    """A part of a video, with the parts that it is made of."""

    span: TimeSpan
    title: str
    text: str
    parts: tuple[Chapter, ...] = ()


class Outline(Frozen):
    """What a video is about, and its chapters in order of time; ``written``: how it is printed."""

    video: str
    title: str
    text: str
    depth: int = Field(description="levels of chapters")
    chapters: tuple[Chapter, ...]
    written: OutlineFormat = Field(default=OutlineFormat.TEXT, exclude=True)

    def finest(self) -> list[Chapter]:
        """Return the chapters of the finest level, which are a partition of what was watched."""
        return list(_finest(self.chapters, self.depth))


def _finest(chapters: Sequence[Chapter], depth: int) -> Iterator[Chapter]:
    for chapter in chapters:
        if depth > 1:
            yield from _finest(chapter.parts, depth - 1)
        else:
            yield chapter


def outline(
    store: Store,
    video: VideoName,
    depth: Depth = 2,
    written: Annotated[
        OutlineFormat,
        Field(description="How it is printed: youtube for a description, vtt for a track."),
        OnCommandLine("--format", only=True),
    ] = OutlineFormat.TEXT,
    build_first: Annotated[
        bool,
        Field(description="First build what is missing of it."),
        OnCommandLine("--build", only=True),
    ] = False,
    as_of: AsOf = None,
    profile: Annotated[
        str | None,
        Field(description="The models that build it. Default: as configured."),
        OnCommandLine("--profile", "-p", metavar="NAME|FILE", only=True),
    ] = None,
    progress: Progress = SILENT,
) -> Outline:
    """Print the chapters of a video with their times.

    They are of the memory of a strategy, which 'homer build' makes; 'homer outline VIDEO --build'
    makes it at once. Formats youtube and vtt have the finest chapters only, one after another.

    Examples:
      homer outline talk --build
      homer outline talk --format youtube
      homer outline talk --depth 1 --format md

    Raises:
        NotFound: there is no such video.
        InputError: its memory was not built; the message has the command that builds it.
    """
    if build_first:
        strategy = strategy_of_outlines()
        with open_workspace(profile, store.home) as workspace:
            build(workspace, video, strategy, import_progress(progress, strategy.name))
    return load_outline(store, video, depth, as_of).model_copy(update={"written": written})


def load_outline(store: Store, name: str, depth: int, as_of_ms: int | None = None) -> Outline:
    """Return the outline of a video as of a moment.

    Args:
        name: the video's id, an unambiguous beginning of it, or its title.
        depth: levels of chapters, from 1 to 3, coarse ones first.
        as_of_ms: the moment; None: the end of what was watched.

    Raises:
        NotFound: there is no such video.
        InputError: its memory was not built; the message has the command that builds it.
    """
    strategy = strategy_of_outlines()
    # The first level is the whole video: chapters are of those below.
    levels = strategy.levels[: depth + 1]
    with store.begin(snapshot=True) as session:
        video = find_video(session, name)
        scope: Scope = memory_view(session, [video.id], as_of_ms).scopes[0]
        nodes = nodes_of_levels(session, scope, strategy.memory, [one.level for one in levels])
        built = built_through(session, video.id, strategy.memory) >= 0
        names = names_as_of(session, scope)
    whole = next((node for node in nodes if node.level == levels[0].level), None)
    if whole is None:
        command = f"homer build {video.id[:8]} --memory {strategy.name}"
        if built:
            raise InputError(f"{video.title} has no outline yet: {command}")
        raise InputError(f"{video.title} has no outline: {command}")

    def words(text: str) -> str:
        return plain_line(tags_in_words(with_current_names(text, names)))

    return Outline(
        video=video.id,
        title=words(video.title),
        text=words(description_of(whole)),
        depth=depth,
        chapters=tuple(_chapters(whole.span, levels[1:], nodes, words)),
    )


def title_of(node: Node, level: OutlineLevel) -> str:
    """Return the title of a node: its label, else its text."""
    return node.label if level.titled and node.label else node.text


def description_of(node: Node) -> str:
    """Return what a node says in prose; lines after the first are its builder's own."""
    return node.text.splitlines()[0] if node.text else ""


def _chapters(
    span: TimeSpan,
    levels: Sequence[OutlineLevel],
    nodes: Sequence[Node],
    words: Callable[[str], str],
) -> Iterator[Chapter]:
    """Yield the nodes of the first level that begin in a span, with those of the next ones."""
    if not levels:
        return
    level, finer = levels[0], levels[1:]
    for node in nodes:
        if node.level != level.level or not span.start_ms <= node.span.start_ms < span.end_ms:
            continue
        # The finer levels look only at what is inside: looking through all nodes for each is
        # quadratic.
        inside = (
            [one for one in nodes if node.span.start_ms <= one.span.start_ms < node.span.end_ms]
            if finer
            else ()
        )
        text = description_of(node)
        yield Chapter(
            span=node.span,
            title=words(title_of(node, level)),
            text=words(text) if level.titled and text != node.label else "",
            parts=tuple(_chapters(node.span, finer, inside, words)),
        )


def borders(outline: Outline) -> list[int]:
    """Return where the finest chapters but the first begin, in milliseconds."""
    return [chapter.span.start_ms for chapter in outline.finest()[1:]]
