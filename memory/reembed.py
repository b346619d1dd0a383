"""Changes the vectors of a video's texts and pictures to other encoders, in batches.

What is left is what has a vector of another encoder, so an interrupted run goes on where it was.
Searches compare each row by its own encoder meanwhile. Pictures are encoded from their JPEGs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain import faults
from domain.errors import BlobGone
from memory.patch_window import read_people
from models.ports import Image, ImageEncoder, TextEmbedder
from models.text_endpoint import recorded_embeddings
from people.identities import mean_direction
from people.model_transactions import (
    ModelCallNeeded,
    TransactionEmbedder,
    record_call,
    run_with_models,
)
from people.names import search_text
from perception.jpeg import decode_image
from store.database import Store
from store.progress import Progress
from store.queries import encoders as stored
from store.queries.encoders import (
    StoredPicture,
    record_encoder,
    settle_encoder,
    settle_image_encoder,
)
from store.queries.percepts import lock_video
from store.queries.videos import known_video

CLIPS = 8
"""Clips of a transaction."""
SEGMENTS = 128
"""Revisions of segments of a transaction."""
PICTURES = 16
"""Keyframes and kept frames of a transaction."""


def reembed_video(store: Store, video_id: str, embedder: TextEmbedder, progress: Progress) -> None:
    """Give all texts of a video vectors of an encoder; safe while it is watched and asked.

    Args:
        video_id: The video; one that is deleted meanwhile is left alone.
        progress: Is told of each row.

    Raises:
        ModelError: The encoder failed; what has new vectors keeps them.
    """
    settled = False
    with recorded_embeddings(partial(record_call, store, video_id, None)):
        while not settled:
            _Pass(store, video_id, embedder, progress).run()
            settled = _settle(store, video_id, embedder.name)


def _settle(store: Store, video_id: str, encoder: str) -> bool:
    """Record that the encoder made all vectors; return False if rows were added meanwhile."""
    with store.begin() as session:
        lock_video(session, video_id)
        if stored.rows_left(session, video_id, encoder).rows:
            return False
        settle_encoder(session, video_id, encoder)
    faults.fault_point(faults.FaultPoint.REEMBEDDED)
    return True


def reembed_pictures(store: Store, video_id: str, encoder: ImageEncoder, progress: Progress) -> int:
    """Give all pictures of a video vectors of an image encoder; safe as ``reembed_video`` is.

    Args:
        video_id: The video; one that is deleted meanwhile is left alone.

    Returns:
        The number of pictures whose file is gone or damaged: they keep the vector that they have.

    Raises:
        ModelError: The encoder failed; what has new vectors keeps them.
    """
    while True:
        one = _PicturePass(store, video_id, encoder, progress)
        one.run()
        if _settle_pictures(store, video_id, encoder.name, one.unreadable):
            return len(one.unreadable)


def _settle_pictures(
    store: Store, video_id: str, encoder: str, unreadable: set[StoredPicture]
) -> bool:
    """Record that the encoder made all vectors; return False if pictures were added meanwhile."""
    with store.begin() as session:
        lock_video(session, video_id)
        # Some that could not be read may be deleted by now.
        left = stored.pictures_left(session, video_id, encoder, None, len(unreadable) + 1)
        if set(left) - unreadable:
            return False
        settle_image_encoder(session, video_id, encoder)
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
        """Embed what is left."""
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
        name = self._encoder.name
        pictures = stored.pictures_left(session, self._video, name, self._after, PICTURES)
        missing = [one.blob for one in pictures if one.blob not in self._vectors]
        if missing:
            raise ModelCallNeeded(lambda: self._encode(missing))
        known = {one: self._vectors[one.blob] for one in pictures}
        made = {one: vector for one, vector in known.items() if vector is not None}
        stored.set_picture_vectors(session, made, name)
        return pictures

    def _encode(self, blobs: Sequence[str]) -> None:
        for blob in dict.fromkeys(blobs):
            image = self._image(blob)
            vector = None if image is None else self._encoder.images([image])[0].tolist()
            self._vectors[blob] = vector

    def _image(self, blob: str) -> Image | None:
        """Return a picture as H x W x 3 RGB; None if its file is gone or damaged."""
        try:
            return decode_image(self._store.blobs.get(blob))
        except BlobGone:
            return None


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
        """Embed what is left."""
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
        video, name = self._video, self._embedder.name
        lock_video(session, video)
        clips = stored.clips_left(session, video, name, self._after, CLIPS)
        if not clips or known_video(session, video) is None:
            return 0, None
        lines, frames, texts = _texts_of_clips(session, video, clips)
        vectors = list(self._vectors.embed(texts)) if texts else []
        of_lines, of_frames = vectors[: len(lines)], vectors[len(lines) :]
        record_encoder(session, video, name)
        stored.set_line_vectors(session, _by_id(lines, of_lines), name)
        stored.set_description_vectors(session, _by_id(frames, of_frames), name)
        means: dict[int, Sequence[float] | None] = dict.fromkeys(clips)
        for clip in {line.clip for line in lines}:
            pairs = zip(lines, of_lines, strict=True)
            means[clip] = mean_direction([vector for line, vector in pairs if line.clip == clip])
        stored.set_clip_vectors(session, video, means, name)
        return len(texts), clips[-1]

    def _segments(self, session: Session) -> tuple[int, int | None]:
        """Embed the texts of the next revisions; return their number, and the id of the last."""
        video, name = self._video, self._embedder.name
        lock_video(session, video)
        revisions = stored.revisions_left(session, video, name, self._after, SEGMENTS)
        if not revisions:
            return 0, None
        vectors = list(self._vectors.embed([revision.embedded for revision in revisions]))
        record_encoder(session, video, name)
        stored.set_revision_vectors(session, _by_id(revisions, vectors), name)
        return len(revisions), revisions[-1].id


def texts_to_embed(store: Store, video_id: str, encoder: str) -> Iterator[str]:
    """Yield the texts of a video that ``reembed_video`` would embed, in batches as it does."""
    after: int | None = -1
    while after is not None:
        with store.begin() as session:
            clips = stored.clips_left(session, video_id, encoder, after, CLIPS)
            _, _, texts = _texts_of_clips(session, video_id, clips)
        yield from dict.fromkeys(texts)
        after = clips[-1] if clips else None
    after = -1
    while after is not None:
        with store.begin() as session:
            revisions = stored.revisions_left(session, video_id, encoder, after, SEGMENTS)
        yield from dict.fromkeys(revision.embedded for revision in revisions)
        after = revisions[-1].id if revisions else None


def some_embedded_lines(
    store: Store, encoder: str, limit: int
) -> tuple[list[str], NDArray[np.float32]]:
    """Return lines from all over the library as they were embedded, and their vectors, (N, D)."""
    with store.begin() as session:
        people = cache(partial(read_people, session))
        found = stored.some_lines(session, encoder, limit)
        texts = [search_text(line.draft, people(video, line.clip)) for video, line, _ in found]
    return texts, np.array([vector for _, _, vector in found], np.float32)


def _texts_of_clips(
    session: Session, video_id: str, clips: Sequence[int]
) -> tuple[list[stored.Line], list[stored.Description], list[str]]:
    """Return the lines of clips, their described keyframes, and the texts to embed of both."""
    people = {clip: read_people(session, video_id, clip) for clip in clips}
    lines = stored.lines_of(session, video_id, clips)
    frames = stored.descriptions_of(session, video_id, clips)
    texts = [search_text(line.draft, people[line.clip]) for line in lines]
    texts += [people[frame.clip].replace_tags(frame.text) for frame in frames]
    return lines, frames, texts


def _by_id(
    rows: Sequence[stored.Line | stored.Description | stored.Revision],
    vectors: Sequence[NDArray[np.float32]],
) -> dict[int, list[float]]:
    return {row.id: vector.tolist() for row, vector in zip(rows, vectors, strict=True)}
