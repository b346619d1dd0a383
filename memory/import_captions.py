"""A video that is known by its captions only: remembered and woven, many clips at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from domain.audit import Deed
from domain.errors import ModelError
from domain.media import Percept, Video
from domain.settings import Settings
from memory.captions import CaptionTrack, caption_clips
from memory.event_graph_update import weave_due
from memory.ports import FaceThreshold, MemoryModels, VoiceThreshold
from memory.write_clip import remember, remember_many
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, Writers
from models.ports import TextEmbedder
from people.clip_people import ClipPeople
from people.memory_lines import searchable
from store.database import Store
from store.queries.audit import record_deed
from store.queries.clips import next_clips, require_same_clips
from store.queries.videos import (
    DONE,
    FAILED,
    WATCHING,
    add_video,
    find_video,
    set_video_state,
    video_state,
)

BATCH = 20
"""Clips a transaction; each clip's rows and its mark still commit together."""

REMEMBERED = 20_000
"""Vectors kept of texts met before: captions repeat themselves."""

Progress = Callable[[int, int], None]
"""Is told how many clips are done, and how many there are."""


def import_track(
    store: Store,
    track: CaptionTrack,
    writers: Writers,
    toolbox: MemoryModels,
    settings: Settings,
    *,
    title: str | None = None,
    profile: str = "local",
    models: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Video:
    """Remember a caption track as a video; goes on where it stopped, and is then a no-op.

    Args:
        store: The store.
        track: The captions.
        writers: Who writes the memory.
        toolbox: For text vectors.
        settings: How long clips and windows are.
        title: What to call the video; the file's stem by default.
        profile: The profile's name, for the record.
        models: Port to model name, for the record.
        progress: Is called after every batch of clips.

    Returns:
        The video.

    Raises:
        ModelError: the event graph could not be extended; the same call goes on later.
        InputError: the import was begun in clips of another length.
    """
    percepts = list(caption_clips(track, settings.watch))
    video = track.video(title, profile)
    todo = _begin(store, video, percepts, models or {})
    with _Ahead(toolbox.text) as ahead:
        job = _CaptionImport(store, video, writers, _WithText(toolbox, ahead), settings)
        job.run([one for one in percepts if one.clip.index in todo], len(percepts), progress)
    return _finish(store, video.id)


def _begin(
    store: Store, video: Video, percepts: Sequence[Percept], models: Mapping[str, str]
) -> set[int]:
    """Clips that are still to be remembered."""
    with store.begin() as session:
        clips = [one.clip for one in percepts]
        if add_video(session, video, clips, models):
            record_deed(session, Deed.ADDED, video.id)
        else:
            require_same_clips(session, video, clips)
        todo = {one.index for one in next_clips(session, video.id, again=True)}
        if todo:
            set_video_state(session, video.id, WATCHING)
    return todo


def _finish(store: Store, video_id: str) -> Video:
    """The video as it is known: one that was imported before keeps its title."""
    with store.begin() as session:
        state = video_state(session, video_id)
        failed = state.failed if state else 0
        error = f"{failed} clips could not be remembered" if failed else None
        set_video_state(session, video_id, FAILED if failed else DONE, error)
        return find_video(session, video_id)


@dataclass(frozen=True)
class _CaptionImport:
    """The import of one video."""

    store: Store
    video: Video
    writers: Writers
    tools: _WithText
    settings: Settings

    def run(self, todo: Sequence[Percept], total: int, progress: Progress | None) -> None:
        """Remember clips batch by batch; vectors of the next one are made meanwhile."""
        batches = [todo[n : n + BATCH] for n in range(0, len(todo), BATCH)]
        done = total - len(todo)
        for place, batch in enumerate(batches):
            texts = _texts(batch)
            self.tools.text.expect(texts)
            if place + 1 < len(batches):
                self.tools.text.expect(_texts(batches[place + 1]))
            self._remember(batch, texts)
            self._weave(final=False)
            done += len(batch)
            if progress:
                progress(done, total)
        self._weave(final=True)

    def _remember(self, batch: Sequence[Percept], texts: Sequence[str]) -> None:
        args = (self.writers, self.tools, self.settings)
        if self.writers.clip.wants_context:  # A model writes each, and no transaction waits for it.
            for percept in batch:
                remember(self.store, self.video.id, _Plain(percept), *args)
            return
        try:
            remember_many(self.store, self.video.id, batch, *args, texts)
        except ModelError:  # One by one, so that only what cannot be written is left out.
            for percept in batch:
                remember(self.store, self.video.id, _Plain(percept), *args)

    def _weave(self, final: bool) -> None:
        weave_due(self.store, self.video.id, self.writers, self.tools, self.settings, final=final)


@dataclass(frozen=True)
class _Plain:
    """A percept without blobs."""

    percept: Percept
    blobs: Mapping[str, bytes] = field(default_factory=dict)


def _texts(batch: Sequence[Percept]) -> list[str]:
    """What the local writer will want vectors of; a wrong guess only costs time."""
    texts: list[str] = []
    for percept in batch:
        drafts = LocalClipWriter().write(percept, ClipPeople(), ClipContext("")).drafts
        texts += [searchable(draft, ClipPeople()) for draft in drafts]
    return texts


@dataclass(frozen=True)
class _WithText:
    """The tools with another text embedder."""

    tools: MemoryModels
    text: _Ahead

    @property
    def faces(self) -> FaceThreshold:
        """The threshold of faces."""
        return self.tools.faces

    @property
    def speaker(self) -> VoiceThreshold:
        """The threshold of voices."""
        return self.tools.speaker


class _Ahead:
    """A text embedder that works ahead in a thread and remembers what it has seen."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.languages = embedder.languages
        self._embedder = embedder
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._known: dict[str, NDArray[np.float32]] = {}
        self._coming: dict[str, Future[dict[str, NDArray[np.float32]]]] = {}

    def expect(self, texts: Sequence[str]) -> None:
        """Begin to embed texts that will be asked for."""
        new = [t for t in dict.fromkeys(texts) if t not in self._known and t not in self._coming]
        if new:
            future = self._pool.submit(self._embed, new)
            self._coming |= dict.fromkeys(new, future)

    def _embed(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return dict(zip(texts, self._embedder.embed(texts), strict=True))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As of the embedder itself: a text's row depends on that text only."""
        self.expect(texts)
        for text in texts:
            if text not in self._known:
                self._take(self._coming[text].result())
        rows = np.stack([self._known[text] for text in texts])
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return rows

    def _take(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        self._known.update(vectors)
        for text in vectors:
            del self._coming[text]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
