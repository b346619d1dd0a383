"""Imports a video of which only captions are available, in batches of clips."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from domain.built import Change, Node
from domain.errors import InputError, ModelError
from domain.media import Percept, Video
from domain.rights import Deed
from domain.settings import DEFAULT_LIMITS, ImportLimits, Settings
from domain.time import TimeSpan
from memory.captions import DAY_S, CaptionTrack, caption_clips, parse_json_line, read_text
from memory.write_clip import ClipWriter, PerceptWithoutBlobs
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, Writers
from models.ports import FaceThreshold, MemoryModels, TextEmbedder, VoiceThreshold
from models.text_endpoint import recorded_embeddings
from people.characters import ClipPeople
from people.model_transactions import record_call
from people.names import search_text
from store.database import Store
from store.queries.builds import StepMade, apply_change, delete_build
from store.queries.clips import clips_page, count_clips, next_clips, require_same_clips
from store.queries.percepts import lock_video
from store.queries.rights import record_deed
from store.queries.videos import (
    DONE,
    FAILED,
    WATCHING,
    add_video,
    find_video,
    set_video_state,
    video_state,
)

BATCH_CLIPS = 20
"""Clips in one transaction; a clip's rows and its state are committed together."""

MAX_CACHED_VECTORS = 20_000
"""Most vectors in the cache; captions often repeat."""

Progress = Callable[[int, int], None]
"""Called with the number of clips done, and of all clips."""

BuildWindows = Callable[[Store, str, Writers, MemoryModels, Settings, bool], object]
"""Builds what is due of a video; the last argument says that no more clips will follow."""


