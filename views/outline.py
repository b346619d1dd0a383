"""The outline of a video: its chapters with times, as the memory of a strategy has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pydantic import Field, computed_field

from domain.base import Frozen
from domain.built import OutlineLevel
from domain.errors import InputError
from domain.memories import Scope
from domain.people import tags_in_words
from domain.time import TimeSpan
from people.corrected import people_as_of
from retrieval.people_in_query import view_people, with_current_names
from store.database import Store
from store.queries.builds import built_through
from store.queries.clips import memory_view
from store.queries.outline import OutlineNode, nodes_of_levels
from strategies.registry import strategy_of_outlines
from views.library import resolve_video
from views.words import format_span, plain_line, without_markup

_MARKS = re.compile(r"[\\`*_\[\]#|~]")
DEEPEST = 3
"""Levels of chapters at most."""


class Chapter(Frozen):
    """A part of a video, with the parts that it is made of."""

    span: TimeSpan = Field(exclude=True)
    title: str
    text: str
    parts: tuple[Chapter, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def start_s(self) -> float:
        """When it begins, in seconds."""
        return self.span.start_ms / 1000

    @computed_field  # type: ignore[prop-decorator]
    @property
    def end_s(self) -> float:
        """When it ends, in seconds."""
        return self.span.end_ms / 1000


class Outline(Frozen):
    """What a video is about, and its chapters in order of time."""

    video: str
    title: str
    text: str
    depth: int = Field(description="levels of chapters")
    chapters: tuple[Chapter, ...]

    def finest(self) -> list[Chapter]:
        """Return the chapters of the finest level, which are a partition of what was watched."""
        return list(_finest(self.chapters, self.depth))


def _finest(chapters: Sequence[Chapter], depth: int) -> Iterator[Chapter]:
    for chapter in chapters:
        if depth > 1:
            yield from _finest(chapter.parts, depth - 1)
        else:
            yield chapter


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
    levels = strategy.levels[: depth + 1]
    with store.begin(snapshot=True) as session:
        video = resolve_video(session, name)
        scope: Scope = memory_view(session, [video.id], as_of_ms).scopes[0]
        nodes = nodes_of_levels(session, scope, strategy.memory, [one.level for one in levels])
        built = built_through(session, video.id, strategy.memory) >= 0
        people = view_people({video.id: people_as_of(session, scope)})
    whole = next((node for node in nodes if node.level == levels[0].level), None)
    if whole is None:
        command = f"homer build {video.id[:8]} --memory {strategy.name}"
        if built:
            raise InputError(f"{video.title} has no outline yet: {command}")
        raise InputError(f"{video.title} has no outline: {command}")
    names = people.names(video.id)

    def words(text: str) -> str:
        return plain_line(tags_in_words(with_current_names(text, names)))

    return Outline(
        video=video.id,
        title=words(video.title),
        text=words(description_of(whole)),
        depth=depth,
        chapters=tuple(_chapters(whole.span, levels[1:], nodes, words)),
    )


def title_of(node: OutlineNode, level: OutlineLevel) -> str:
    """Return the title of a node: its label, else its text."""
    return node.label if level.titled and node.label else node.text


def description_of(node: OutlineNode) -> str:
    """Return what a node says in prose; lines after the first are its builder's own."""
    return node.text.splitlines()[0] if node.text else ""


def _chapters(
    span: TimeSpan,
    levels: Sequence[OutlineLevel],
    nodes: Sequence[OutlineNode],
    words: Callable[[str], str],
) -> Iterator[Chapter]:
    """Yield the nodes of the first level that begin in a span, with those of the next ones."""
    if not levels:
        return
    level, finer = levels[0], levels[1:]
    for node in nodes:
        if node.level != level.level or not span.start_ms <= node.span.start_ms < span.end_ms:
            continue
        inside = _beginning_in(node.span, nodes) if finer else ()
        text = description_of(node)
        yield Chapter(
            span=node.span,
            title=words(title_of(node, level)),
            text=words(text) if level.titled and text != node.label else "",
            parts=tuple(_chapters(node.span, finer, inside, words)),
        )


def _beginning_in(span: TimeSpan, nodes: Sequence[OutlineNode]) -> list[OutlineNode]:
    return [one for one in nodes if span.start_ms <= one.span.start_ms < span.end_ms]


def as_text(outline: Outline) -> str:
    """Return an outline as lines, finer chapters indented."""
    lines = [outline.title, "", outline.text, "", *_indented(outline.chapters, "")]
    return "\n".join(lines)


def _indented(chapters: Sequence[Chapter], indent: str) -> Iterator[str]:
    for chapter in chapters:
        yield f"{indent}{format_span(chapter.span)}  {chapter.title}"
        yield from _indented(chapter.parts, f"{indent}  ")


def as_markdown(outline: Outline) -> str:
    """Return an outline in Markdown: a heading, then a nested list."""
    lines = [f"# {_escaped(outline.title)}", "", _escaped(outline.text), ""]
    return "\n".join([*lines, *_listed(outline.chapters, "")])


def _listed(chapters: Sequence[Chapter], indent: str) -> Iterator[str]:
    for chapter in chapters:
        text = f": {chapter.text}" if chapter.text else ""
        yield f"{indent}- **{format_span(chapter.span)}** {_escaped(f'{chapter.title}{text}')}"
        yield from _listed(chapter.parts, f"{indent}  ")


def _escaped(text: str) -> str:
    """Return a text in which no character is Markdown or HTML."""
    words = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\g<0>", without_markup(words))


LEAST_MS = 10_000
"""YouTube takes no shorter chapters."""


def as_youtube(outline: Outline) -> str:
    """Return the finest chapters as YouTube reads them in a description: the first is at 0:00."""
    lines: list[str] = []
    last_ms = -LEAST_MS
    for chapter in outline.finest():
        start = chapter.span.start_ms if lines else 0
        if start - last_ms >= LEAST_MS:
            lines.append(f"{_youtube_clock(start)} {chapter.title}")
            last_ms = start
    return "\n".join(lines)


def _youtube_clock(ms: int) -> str:
    """Format a time as ``m:ss`` or ``h:mm:ss``; hours go on after a day."""
    minutes, seconds = divmod(ms // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def as_vtt(outline: Outline) -> str:
    """Return the finest chapters as a WebVTT track of chapters."""
    cues = [
        f"{_vtt_clock(one.span.start_ms)} --> {_vtt_clock(one.span.end_ms)}\n{_cue(one.title)}"
        for one in outline.finest()
        if one.span.length_ms
    ]
    return "\n\n".join(["WEBVTT", *cues])


def _cue(text: str) -> str:
    """Return a text in which no character is markup of WebVTT."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _vtt_clock(ms: int) -> str:
    seconds, rest = divmod(ms, 1_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}.{rest:03d}"


def borders(outline: Outline) -> list[int]:
    """Return where the finest chapters but the first begin, in milliseconds."""
    return [chapter.span.start_ms for chapter in outline.finest()[1:]]
