"""Homer from Python: watch videos, ask them questions, and see what the answers rest on.

    import homer_video

    with homer_video.open() as library:
        library.ingest("talk.mp4")
        answer = library.ask("What is the talk about?")

This module is the interface. Homer's other packages may change without notice.
"""

from __future__ import annotations

from domain.errors import (
    Ambiguous,
    DatabaseError,
    HomerError,
    InputError,
    ModelError,
    NotFound,
    SetupError,
)
from domain.moments import Answered, Asked, Moment
from domain.people import Correction, Forgotten, LibraryPerson, LikelySame, PersonOfVideo
from domain.time import TimeSpan
from domain.trajectory import RunEvent
from domain.watching import Imported, IngestEstimate, Watched
from graphs.replay import Replayed
from homer_video.library import FoundMoments, LiveWatch, VideoAnswer, VideoLibrary
from homer_video.library import open_library as open  # noqa: A004 - called homer_video.open
from library.strategies import StrategyLine
from store.queries.library import LibraryEntry

__all__ = [
    "Ambiguous",
    "Answered",
    "Asked",
    "Correction",
    "DatabaseError",
    "Forgotten",
    "FoundMoments",
    "HomerError",
    "Imported",
    "IngestEstimate",
    "InputError",
    "LibraryEntry",
    "LibraryPerson",
    "LikelySame",
    "LiveWatch",
    "ModelError",
    "Moment",
    "NotFound",
    "PersonOfVideo",
    "Replayed",
    "RunEvent",
    "SetupError",
    "StrategyLine",
    "TimeSpan",
    "VideoAnswer",
    "VideoLibrary",
    "Watched",
    "open",
]
