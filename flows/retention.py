"""Keeping less of videos the older they are: fewer and smaller images, text only, nothing.

Off unless the settings have tiers. For a schedule to call: running it twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from sqlalchemy.orm import Session

from domain.audit import Deed
from domain.errors import BlobGone, NotFound
from domain.retention import Tier
from flows.delete import delete_video, leaving
from flows.video_locks import watched_now
from flows.workspace import Workspace
from perception.jpeg import shrunk
from store.database import Store
from store.queries import retaining as stored
from store.queries.audit import note
from store.queries.blobs import hold_blobs
from store.queries.forget import drop_blob_rows, touch
from store.queries.percepts import add_blobs, lock_video
from store.queries.retaining import Aged, StoredFrame
from store.queries.videos import known_video
from store.sweep import drop_blobs


@dataclass(frozen=True)
class Less:
    """What goes of one video: images, and bytes of images; ``smaller`` are kept in less room."""

    video: str
    title: str
    keep: str
    images: int
    smaller: int
    bytes: int


@dataclass(frozen=True)
class Retained:
    """What a run of retention took, or would take."""

    videos: tuple[Less, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of images that go, all together."""
        return sum(one.bytes for one in self.videos)


def retain(desk: Workspace, now: datetime, *, dry_run: bool = False) -> Retained:
    """Take from each video what its age does not keep; one transaction a video.

    Videos that are still being watched are left alone. Keyframes that an answer was shown or
    cites stay as they are for as long as the answer does. ``dry_run`` only tells.

    Raises:
        DatabaseError: the database is gone; what is done is done.
    """
    with desk.store.begin() as session:
        every = stored.aged(session)
    due = ((one, desk.settings.retain.tier(now - one.since)) for one in every)
    found = [_less(desk, one, tier, dry_run) for one, tier in due if tier is not None]
    return Retained(tuple(one for one in found if one is not None))


def _less(desk: Workspace, one: Aged, tier: Tier, dry_run: bool) -> Less | None:
    desk.give_way()
    store = desk.store
    if tier.keep == "nothing":
        return _forgotten(store, one, dry_run)
    with store.begin() as session:
        lock_video(session, one.id)
        if known_video(session, one.id) is None:
            return None
        found, unused = _Thinning(store, session, one, tier, dry_run).run()
    drop_blobs(store, unused)
    return found if found.images or found.smaller else None


def _forgotten(store: Store, one: Aged, dry_run: bool) -> Less | None:
    try:
        held = leaving(store, one.id).held
        if one.id in watched_now(store):
            return None
        if not dry_run:
            delete_video(store, one.id)
    except NotFound:
        return None
    return Less(one.id, one.title, "nothing", held.images, 0, held.bytes)


class _Thinning:
    """Takes images from one video inside one transaction."""

    def __init__(self, store: Store, session: Session, one: Aged, tier: Tier, dry: bool) -> None:
        self._store, self._session, self._one = store, session, one
        self._tier, self._dry = tier, dry

    def run(self) -> tuple[Less, list[str]]:
        """What goes, and the files that nobody uses any more."""
        session, video = self._session, self._one.id
        cited = stored.frames_cited(session, video)
        free = [
            frame
            for frame in stored.frames_kept(session, video)
            if not {frame.id, frame.blob} & cited
        ]
        gone, left = self._sorted(free)
        crops = stored.crops_of(session, video) if self._tier.keep == "text" else {}
        small = dict(filter(None, (self._small(one) for one in left if self._too_large(one))))
        saved = sum(one.bytes - len(data) for one, (data, _, _) in small.items())
        size = sum(one.bytes for one in gone) + sum(crops.values()) + saved
        told = (self._tier.keep, len(gone) + len(crops), len(small), size)
        found = Less(video, self._one.title, *told)
        changed = bool(gone or crops or small) and not self._dry
        return found, self._take(gone, small) if changed else []

    def _sorted(self, frames: Sequence[StoredFrame]) -> tuple[list[StoredFrame], list[StoredFrame]]:
        """The keyframes that go, and the best of each clip that stay."""
        most = 0 if self._tier.keep == "text" else self._tier.keyframes
        clips = [list(group) for _, group in groupby(frames, key=lambda one: one.clip)]
        gone = [one for clip in clips for one in clip[most:]]
        return gone, [one for clip in clips for one in clip[:most]]

    def _too_large(self, frame: StoredFrame) -> bool:
        return max(frame.width, frame.height) > self._tier.side

    def _small(self, frame: StoredFrame) -> tuple[StoredFrame, tuple[bytes, int, int]] | None:
        """A keyframe made smaller; one whose image is lost stays as it is, and stops nothing."""
        with suppress(BlobGone):
            return frame, shrunk(self._store.blobs.get(frame.blob), self._tier.side)
        return None

    def _take(
        self, gone: Sequence[StoredFrame], small: dict[StoredFrame, tuple[bytes, int, int]]
    ) -> list[str]:
        session, video = self._session, self._one.id
        hold_blobs(session)
        stored.drop_frames(session, [one.id for one in gone])
        if self._tier.keep == "text":
            stored.drop_crops(session, video)
        for frame, (data, width, height) in small.items():
            sha = self._store.blobs.put(data)
            add_blobs(session, video, {sha: len(data)})
            stored.replace_frame(session, video, frame, sha, width, height)
        touch(session, video)
        note(session, Deed.RETAINED, video)
        return drop_blob_rows(session, video)
