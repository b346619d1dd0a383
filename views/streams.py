"""What is told of a live stream: where it comes from, its gaps, how each clip was watched."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from domain.base import Frozen
from domain.streams import LEVELS, Gap, StreamClip
from store.database import Store
from store.queries import streams as rows


class StreamTold(Frozen):
    """A live stream. ``source`` holds no secret; ``clips``: how each was watched, by number."""

    source: str
    gaps: tuple[Gap, ...]
    clips: Mapping[int, StreamClip]


def stream_told(session: Session, video: str, until_ms: int | None = None) -> StreamTold | None:
    """What is told of a stream up to a moment of video time (None: all); None for a file."""
    found = rows.find_stream(session, video)
    if found is None:
        return None
    told = {one.clip: one for one in rows.clips_told(session, video)}
    return StreamTold(
        source=found.source, gaps=tuple(rows.gaps_of(session, video, until_ms)), clips=told
    )


def stream_of(store: Store, video: str) -> StreamTold | None:
    """What is told of a stream as it is now; None for a file."""
    with store.begin(snapshot=True) as session:
        return stream_told(session, video)


def watched_in_words(one: StreamClip) -> str:
    """How a clip was watched: frames, what was left out, the lag.

    ``750 frames came, 150 looked at; level 3: every 5th, without objects, screen; lag 12.0 s``
    """
    tally, level = one.tally, LEVELS[one.level]
    damaged = f", {tally.damaged} did not decode" if tally.damaged else ""
    parts = [f"{tally.came} frames came, {tally.sampled} looked at{damaged}"]
    if one.level:
        without = f", without {', '.join(level.without)}" if level.without else ""
        parts.append(f"level {one.level}: {level.share:.0%} of the samples{without}")
    if one.lag_ms is not None:
        parts.append(f"lag {one.lag_ms / 1000:.1f} s")
    return "; ".join(parts)


def gap_in_words(gap: Gap) -> str:
    """Why a stretch is not in memory: ``the connection was lost``."""
    frames = f" ({gap.frames} frames)" if gap.frames else ""
    return f"{gap.reason}{frames}"
