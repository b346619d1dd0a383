"""Which videos of a view a strategy's memory is built of: the others are left out, and named."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from domain.built import BuiltMemory, Node, Relation
from domain.errors import InputError
from domain.memories import MemoryView
from store.database import Store
from store.queries.builds import built_encoders, built_version, read_built
from store.queries.videos import find_videos

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

NAMED = 5
"""Videos that a note names at most."""


def check_any_built(session: Session, view: MemoryView, builder: str) -> None:
    """Check that something was built of one of the videos at least.

    Raises:
        InputError: of none; the message says what to run.
    """
    if view.scopes and not built_encoders(session, builder, view.videos):
        titles = titles_of(session, view.videos)
        raise InputError(
            f"nothing was built of {_named(titles)} for {builder} yet: "
            f"homer build {view.videos[0]} --memory {builder}"
        )


def built_part(
    session: Session, view: MemoryView, builder: str, encoder: str
) -> tuple[MemoryView, tuple[str, ...]]:
    """Return a view of those videos that are built, and the titles of the others.

    A view of which nothing is built stays as it is: the tool that searches it says so.

    Args:
        view: the videos, each up to which clip.
        encoder: the text encoder that the vectors have to be of.
    """
    encoders = built_encoders(session, builder, view.videos)
    scopes = tuple(one for one in view.scopes if encoders.get(one.video) == encoder)
    if not scopes or len(scopes) == len(view.scopes):
        return view, ()
    built = {one.video for one in scopes}
    others = [video for video in view.videos if video not in built]
    return view.model_copy(update={"scopes": scopes}), titles_of(session, others)


def unbuilt_note(titles: Sequence[str], builder: str, *, left_out: bool = True) -> str:
    """Return a note for users about videos whose memory is not built; "" where there are none.

    ``left_out``: they were not searched at all; else without that memory.
    """
    if not titles:
        return ""
    how = "Left out" if left_out else "Searched without its own memory"
    return (
        f"{how}, since {builder}'s memory of them is not built: {_named(titles)}. "
        f"'homer build VIDEO --memory {builder}' builds it."
    )


def written_by(writers: Sequence[str]) -> str:
    """Return who wrote a memory in words; "" where nobody wrote."""
    return f"written by {' and '.join(writers)}" if writers else ""


def writers_note(writers: Sequence[str]) -> str:
    """Return a note for users about who wrote the memory that was searched."""
    return f"The memory was {written_by(writers)}." if writers else ""


def titles_of(session: Session, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of videos, in order; deleted ones have none."""
    found = find_videos(session, ids)
    return tuple(found[one].title for one in ids if one in found)


def _named(titles: Sequence[str]) -> str:
    more = len(titles) - NAMED
    return ", ".join(titles[:NAMED]) + (f" and {more} more" if more > 0 else "")


# What a strategy built of videos, held in memory for the questions that follow.
#
# All that was built of a video is read once; what a question may see is chosen from it by the clips
# from and to which each part holds.

CACHED = 4
"""Videos whose memory is held at a time."""

Index = TypeVar("Index")


class BuiltIndexes(Generic[Index]):
    """The indexes of the videos asked about last. Thread-safe.

    Args:
        store: the store.
        builder: the name under which the memory was built.
        make_index: makes the index of a video of what was built.
    """

    def __init__(
        self, store: Store, builder: str, make_index: Callable[[BuiltMemory], Index]
    ) -> None:
        self._store, self._builder, self._make_index = store, builder, make_index
        self._held: OrderedDict[str, tuple[object, Index]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, video: str) -> Index:
        with self._lock:
            with self._store.begin(snapshot=True) as session:
                version = built_version(session, video, self._builder)
                held = self._held.get(video)
                if held is None or held[0] != version:
                    built = read_built(session, video, self._builder)
                    held = (version, self._make_index(built))
            self._held[video] = held
            self._held.move_to_end(video)
            while len(self._held) > CACHED:
                self._held.popitem(last=False)
            return held[1]


def check_built(video: str, encoder: str, needed: str) -> None:
    """Check that something was built of a video, with the text encoder that searches it.

    Args:
        encoder: the one that made the vectors; "" where nothing was built.
        needed: the profile's.

    Raises:
        InputError: nothing was, or with another; the message says what to run.
    """
    if not encoder:
        raise InputError(f"nothing was built of {video} for this strategy yet: homer build {video}")
    if encoder != needed:
        raise InputError(
            f"what was built of {video} has vectors of {encoder}, this profile searches with "
            f"{needed}: build it anew with homer build {video}"
        )


def holds(row: Node | Relation, last_clip: int) -> bool:
    """Check whether a revision or relation is valid after a clip."""
    return row.from_clip <= last_clip and (row.to_clip is None or row.to_clip > last_clip)
