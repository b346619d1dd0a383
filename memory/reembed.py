"""Changes a library to other encoders: new vectors beside the old, in batches, then at once.

What is left is what has no vector beside its own yet, so an interrupted run goes on where it was.
Searches take the old ones meanwhile. Pictures are encoded from their JPEGs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain import faults
from domain.errors import BlobGone
from models.ports import ImageEncoder, TextEmbedder
from models.text_endpoint import recorded_embeddings
from people.characters import people_at
from people.model_transactions import (
    ModelCallNeeded,
    TransactionEmbedder,
    record_call,
    run_with_models,
)
from people.names import search_text
from perception.images import decode_image
from store.database import Store
from store.progress import Progress
from store.queries import encoders as stored
from store.queries.encoders import KEPT, KEYFRAME, StoredPicture
from store.queries.percepts import lock_video
from store.queries.videos import known_video

CLIPS = 8
"""Clips of a transaction."""
SEGMENTS = 128
"""Revisions of segments of a transaction."""
PICTURES = 16
"""Keyframes and kept frames of a transaction."""


def reembed_video(store: Store, video_id: str, embedder: TextEmbedder, progress: Progress) -> None:
    """Give all texts of a video a vector of an encoder beside the one that they have.

    It is safe while the video is watched and asked; one that is deleted meanwhile is left alone.

    Raises:
        ModelError: The encoder failed; what has new vectors keeps them.
    """
    with recorded_embeddings(partial(record_call, store, video_id, None)):
        _Pass(store, video_id, embedder, progress).run()


def reembed_pictures(
    store: Store, video_id: str, encoder: ImageEncoder, progress: Progress
) -> set[StoredPicture]:
    """Give all pictures of a video a vector of an image encoder, as ``reembed_video`` does.

    Returns:
        The pictures whose file is gone or damaged: they get none.

    Raises:
        ModelError: The encoder failed; what has new vectors keeps them.
    """
    one = _PicturePass(store, video_id, encoder, progress)
    one.run()
    return one.unreadable


def change_encoder(
    store: Store, unreadable: Collection[StoredPicture] = (), *, images: bool
) -> bool:
    """Change the library over to the vectors beside its own; False if rows were added meanwhile.

    Args:
        unreadable: Pictures that get no vector.
        images: Those of pictures, not those of texts.
    """
    with store.begin() as session:
        stored.lock_encoders(session)
        if stored.is_anything_left(session, unreadable, images=images):
            return False
        stored.change_over(session, images=images)
    faults.fault_point(faults.FaultPoint.REEMBEDDED)
    return True


class _PicturePass:
    """One pass over the keyframes and kept frames of a video, by id."""

    def __init__(
        self, store: Store, video_id: str, encoder: ImageEncoder, progress: Progress
    ) -> None:
        self._store, self._video, self._encoder = store, video_id, encoder
        self._progress = progress
        self._vectors: dict[str, list[float] | None] = {}
        self._after: StoredPicture | None = None
        self.unreadable: set[StoredPicture] = set()
        """Pictures whose file is gone or damaged."""

    def run(self) -> None:
        while pictures := run_with_models(self._store, self._batch):
            # Vectors of one batch are of no use for the next.
            self.unreadable |= {one for one in pictures if self._vectors[one.blob] is None}
            self._vectors = {}
            self._after = pictures[-1]
            faults.fault_point(faults.FaultPoint.REEMBEDDED_BATCH)
            self._progress.step(len(pictures))

    def _batch(self, session: Session) -> list[StoredPicture]:
        """Store the vectors of the next pictures; return these.

        Raises:
            ModelCallNeeded: Some are not encoded yet; they are in the next run.
        """
        lock_video(session, self._video)
        pictures = stored.pictures_left(session, self._video, self._after, PICTURES)
        missing = [one.blob for one in pictures if one.blob not in self._vectors]
        if missing:
            raise ModelCallNeeded(lambda: self._encode(missing))
        for kind in (KEYFRAME, KEPT):
            known = {one.id: self._vectors[one.blob] for one in pictures if one.kind == kind}
            made = {row: vector for row, vector in known.items() if vector is not None}
            stored.set_next_vectors(session, kind, made)
        return pictures

    def _encode(self, blobs: Sequence[str]) -> None:
        for blob in dict.fromkeys(blobs):
            try:
                image = decode_image(self._store.blobs.get(blob))
            except BlobGone:
                image = None
            vector = None if image is None else self._encoder.images([image])[0].tolist()
            self._vectors[blob] = vector


class _Pass:
    """One pass over the texts of a video, from its first clip to its last segment."""

    def __init__(
        self, store: Store, video_id: str, embedder: TextEmbedder, progress: Progress
    ) -> None:
        self._store, self._video, self._embedder = store, video_id, embedder
        self._progress = progress
        self._vectors = TransactionEmbedder(embedder)
        self._after = -1

    def run(self) -> None:
        for batch in (self._clips, self._segments):
            self._after = -1
            while True:
                # Vectors of one batch are of no use for the next.
                self._vectors = TransactionEmbedder(self._embedder)
                rows, last = run_with_models(self._store, batch)
                if last is None:
                    break
                self._after = last
                faults.fault_point(faults.FaultPoint.REEMBEDDED_BATCH)
                self._progress.step(rows)

    def _clips(self, session: Session) -> tuple[int, int | None]:
        """Embed the texts of the next clips; return the number of rows, and the last clip."""
        video = self._video
        lock_video(session, video)
        clips = stored.clips_left(session, video, self._after, CLIPS)
        if not clips or known_video(session, video) is None:
            return 0, None
        memories, frames, texts = _texts_of_clips(session, video, clips)
        vectors = list(self._vectors.embed(texts)) if texts else []
        of_lines, of_frames = vectors[: len(memories)], vectors[len(memories) :]
        stored.set_next_vectors(session, "memory", _by_id(memories, of_lines))
        stored.set_next_vectors(session, "description", _by_id(frames, of_frames))
        return len(texts), clips[-1]

    def _segments(self, session: Session) -> tuple[int, int | None]:
        """Embed the texts of the next revisions; return their number, and the id of the last."""
        lock_video(session, self._video)
        revisions = stored.revisions_left(session, self._video, self._after, SEGMENTS)
        if not revisions:
            return 0, None
        vectors = list(self._vectors.embed([revision.embedded for revision in revisions]))
        stored.set_next_vectors(session, "revision", _by_id([one.id for one in revisions], vectors))
        return len(revisions), revisions[-1].id


def texts_to_embed(store: Store, video_id: str, *, anew: bool) -> Iterator[str]:
    """Yield the texts of a video that ``reembed_video`` would embed, in batches as it does.

    ``anew``: as if it had never begun.
    """
    after: int | None = -1
    while after is not None:
        with store.begin() as session:
            clips = stored.clips_left(session, video_id, after, CLIPS, anew=anew)
            _, _, texts = _texts_of_clips(session, video_id, clips)
        yield from dict.fromkeys(texts)
        after = clips[-1] if clips else None
    after = -1
    while after is not None:
        with store.begin() as session:
            revisions = stored.revisions_left(session, video_id, after, SEGMENTS, anew=anew)
        yield from dict.fromkeys(revision.embedded for revision in revisions)
        after = revisions[-1].id if revisions else None


def some_embedded_lines(store: Store, limit: int) -> tuple[list[str], NDArray[np.float32]]:
    """Return lines from all over the library as they were embedded, and their vectors, (N, D)."""
    with store.begin() as session:
        people = cache(partial(people_at, session))
        found = stored.some_lines(session, limit)
        texts = [search_text(line.draft, people(video, line.clip)) for video, line, _ in found]
    return texts, np.array([vector for _, _, vector in found], np.float32)


def _texts_of_clips(
    session: Session, video_id: str, clips: Sequence[int]
) -> tuple[list[int], list[int], list[str]]:
    """Return the ids of clips' memories and described keyframes, and the texts to embed of both."""
    people = {clip: people_at(session, video_id, clip) for clip in clips}
    lines = stored.lines_of(session, video_id, clips)
    frames = stored.descriptions_of(session, video_id, clips)
    texts = [search_text(line.draft, people[line.clip]) for line in lines]
    texts += [people[clip].replace_tags(text) for _, clip, text in frames]
    return [line.id for line in lines], [frame for frame, _, _ in frames], texts


def _by_id(ids: Sequence[int], vectors: Sequence[NDArray[np.float32]]) -> dict[int, list[float]]:
    return {row: vector.tolist() for row, vector in zip(ids, vectors, strict=True)}
