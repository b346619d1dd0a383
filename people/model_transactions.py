"""Transactions that need a model's work: the model is called between tries, never within one.

A transaction that finds that something is lacking (a vector of a text, the memory of a clip as a
language model writes it) is rolled back; the model is called; the transaction is run again from
its beginning. So no lock is held while a model works, and what the model was given is read anew
in the transaction that writes what it said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from domain.errors import ModelError
from models.ports import TextEmbedder
from store.database import Store

T = TypeVar("T")

MAX_TRIES = 12
"""How often a transaction is run; more than a few are needed only where others write meanwhile."""


class ModelCallNeeded(Exception):
    """Rolls back a transaction that needs a model's result first.

    Args:
        call: Calls the model and keeps what it gives for the next try.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__("a transaction needs the work of a model first")
        self.call = call


def run_with_models(store: Store, run: Callable[[Session], T]) -> T:
    """Run a transaction again until it has every model result that it needs.

    Args:
        store: The store.
        run: Reads and writes within a transaction, and raises ``ModelCallNeeded`` where a model
            result is missing. All runs but the last are rolled back.

    Returns:
        What ``run`` returned.

    Raises:
        ModelError: A model failed, or what it was given changed again and again meanwhile.
    """
    for _ in range(MAX_TRIES):
        try:
            with store.begin() as session:
                return run(session)
        except ModelCallNeeded as needed:
            needed.call()
    raise ModelError("what a model was shown changed again and again meanwhile: try again later")


class TransactionEmbedder:
    """A text embedder for use within transactions: it gives the vectors that are on hand.

    Args:
        embedder: Makes vectors, outside of transactions.
        texts: Whose vectors will surely be asked for.
    """

    def __init__(self, embedder: TextEmbedder, texts: Sequence[str] = ()) -> None:
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.languages = embedder.languages
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}
        self._deferred: dict[str, None] = {}
        self._fetch(texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As of the embedder itself.

        Raises:
            ModelCallNeeded: Some are not on hand; they will be.
        """
        missing = [text for text in texts if text not in self._known]
        if missing:
            raise ModelCallNeeded(lambda: self._fetch(missing))
        return np.stack([self._known[text] for text in texts])

    def embed_deferred(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts; rows of texts that have no vector yet are zeros until the next run.

        For transactions that need vectors in many places: ``require_deferred`` asks for all of
        them at once, so that the transaction runs twice and not once a place.
        """
        self._deferred |= dict.fromkeys(text for text in texts if text not in self._known)
        none = np.zeros(self.dimensions, np.float32)
        return np.stack([self._known.get(text, none) for text in texts])

    def require_deferred(self) -> None:
        """To be called before a transaction that used ``embed_deferred`` ends.

        Raises:
            ModelCallNeeded: It was given zeros in place of a vector.
        """
        deferred, self._deferred = list(self._deferred), {}
        if deferred:
            raise ModelCallNeeded(lambda: self._fetch(deferred))

    def _fetch(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= dict(zip(new, self._embedder.embed(new), strict=True))
