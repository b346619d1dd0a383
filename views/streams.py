"""Read models of live streams: the source, the gaps, and how each clip was watched."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.streams import LEVELS, Gap, StreamClip
from store.database import Store
from store.queries import streams as rows
from views.translation import format_number, translate


class StreamDetails(Frozen):
    """A live stream. ``source`` has no secret; ``clips``: how each was watched, by number."""

    source: str
    gaps: tuple[Gap, ...]
    clips: Mapping[int, StreamClip]


def stream_details(
    session: Session, video: str, until_ms: int | None = None
) -> StreamDetails | None:
    """Return a stream up to a moment of video time (None: all); None for a file."""
    stream = rows.find_stream(session, video)
    if stream is None:
        return None
    clips = {clip.clip: clip for clip in rows.stream_clips(session, video)}
    return StreamDetails(
        source=stream.source, gaps=tuple(rows.gaps_of(session, video, until_ms)), clips=clips
    )


def load_stream_details(store: Store, video: str) -> StreamDetails | None:
    """Return a stream as it is now; None for a file."""
    with store.begin(snapshot=True) as session:
        return stream_details(session, video)


def describe_watching(clip: StreamClip) -> str:
    """Describe how a clip was watched: frames, what was skipped, the lag.

    ``750 frames came, 150 looked at; level 3: every 5th, without objects, screen; lag 12.0 s``
    """
    tally, level = clip.tally, LEVELS[clip.level]
    damaged = (
        translate(", {count} did not decode").format(count=tally.damaged) if tally.damaged else ""
    )
    parts = [
        translate("{came} frames came, {sampled} looked at{damaged}").format(
            came=tally.came, sampled=tally.sampled, damaged=damaged
        )
    ]
    if clip.level:
        without = (
            translate(", without {parts}").format(parts=", ".join(map(translate, level.without)))
            if level.without
            else ""
        )
        parts.append(
            translate("level {level}: {share} of the samples{without}").format(
                level=clip.level, share=format_number(level.share, ".0%"), without=without
            )
        )
    if clip.lag_ms is not None:
        parts.append(
            translate("lag {seconds} s").format(seconds=format_number(clip.lag_ms / 1000, ".1f"))
        )
    return "; ".join(parts)


def describe_gap(gap: Gap) -> str:
    """Return why a gap is not in memory: ``the connection was lost``."""
    frames = translate(" ({count} frames)").format(count=gap.frames) if gap.frames else ""
    return f"{translate(gap.reason)}{frames}"
