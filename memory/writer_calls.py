"""Records the writers' model calls, and reuses recorded replies after an interrupted run."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from domain.calls import CallRecord
from models.chat import Recorded
from people.model_calls import record_call
from store.database import Store
from store.queries.calls import call_of_video
from store.queries.clips import last_attempt_at

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class CallRecording:
    """The model calls for one clip.

    Each call is stored at once, in a transaction of its own, even if the clip is not stored later.
    After an interrupted run, its recorded replies are returned instead of new calls. Replies of a
    failed attempt are not reused.
    """

    sound = False
    """Whether only parsed replies are reused."""

    def __init__(self, store: Store, video_id: str, clip: int) -> None:
        self._store, self._video, self._clip = store, video_id, clip
        self._call_counts: Counter[str] = Counter()

    def record(self, call: CallRecord) -> None:
        """Store a call, unless the video was deleted meanwhile."""
        self._call_counts[call.request_hash] += call.reply is not None
        record_call(self._store, self._video, self._clip, call)

    def recorded_reply(self, request: str) -> Recorded | None:
        """Return what the model said to this request in a run that was broken off, if it did."""
        with self._store.begin() as session:
            skip = self._call_counts[request]
            since = self._since(session)
            row = call_of_video(session, self._video, request, skip, since, sound=self.sound)
        if row is None:
            return None
        self._call_counts[request] += 1
        return Recorded(row.reply, row.error, row.tokens_in, row.tokens_out, row.cost_usd, row.ms)

    def _since(self, session: Session) -> datetime | None:
        """Return after which time calls are reused; None: all."""
        return last_attempt_at(session, self._video, self._clip)


class BuildRecording(CallRecording):
    """The model calls for one step of the build of a strategy's memory.

    Those are reused that were made since the step before was stored, also if they were unreadable.

    Args:
        store: The store.
        video_id: The video.
        clip: The last clip of the step.
        since: When the step before was stored; None where none was.
    """

    def __init__(self, store: Store, video_id: str, clip: int, since: datetime | None) -> None:
        super().__init__(store, video_id, clip)
        self._built_at = since

    def _since(self, session: Session) -> datetime | None:  # noqa: ARG002 - known already
        return self._built_at


class WindowRecording(BuildRecording):
    """The model calls for one window of the event graph, counted for its last clip.

    Those are reused that could be read; ``since``: only those made after that time.
    """

    sound = True
