"""Transactions that need model results: models are called between tries, never within one.

A transaction that lacks a result (a text's vector, or the memories that a language model writes
of a clip) is rolled back, the model is called, and the transaction is run again from its start.
So no lock is held during a model call, and the model's input is read again and compared in the
transaction that stores its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.calls import CallRecord
from domain.errors import ModelError
from models.ports import TextEmbedder
from models.text_endpoint import recorded_embeddings
from store.database import Store
from store.queries.trajectories import add_call
from store.queries.videos import protect_video

T = TypeVar("T")

MAX_TRIES = 12
"""Most runs of a transaction; more than a few are needed only with concurrent writers."""


class ModelCallNeeded(Exception):
    """Rolls back a transaction that needs a model's result first."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__("a transaction needs the work of a model first")
        self.call = call


def run_with_models(store: Store, run: Callable[[Session], T]) -> T:
    """Run a transaction again until it has every model result that it needs.

    Args:
        run: Reads and writes within a transaction, and raises ``ModelCallNeeded`` where a model
            result is missing. All runs but the last are rolled back.

    Returns:
        What ``run`` returned.

    Raises:
        ModelError: A model failed, or its input still changed after ``MAX_TRIES`` runs.
    """
    for _ in range(MAX_TRIES):
        try:
            with store.begin() as session:
                return run(session)
        except ModelCallNeeded as needed:
            needed.call()
    raise ModelError("what a model was shown changed again and again meanwhile: try again later")


class TransactionEmbedder:
    """A text embedder for use within transactions: it returns cached vectors only.

    Args:
        embedder: Computes vectors, outside of transactions.
        texts: Texts to embed at once, since they will be needed.
    """

    def __init__(self, embedder: TextEmbedder, texts: Sequence[str] = ()) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.languages = embedder.languages
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}
        self._deferred: dict[str, None] = {}
        self._fetch(texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return cached vectors, shape (N, D), float32.

        Raises:
            ModelCallNeeded: Some are not cached; they are in the next run.
        """
        missing = [text for text in texts if text not in self._known]
        if missing:
            raise ModelCallNeeded(lambda: self._fetch(missing))
        return np.stack([self._known[text] for text in texts])

    def embed_deferred(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; rows of texts that have no vector yet are zeros until the next run.

        For transactions that need vectors in many places: ``require_deferred`` requests all of them
        at once, so that the transaction runs twice instead of once for each place.
        """
        self._deferred |= dict.fromkeys(text for text in texts if text not in self._known)
        zeros = np.zeros(self.dimensions, np.float32)
        return np.stack([self._known.get(text, zeros) for text in texts])

    def require_deferred(self) -> None:
        """Check, before a transaction that used ``embed_deferred`` ends, that no vector is missing.

        Raises:
            ModelCallNeeded: ``embed_deferred`` returned zeros in place of a vector.
        """
        deferred, self._deferred = list(self._deferred), {}
        if deferred:
            raise ModelCallNeeded(lambda: self._fetch(deferred))

    def _fetch(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= dict(zip(new, self._embedder.embed(new), strict=True))


# Records the model calls that a video's memory takes.


def record_call(store: Store, video_id: str, clip: int | None, call: CallRecord) -> None:
    """Store a call of a video's memory at once, unless the video was deleted meanwhile.

    ``clip``: None if it is for no single clip.
    """
    with store.begin() as session:
        if protect_video(session, video_id):
            add_call(session, replace(call, video_id=video_id, clip=clip))


@contextmanager
def embeddings_recorded_after(store: Store, video_id: str) -> Iterator[None]:
    """Record the requests to an embeddings endpoint that are made within, once it ends or fails.

    For what deletes calls on record: those of the deletion itself are not among them.
    """
    calls: list[CallRecord] = []
    try:
        with recorded_embeddings(calls.append):
            yield
    finally:
        for call in calls:
            record_call(store, video_id, None, call)
