"""What a strategy built of videos, held in memory for the questions that follow.

All that was built of a video is read once; what a question may see is chosen from it by the clips
from and to which each part holds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from domain.built import BuiltMemory, StoredNode, StoredRelation
from domain.errors import InputError
from store.database import Store
from store.queries.builds import built_version, read_built

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
        """Return the index of a video as it is built now."""
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


def holds(row: StoredNode | StoredRelation, last_clip: int) -> bool:
    """Check whether a revision or relation is valid after a clip."""
    return row.from_clip <= last_clip and (row.to_clip is None or row.to_clip > last_clip)
