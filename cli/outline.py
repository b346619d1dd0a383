"""How an outline is printed: as text, in Markdown, for YouTube, or as a track of chapters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from cli.console import note
from domain.words import format_span, without_markup
from library.outlines import Chapter, Outline, OutlineFormat

_MARKS = re.compile(r"[\\`*_\[\]#|~]")


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


WRITTEN: Mapping[OutlineFormat, Callable[[Outline], str]] = {
    OutlineFormat.TEXT: as_text,
    OutlineFormat.MD: as_markdown,
    OutlineFormat.YOUTUBE: as_youtube,
    OutlineFormat.VTT: as_vtt,
}


def outline_lines(outline: Outline) -> Iterator[str]:
    """Yield the lines of an outline, as it is to be printed."""
    yield from WRITTEN[outline.written](outline).splitlines()
    if outline.written is OutlineFormat.TEXT:
        note("a track of chapters:  --format vtt")
