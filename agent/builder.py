"""The port to the profile's language model for tools, policies and builders of strategies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import BaseModel
from typing_extensions import TypedDict, Unpack

from agent.harness.inform import LoadImage
from domain.built import RULES, BuiltMemory, Change, WatchedClip
from domain.errors import BlobGone
from domain.media import Video
from domain.settings import MemorySettings, Settings
from domain.time import TimeSpan
from models.messages import Message
from models.sentences import SentenceParser

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sqlalchemy.orm import Session

    from memory.writers.port import Writers
    from models.ports import MemoryModels
    from retrieval.chapters import Word
    from store.database import Store

Reply = TypeVar("Reply", bound=BaseModel)


class AskOptions(TypedDict, total=False):
    """What a call may say besides what it asks.

    ``temperature`` of the sampling, 0 by default; ``images`` are JPEG files, ``labels`` a text
    before each of them, or none.
    """

    temperature: float
    images: Sequence[bytes]
    labels: Sequence[str]


class AskModel(Protocol):
    """Asks the profile's language model; each call is recorded with its cost."""

    @property
    def sees(self) -> bool:
        """Check whether the model accepts images."""

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        **options: Unpack[AskOptions],
    ) -> Reply:
        """Ask for a reply in ``schema``.

        Args:
            purpose: what the call is for, a word or two, for the record.
            messages: the turns; the images go with the last user turn.
            schema: a pydantic model.
            options: the temperature, and images with their labels.

        Raises:
            Unreadable: the reply does not fit the schema.
            BudgetExceeded: the tokens or the seconds of a question are spent.
            ModelError: the model cannot be reached.
        """


# Who writes in a step of a build, or in a tool: rules, or a language model by name.

_writers: ContextVar[list[str] | None] = ContextVar("step_writers", default=None)


@contextmanager
def step_writers() -> Iterator[list[str]]:
    """Yield a list that fills with who writes within, each once."""
    names: list[str] = []
    token = _writers.set(names)
    try:
        yield names
    finally:
        _writers.reset(token)


def note_writer(name: str) -> None:
    """Note who wrote; outside of a step nothing is noted."""
    names = _writers.get()
    if names is not None and name not in names:
        names.append(name)


def note_rules(log: logging.Logger, message: str, *args: object) -> None:
    """Log, and note, that rules wrote what the language model was to write."""
    log.warning(message, *args)
    note_writer(RULES)


# A memory builder: what a strategy keeps of a video, built from what was watched.
#
# A build goes forward in steps of clips. Each step is applied in one transaction together with how
# far it went, so a build that was killed resumes with the next step. A row holds from the clip on
# after which it was known, so a question as of a moment sees what was built by then.

Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]
"""Returns the unit vector of each text, (N, D)."""


def no_image(sha: str) -> bytes:
    """Load no image.

    Raises:
        BlobGone: always.
    """
    raise BlobGone(f"there is no image {sha}")


LoadClip = Callable[[TimeSpan], bytes | None]
"""Returns the video of a span as MP4, of its beginning if it is long; None: it is not shown."""


def no_clip(_span: TimeSpan) -> None:
    """Load no video."""


@dataclass(frozen=True)
class BuildModels:
    """What a builder may use.

    ``embed`` is the text encoder, ``sentences`` parses, ``model`` is the language model if the
    profile has one;
    ``load_image`` loads a JPEG by its SHA-256, ``load_clip`` the video of a span where the model is
    to be shown any. ``began`` is when time 0 of a stream was; None: that is not known. ``word`` has
    the profile's reader word chapters, where no model writes.
    """

    embed: Embed
    sentences: SentenceParser
    model: AskModel | None = None
    load_image: LoadImage = no_image
    load_clip: LoadClip = no_clip
    began: datetime | None = None
    word: Word | None = None


class Build(Protocol):
    """The build of one video, which goes on from what was built before."""

    def step(self, clips: Sequence[WatchedClip], /, *, ended: bool) -> Change:
        """Return what these clips add; they follow those of the step before.

        Args:
            clips: a step's clips in order; clips that failed or were deleted have no lines.
            ended: nothing follows them.

        Raises:
            ModelError: the language model cannot be reached; the same step can be made again.
        """


Begin = Callable[[Video, BuiltMemory, Sequence[WatchedClip], BuildModels], Build]
"""Begins or resumes the build of a video.

It is given what was built before, the clips of the last ``look_back_ms`` that were built, and what
it may use: the text encoder, and the language model if there is one.
"""


@dataclass(frozen=True)
class MemoryBuilder:
    """Builds the memory of a strategy. ``version`` is stored with what it builds.

    ``step_ms`` is how much of the video a step takes, in whole clips and counted from its start;
    ``look_back_ms`` is how much of what was watched before a step bears on it.
    """

    version: int
    step_ms: int
    look_back_ms: int
    begin: Begin


@dataclass(frozen=True)
class WindowParts:
    """What a window builder may use: the store, the profile's writers, its models, the settings."""

    store: Store
    writers: Writers
    models: MemoryModels
    settings: Settings


class WindowBuilder(Protocol):
    """Builds the memory of a strategy in tables of its own, window by window.

    A window is stored in one transaction, after the model calls that it takes. One that is stored
    is not built again, so a build that was killed goes on with the next. Windows are built while a
    video is watched, and later those that are missing.
    """

    def due(
        self, session: Session, video_id: str, settings: MemorySettings, /, *, ended: bool
    ) -> int | None:
        """Return the last clip of the next window; None where no window can be built.

        ``ended``: nothing follows what was watched, so that what is left is a window.
        """

    def build_next(
        self, parts: WindowParts, video_id: str, /, *, ended: bool, since: datetime | None = None
    ) -> bool:
        """Build the next window; return False where none is due.

        Replies on record are used instead of another call; ``since``: only those after that time.

        Raises:
            ModelError: it could not be written; the same window can be built again.
        """

    def built_through(self, session: Session, video_id: str, /) -> int:
        """Return the last clip that is built; -1 for none."""

    def writers(self, session: Session, video_ids: Sequence[str], /) -> tuple[str, ...]:
        """Return who wrote what is built of these videos; empty where nothing is built."""

    def delete(self, session: Session, video_id: str, /) -> None:
        """Delete all that was built of a video."""

    def unbuilt(
        self, session: Session, video_ids: Sequence[str], settings: MemorySettings, /
    ) -> tuple[str, ...]:
        """Return those of these videos of which nothing is built, though a window is due."""
