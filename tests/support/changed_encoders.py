"""Changes a library of one video to another encoder, as ``homer reembed`` does."""

from __future__ import annotations

from typing import Any

from memory.reembed import change_encoder, reembed_pictures, reembed_video
from store.database import Store
from store.progress import Progress
from store.queries.encoders import StoredPicture, begin_change
from tests.support.library import Quiet
from tests.support.memory import VIDEO


def change_all(
    store: Store, encoder: Any, progress: Progress | None = None, *, images: bool
) -> set[StoredPicture]:
    """Change all texts, or all images; return the images that could not be read."""
    shown, unreadable = progress or Quiet(), set[StoredPicture]()
    with store.begin() as session:
        begin_change(session, encoder.name, images=images)
    done = False
    while not done:
        if images:
            unreadable |= reembed_pictures(store, VIDEO, encoder, shown)
        else:
            reembed_video(store, VIDEO, encoder, shown)
        done = change_encoder(store, unreadable, images=images)
    return unreadable
