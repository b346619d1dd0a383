"""Which videos of a view a strategy's memory is built of: the others are left out, and named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain.errors import InputError
from domain.memories import MemoryView
from store.queries.builds import built_encoders
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