def import_track(
    store: Store,
    track: CaptionTrack,
    writers: Writers,
    models: MemoryModels,
    settings: Settings,
    *,
    build_windows: BuildWindows,
    title: str | None = None,
    profile: str = "local",
    model_names: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Video:
    """Store a caption track as a video; a second call continues, or does nothing if it is complete.

    ``title`` is the file's stem by default; ``profile`` and ``model_names``, by port, are for the
    record. ``build_windows`` and ``progress`` are called after every batch of clips.

    Raises:
        ModelError: The event graph could not be extended; a second call continues.
        InputError: An earlier import of the track used clips of another length.
    """
    percepts = list(caption_clips(track, settings.watch))
    video = track.video(title, profile)
    # The video is added if it is new; clips may be stored already.
    with store.begin() as session:
        clips = [percept.clip for percept in percepts]
        if add_video(session, video, clips, model_names or {}):
            record_deed(session, Deed.ADDED, video.id)
        else:
            require_same_clips(session, video, clips)
        unfinished = {clip.index for clip in next_clips(session, video.id, again=True)}
        if unfinished:
            set_video_state(session, video.id, WATCHING)
    pending = [percept for percept in percepts if percept.clip.index in unfinished]
    batches = [pending[n : n + BATCH_CLIPS] for n in range(0, len(pending), BATCH_CLIPS)]
    done = len(percepts) - len(pending)
    with (
        recorded_embeddings(partial(record_call, store, video.id, None)),
        _PrefetchingEmbedder(models.text) as embedder,
    ):
        tools = _ModelsWithText(models, embedder)
        for batch, following in zip_longest(batches, batches[1:], fillvalue=()):
            texts = _expected_texts(batch)
            # Vectors of the next batch are made while this one is stored.
            embedder.prefetch(texts)
            embedder.prefetch(_expected_texts(following))
            _remember(ClipWriter(store, video.id, writers, tools, settings), batch, texts)
            build_windows(store, video.id, writers, tools, settings, False)
            done += len(batch)
            if progress:
                progress(done, len(percepts))
        build_windows(store, video.id, writers, tools, settings, True)
    # Set the video's final state; a video imported before keeps its title.
    video_id = video.id
    with store.begin() as session:
        state = video_state(session, video_id)
        failed = state.failed if state else 0
        error = f"{failed} clip{'s' * (failed != 1)} could not be remembered" if failed else None
        set_video_state(session, video_id, FAILED if failed else DONE, error)
        return find_video(session, video_id)


def _remember(writer: ClipWriter, batch: Sequence[Percept], texts: Sequence[str]) -> None:
    if not writer.writers.clip.wants_context:
        with suppress(ModelError):
            return writer.remember_many(batch, texts)
    # One by one, so that no transaction is open during a model call, and only what fails is left.
    for percept in batch:
        writer.remember(PerceptWithoutBlobs(percept))
    return None


def _expected_texts(batch: Sequence[Percept]) -> list[str]:
    """Return texts that the local writer will need vectors of; a wrong guess only costs time."""
    texts: list[str] = []
    for percept in batch:
        drafts = LocalClipWriter().write(percept, ClipPeople(), ClipContext("")).drafts
        texts += [search_text(draft, ClipPeople()) for draft in drafts]
    return texts


@dataclass(frozen=True)
class _ModelsWithText:
    """The memory models with another text embedder."""

    models: MemoryModels
    text: _PrefetchingEmbedder

    @property
    def faces(self) -> FaceThreshold:
        return self.models.faces

    @property
    def speaker(self) -> VoiceThreshold:
        return self.models.speaker


class _PrefetchingEmbedder:
    """A text embedder that computes vectors ahead in a thread, and caches them."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.languages = embedder.languages
        self._embedder = embedder
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._cached: dict[str, NDArray[np.float32]] = {}
        self._pending: dict[str, Future[dict[str, NDArray[np.float32]]]] = {}

    def prefetch(self, texts: Sequence[str]) -> None:
        new = [t for t in dict.fromkeys(texts) if t not in self._cached and t not in self._pending]
        if new:
            future = self._pool.submit(copy_context().run, self._embed, new)
            self._pending |= dict.fromkeys(new, future)

    def _embed(self, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return dict(zip(texts, self._embedder.embed(texts), strict=True))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts like the embedder itself; rows have shape (D,), float32."""
        self.prefetch(texts)
        for text in texts:
            if text not in self._cached:
                vectors = self._pending[text].result()
                self._cached.update(vectors)
                for done in vectors:
                    del self._pending[done]
        rows = np.stack([self._cached[text] for text in texts])
        while len(self._cached) > MAX_CACHED_VECTORS:
            del self._cached[next(iter(self._cached))]
        return rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


# Captions of a video at several time scales, written elsewhere: read, and stored as a reference.
#
# They are nodes of the builder ``REFERENCE``, whose level is the scale, such as ``180 s``. What a
# strategy builds can be compared with them; no search finds them.

REFERENCE = "reference"
"""The builder under whose name they are stored."""


NAMED = 5
"""Videos that a complaint names at most."""


class ScaledCaption(NamedTuple):
    """What happened in a span, as written at a scale of so many seconds."""

    scale_s: int
    span: TimeSpan
    text: str

    @property
    def level(self) -> str:
        return f"{self.scale_s} s"


def read_scaled_captions(
    path: Path, limits: ImportLimits = DEFAULT_LIMITS
) -> tuple[ScaledCaption, ...]:
    """Read captions from JSON lines, a JSON list or an object with ``captions``, also gzipped.

    Each has the fields of ``memory.captions.read_captions`` and its ``scale_s`` in seconds.

    Returns:
        By scale, then by time.

    Raises:
        NotFound: there is no such file.
        InputError: it cannot be read, has no caption, or captions of several videos; says which
            line or record.
    """
    read = [_caption(place, row) for place, row in _rows(path, read_text(path, limits))]
    if not read:
        raise InputError(f"{path} holds no caption: nothing to import")
    videos = sorted({video for video, _ in read if video})
    if len(videos) > 1:
        shown = ", ".join(videos[:NAMED])
        raise InputError(
            f"{path} names {len(videos)} videos ({shown}): give each a file of its own, since all "
            "captions are stored beside one video"
        )
    captions = [caption for _, caption in read]
    return tuple(sorted(captions, key=lambda one: (one.scale_s, one.span.start_ms)))


def _rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the records of a file, each with its place."""
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield f"{path}, line {number}", _parsed(f"{path}, line {number}", line)
        return
    whole = _parsed(str(path), text)
    rows = whole.get("captions") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise InputError(f"{path} holds no list of captions")
    yield from ((f"{path}, caption {number}", row) for number, row in enumerate(rows, 1))


def _parsed(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is no JSON: {error}") from error


def _caption(place: str, row: Any) -> tuple[str, ScaledCaption]:
    """Return a caption, and the name of its video, "" if it names none."""
    try:
        video, line = parse_json_line(row)
        scale_s = row.get("scale_s")
        if type(scale_s) is not int or not 1 <= scale_s <= DAY_S:
            raise ValueError(f"scale_s is not a number of seconds of a day: {scale_s!r}")
        if not line.text:
            raise ValueError("text is empty")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: {error}") from error
    return video, ScaledCaption(scale_s, line.span, line.text)


def import_reference(store: Store, video: Video, captions: Sequence[ScaledCaption]) -> None:
    """Store captions of a video in memory, in place of those that were stored before.

    Each holds from the clip on in which its span ends.

    Raises:
        InputError: one begins after the video ends.
    """
    with store.begin() as session:
        lock_video(session, video.id)
        clips = clips_page(session, video.id, 0, count_clips(session, video.id))
        nodes = list[Node]()
        end_ms = clips[-1].span.end_ms if clips else 0
        for _, of_scale in groupby(captions, key=lambda one: one.scale_s):
            for number, one in enumerate(of_scale):
                if one.span.start_ms >= end_ms:
                    raise InputError(
                        f"a caption begins at {one.span}, after {video.title} ends: is it of "
                        "another video?"
                    )
                last = (clip.index for clip in clips if clip.span.end_ms >= one.span.end_ms)
                clip = next(last, clips[-1].index)
                nodes.append(Node(one.level, number, one.text, one.span, clip))
        delete_build(session, video.id, REFERENCE)
        made = StepMade(clips[-1].index, version=1, encoder="")
        apply_change(session, video.id, REFERENCE, made, Change(nodes=nodes))
        record_deed(session, Deed.IMPORTED, video.id)
