"""How a video is shown in a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from cli.console import note
from domain.calls import CallTotals
from domain.media import Gap
from domain.sentences import count_objects, describe_counts
from domain.words import counted, format_span, format_time, plain_line, without_markup
from library.answers import one_line
from library.memory import ShownClip, StreamDetails, VideoDetails, describe_gap, describe_watching
from library.outlines import Chapter, Outline, OutlineFormat

SHOWN_LINES = 12


def portrait_lines(portrait: VideoDetails) -> Iterator[str]:
    """Yield the lines of a video: its data, people, segments with edges, then clip by clip."""
    yield from _head(portrait)
    if portrait.people:
        yield "people"
    for person in portrait.people:
        names = ", ".join(f"{plain_line(name.name)} ({name.source})" for name in person.names)
        tags = " ".join(tag.strip("<>") for tag in person.tags)
        yield f"  {one_line(person.label)}  {tags}  {names}".rstrip()
    labels = {segment.id: one_line(segment.label) for segment in portrait.segments}
    if labels:
        yield "segments"
    for segment in portrait.segments:
        yield f"  {format_span(segment.span)}  {labels[segment.id]}  [s{segment.id}]"
        for edge in portrait.edges:
            if edge.source == segment.id:
                how = "said so" if edge.explicit else f"{edge.confidence:.2f}"
                yield f"    {edge.relation} {labels.get(edge.target, '?')} ({how})"
    gaps = list(portrait.stream.gaps) if portrait.stream else []
    for clip in portrait.clips:
        while gaps and gaps[0].span.start_ms < clip.span.start_ms:
            yield _gap(gaps.pop(0))
        yield from _clip(clip, portrait.stream)
        while gaps and gaps[0].span.end_ms <= clip.span.end_ms:
            yield _gap(gaps.pop(0))
    for gap in gaps:
        yield _gap(gap)


def _head(portrait: VideoDetails) -> Iterator[str]:
    video = portrait.video
    yield (
        f"{plain_line(video.title)}  {video.id}  {format_time(video.duration_ms)}  {portrait.state}"
    )
    if portrait.error:
        yield f"  {plain_line(portrait.error)}"
    size = f"{video.width}x{video.height}" if video.has_video else "no picture"
    yield f"  {size}, {'with' if video.has_audio else 'no'} sound, profile {video.profile}"
    if portrait.stream is not None:
        gaps = portrait.stream.gaps
        lost = format_time(sum(gap.span.length_ms for gap in gaps))
        missing = f"{counted(len(gaps), 'gap')}, {lost} in all" if gaps else "no gaps"
        yield f"  live from {plain_line(portrait.stream.source)}, {missing}"
    if portrait.languages:
        yield f"  spoken in {', '.join(portrait.languages)}"
    if video.has_video:
        model = portrait.models.get("images", "none")
        yield (
            "  images are found by descriptions and words of their time (no image-text model)"
            if model == "none"
            else f"  images are found by their likeness ({plain_line(model)})"
        )
    for remark in video.remarks:
        yield f"  {plain_line(remark)}"
    if video.subtitles is not None:
        yield f"  with subtitles: {plain_line(', '.join(video.subtitles)) or 'there were none'}"
    for one in portrait.built:
        yield f"  memory of {one.strategy}: {plain_line(one.in_words)}"
    if spent := _spent(portrait.cost, portrait.seconds):
        yield f"  watching took{spent.replace('  [', ' ').rstrip(']')}"
    if portrait.last_clip + 1 < len(portrait.clips):
        yield f"  seen as of clip {portrait.last_clip} of {len(portrait.clips)}"


def _spent(cost: CallTotals, seconds: float) -> str:
    """Describe calls, tokens, cost and seconds, where there were any."""
    parts = []
    if cost.calls:
        wrong = f" ({cost.failed} failed)" if cost.failed else ""
        parts += [
            f"{counted(cost.calls, 'call')}{wrong}",
            f"{cost.tokens_in}+{cost.tokens_out} tokens",
        ]
        parts += [f"${cost.cost_usd:.4f}"] if cost.cost_usd else []
    parts += [f"{seconds:.1f} s"] if seconds else []
    return f"  [{', '.join(parts)}]" if parts else ""


def _gap(gap: Gap) -> str:
    return f"gap     {format_span(gap.span)}  {describe_gap(gap)}"


def _clip(clip: ShownClip, stream: StreamDetails | None) -> Iterator[str]:
    tries = budget = ""
    # One of a stream cannot be tried again.
    if stream is None and (clip.state == "failed" or clip.unwritten):
        how = "homer ingest --again tries it" if clip.given_up else "the next homer ingest tries it"
        tries = f" ({clip.attempts}x; {how} again)"
    if clip.budget is not None:
        left, not_stored = map(plain_line, clip.left_out), map(plain_line, clip.dropped)
        without = f" without {', '.join(left)}" if clip.left_out else ""
        dropped = f"; not stored: {'; '.join(not_stored)}" if clip.dropped else ""
        budget = f"  (at most {clip.budget} tokens{without}{dropped})"
    state = "" if clip.state == "done" else f"  {clip.state}{tries}"
    error = f"  {plain_line(clip.error)}" if clip.error else ""
    spent = f"{_spent(clip.cost, clip.seconds)}{budget}"
    yield f"clip {clip.index}  {format_span(clip.span)}{state}{error}{spent}"
    if stream is not None and clip.index in stream.clips:
        yield f"  {describe_watching(stream.clips[clip.index])}"
    for gap in clip.gaps:
        yield f"  {format_span(gap.span)}  {describe_gap(gap)}"
    for line in clip.lines[:SHOWN_LINES]:
        yield f"  {format_span(line.span)}  {line.source}: {one_line(line.text)}  [{line.ref}]"
    if clip.objects and not any(line.source == "objects" for line in clip.lines):
        yield f"  seen: {describe_counts(count_objects(clip.objects))}"
    if len(clip.lines) > SHOWN_LINES:
        yield f"  and {counted(len(clip.lines) - SHOWN_LINES, 'more line')} (--json has all)"
    for frame in clip.keyframes:
        if frame.text:
            clock = format_time(frame.span.start_ms)
            yield f"  {clock}  keyframe: {one_line(frame.text)}  [{frame.ref}]"


# How an outline is printed: as text, in Markdown, for YouTube, or as a track of chapters.

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
            # Format a time as ``m:ss`` or ``h:mm:ss``; hours go on after a day.
            minutes, seconds = divmod(start // 1_000, 60)
            hours, minutes = divmod(minutes, 60)
            youtube_clock = (
                f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
            )
            lines.append(f"{youtube_clock} {chapter.title}")
            last_ms = start
    return "\n".join(lines)


def as_vtt(outline: Outline) -> str:
    """Return the finest chapters as a WebVTT track of chapters."""
    cues = [
        f"{_vtt_clock(one.span.start_ms)} --> {_vtt_clock(one.span.end_ms)}\n"
        f"{escape(one.title, quote=False)}"
        for one in outline.finest()
        if one.span.length_ms
    ]
    return "\n\n".join(["WEBVTT", *cues])


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
    yield from WRITTEN[outline.written](outline).splitlines()
    if outline.written is OutlineFormat.TEXT:
        note("a track of chapters:  --format vtt")
