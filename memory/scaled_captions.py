"""Captions of a video at several time scales, written elsewhere: read, and stored as a reference.

They are nodes of the builder ``REFERENCE``, whose level is the scale, such as ``180 s``. What a
strategy builds can be compared with them; no search finds them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from domain.audit import Deed
from domain.built import Change, NodeDraft
from domain.errors import InputError
from domain.limits import DEFAULT_LIMITS, ImportLimits
from domain.media import Video
from domain.time import TimeSpan
from memory.captions import DAY_S, parse_json_line, read_text
from store.database import Store
from store.queries.audit import record_deed
from store.queries.build_changes import apply_change
from store.queries.builds import StepMade, delete_build
from store.queries.clips import StoredClip, clips_page, count_clips
from store.queries.percepts import lock_video

REFERENCE = "reference"
"""The builder under whose name they are stored."""


NAMED = 5
"""Videos that a complaint names at most."""


class ScaledCaption(NamedTuple):
    """What happened in a span, as written at a scale of so many seconds."""

    scale_s: int
    span: TimeSpan
    text: str

    @property
    def level(self) -> str:
        """Return the level of its node."""
        return f"{self.scale_s} s"


def read_scaled_captions(
    path: Path, limits: ImportLimits = DEFAULT_LIMITS
) -> tuple[ScaledCaption, ...]:
    """Read captions from JSON lines, a JSON list or an object with ``captions``, also gzipped.

    Each has the fields of ``memory.captions.read_captions`` and its ``scale_s`` in seconds.

    Returns:
        By scale, then by time.

    Raises:
        NotFound: there is no such file.
        InputError: it cannot be read, has no caption, or captions of several videos; says which
            line or record.
    """
    read = [_caption(place, row) for place, row in _rows(path, read_text(path, limits))]
    if not read:
        raise InputError(f"{path} holds no caption: nothing to import")
    videos = sorted({video for video, _ in read if video})
    if len(videos) > 1:
        shown = ", ".join(videos[:NAMED])
        raise InputError(
            f"{path} names {len(videos)} videos ({shown}): give each a file of its own, since all "
            "captions are stored beside one video"
        )
    captions = [caption for _, caption in read]
    return tuple(sorted(captions, key=lambda one: (one.scale_s, one.span.start_ms)))


def _rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the records of a file, each with its place."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield f"{path}, line {number}", _parsed(f"{path}, line {number}", line)
        return
    whole = _parsed(str(path), text)
    rows = whole.get("captions") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise InputError(f"{path} holds no list of captions")
    yield from ((f"{path}, caption {number}", row) for number, row in enumerate(rows, 1))


def _parsed(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is no JSON: {error}") from error


def _caption(place: str, row: Any) -> tuple[str, ScaledCaption]:
    """Return a caption, and the name of its video, "" if it names none."""
    try:
        video, line = parse_json_line(row)
        scale_s = row.get("scale_s")
        if type(scale_s) is not int or not 1 <= scale_s <= DAY_S:
            raise ValueError(f"scale_s is not a number of seconds of a day: {scale_s!r}")
        if not line.text:
            raise ValueError("text is empty")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {error}") from error
    return video, ScaledCaption(scale_s, line.span, line.text)


def import_reference(store: Store, video: Video, captions: Sequence[ScaledCaption]) -> None:
    """Store captions of a video in memory, in place of those that were stored before.

    Each holds from the clip on in which its span ends.

    Raises:
        InputError: one begins after the video ends.
    """
    with store.begin() as session:
        lock_video(session, video.id)
        clips = clips_page(session, video.id, 0, count_clips(session, video.id))
        nodes = list(_nodes(video, captions, clips))
        delete_build(session, video.id, REFERENCE)
        made = StepMade(clips[-1].index, version=1, encoder="")
        apply_change(session, video.id, REFERENCE, made, Change(nodes=nodes))
        record_deed(session, Deed.IMPORTED, video.id)


def _nodes(
    video: Video, captions: Sequence[ScaledCaption], clips: Sequence[StoredClip]
) -> Iterator[NodeDraft]:
    """Yield the nodes, numbered by time within each scale."""
    end_ms = clips[-1].span.end_ms if clips else 0
    for _, of_scale in groupby(captions, key=lambda one: one.scale_s):
        for number, one in enumerate(of_scale):
            if one.span.start_ms >= end_ms:
                raise InputError(
                    f"a caption begins at {one.span}, after {video.title} ends: is it of another "
                    "video?"
                )
            last = (clip.index for clip in clips if clip.span.end_ms >= one.span.end_ms)
            clip = next(last, clips[-1].index)
            yield NodeDraft(one.level, number, one.text, one.span, clip)
