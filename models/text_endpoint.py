"""Sentence embeddings of a server that speaks OpenAI's protocol, and what its requests cost.

They cost as calls to language models do: ``recorded_embeddings`` says who records them. What single
searches take is on record, and shown with what they find; that of questions is on record with their
trajectory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from domain.calls import CallRecord
from domain.errors import ModelError, SetupError
from domain.moments import SearchCost
from models.chat import Sink
from models.endpoint import api_key, server_error
from models.keys_and_packages import extra_of, redacted_url
from models.messages import text_tokens
from models.retries import CallFailed, call_with_retries
from models.specs import ChatSpec, EncoderSpec, cost_usd
from store.queries.trajectories import EMBED, SEARCH, add_call, usage_of_searches

if TYPE_CHECKING:
    from openai.resources import Embeddings
    from openai.types import CreateEmbeddingResponse

    from store.database import Store

_sink: ContextVar[Sink | None] = ContextVar("embedding_sink", default=None)


@contextmanager
def recorded_embeddings(sink: Sink) -> Iterator[None]:
    """Give each request to an embeddings endpoint that is made within to ``sink``.

    Texts are not part of the record: they are stored already where they are of a memory, and a
    question's are on its own record. The reply on record is the number of texts and of their
    characters, from which later ones are estimated.
    """
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


class EndpointTextEmbedder:
    """A text encoder behind an endpoint. Thread-safe.

    A server need not return the same bits for a text each time.

    Args:
        endpoint: The model, ``PROVIDER:NAME``, where it is and how it is called.
        spec: How it reads texts, and how many in a request.
        languages: Those it was made for; empty: not known.
        profile: The profile's name, for the record.
    """

    def __init__(
        self,
        endpoint: ChatSpec,
        spec: EncoderSpec,
        languages: tuple[str, ...] = (),
        profile: str = "",
    ) -> None:
        self.name = endpoint.model
        self.languages = languages
        self._endpoint = endpoint
        self._spec = spec
        self._profile = profile

    @cached_property
    def dimensions(self) -> int:
        """The size of a vector, found by embedding a word."""
        return int(self._rows(["word"]).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts to be stored: one L2-normalised row a text, shape (N, dimensions).

        Raises:
            ModelError: No answer, or one that is not a vector for each text.
            SetupError: A package or key is missing, or the key is refused.
        """
        return self._embedded(texts, self._spec.passage_prefix or "")

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts to search for, as ``embed`` does."""
        return self._embedded(texts, self._spec.query_prefix or "")

    def _embedded(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        distinct = list(dict.fromkeys(texts))
        if not distinct:
            return np.zeros((0, self.dimensions), np.float32)
        # Servers refuse an empty text.
        sent = [f"{prefix}{text}".strip() or "." for text in distinct]
        size = self._spec.batch
        batches = (sent[start : start + size] for start in range(0, len(sent), size))
        rows = np.concatenate([self._rows(batch) for batch in batches])
        place = {text: index for index, text in enumerate(distinct)}
        return np.asarray(rows[[place[text] for text in texts]], np.float32)

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return how many tokens the server counts in texts to be stored, by embedding them.

        Raises:
            ModelError: No answer.
            SetupError: A package or key is missing, or the key is refused.
        """
        counted: list[CallRecord] = []
        with recorded_embeddings(counted.append):
            self.embed(texts)
        return sum(call.tokens_in for call in counted)

    def _rows(self, batch: list[str]) -> NDArray[np.float32]:
        """Embed one batch, with retries until the time is over, and record the request."""
        # OpenAI's client asks for base64 otherwise, which Google and others refuse.
        ask = partial(self._client.create, model=self._endpoint.model_name, encoding_format="float")
        call = partial(ask, input=batch)
        started = time.monotonic()
        try:
            probe = partial(ask, input=["."])
            deadline = started + self._spec.timeout_s
            found = call_with_retries(call, deadline, self._spec.retries, probe)
        except CallFailed as failure:
            error = server_error(self._endpoint, failure)
            self._record(started, error=str(error))
            raise error from None  # The failure has the key, maybe.
        self._record(started, batch, found)
        try:
            # In the order of the texts, which each vector names by its index; some servers state
            # none at all.
            stated: list[Any] = [getattr(item, "index", None) for item in found.data]
            vectors = [item.embedding for item in found.data]
            if any(index is not None for index in stated):
                if sorted(stated) != list(range(len(vectors))):
                    raise ValueError(f"indices of vectors: {stated}")
                by_index = dict(zip(stated, vectors, strict=True))
                vectors = [by_index[index] for index in range(len(vectors))]
            return self._checked(vectors, len(batch))
        except (AttributeError, TypeError, ValueError):
            raise ModelError(f"{self._place} returned what are no vectors") from None

    def _record(
        self,
        started: float,
        batch: Sequence[str] = (),
        found: CreateEmbeddingResponse | None = None,
        error: str | None = None,
    ) -> None:
        """Give a request to whoever records them: what it took, or how it failed."""
        sink = _sink.get()
        if sink is None:
            return
        ms = round((time.monotonic() - started) * 1000)
        record = CallRecord("", EMBED, self._profile, self.name, (), None, error, 0, 0, 0.0, ms)
        if found is not None:
            # The tokens that a server counted; an estimate if it does not state them.
            # Other servers than OpenAI's may leave it out.
            counted = getattr(getattr(found, "usage", None), "prompt_tokens", None)
            tokens = (
                counted
                if isinstance(counted, int) and counted >= 0
                else sum(map(text_tokens, batch))
            )
            record = replace(
                record,
                reply={"texts": len(batch), "characters": sum(map(len, batch))},
                tokens_in=tokens,
                cost_usd=cost_usd(self._endpoint, tokens, 0),
            )
        sink(record)

    def _checked(self, found: list[list[float]], count: int) -> NDArray[np.float32]:
        if len({len(row) for row in found}) != 1 or len(found) != count:
            raise ModelError(f"{self._place} did not return one vector for each of {count} texts")
        rows = np.array(found, np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise ModelError(f"{self._place} returned a vector that is no direction")
        return np.asarray(rows / norms, np.float32)

    @cached_property
    def _client(self) -> Embeddings:
        if not extra_of("openai").installed:
            raise SetupError(
                f"the text model {self.name!r} needs a package that is not installed: "
                f"{extra_of('openai').hint}"
            )
        # OpenAI's client is slow to import, and other text models do without.
        from openai import OpenAI

        return OpenAI(
            base_url=self._endpoint.base_url,
            api_key=api_key(self._endpoint),
            timeout=self._spec.timeout_s,
            # Retries and deadlines are ours (models.retries), as for language models.
            max_retries=0,
        ).embeddings

    @property
    def _place(self) -> str:
        url = self._endpoint.base_url
        return f"{self.name} at {redacted_url(url)}" if url else self.name


class CountedSearch:
    """What one search took so far: its requests."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []

    @property
    def usage(self) -> SearchCost:
        """Their number, tokens and cost."""
        return SearchCost(
            requests=len(self.calls),
            tokens=sum(call.tokens_in for call in self.calls),
            cost_usd=sum(call.cost_usd for call in self.calls),
        )


@contextmanager
def recorded_search(store: Store) -> Iterator[CountedSearch]:
    """Record the requests to an embeddings endpoint that a search makes within, once it ends.

    Their texts are not part of the record. They are of no video: a search may be over all.
    """
    cost = CountedSearch()
    try:
        with recorded_embeddings(cost.calls.append):
            yield cost
    finally:
        if cost.calls:
            with store.begin() as session:
                for call in cost.calls:
                    add_call(session, replace(call, purpose=SEARCH))


def searches_so_far(store: Store) -> SearchCost:
    """Return what all single searches on record took."""
    with store.begin() as session:
        return usage_of_searches(session)
