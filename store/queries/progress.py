"""The states of a range of a video's clips, for the windows of the event graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from domain.media import ClipState
from store.tables.schema import ClipRow


@dataclass(frozen=True)
class ClipStates:
    """The clips of a range, and of earlier uncovered ones, by state.

    ``highest`` is the last clip of the video, -1 for none; ``first_pending`` its first clip in or
    after the range that was not tried yet.
    """

    done: tuple[int, ...]
    failed: tuple[int, ...]
    first_pending: int | None
    highest: int


def clip_states(
    session: Session, video_id: str, start: int, stop: int, also: Sequence[int]
) -> ClipStates:
    """Return the states of clips ``start <= clip < stop`` and of ``also``."""
    of_video = ClipRow.video_id == video_id
    wanted = or_(and_(ClipRow.clip >= start, ClipRow.clip < stop), ClipRow.clip.in_(also))
    query = select(ClipRow.clip, ClipRow.state).where(of_video, wanted).order_by(ClipRow.clip)
    states = session.execute(query).all()
    pending = of_video & (ClipRow.state == ClipState.PENDING) & (ClipRow.clip >= start)
    highest = session.scalar(select(func.max(ClipRow.clip)).where(of_video))
    return ClipStates(
        done=tuple(clip for clip, state in states if state == ClipState.DONE),
        failed=tuple(clip for clip, state in states if state == ClipState.FAILED),
        first_pending=session.scalar(select(func.min(ClipRow.clip)).where(pending)),
        highest=-1 if highest is None else highest,
    )
