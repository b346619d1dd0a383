"""Sentence embeddings of a server that speaks OpenAI's protocol."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

from domain.errors import ModelError, SetupError
from models.chat_models import api_key, key_variable, redact_key
from models.endpoint import KEY_REFUSED
from models.extras import extra_of
from models.profile import ChatSpec, EncoderSpec
from models.retries import CallFailed, call_with_retries
from models.secrets import redacted_url

if TYPE_CHECKING:
    from langchain_openai import OpenAIEmbeddings


class EndpointTextEmbedder:
    """A text encoder behind an endpoint. Thread-safe.

    A server need not return the same bits for a text each time.

    Args:
        endpoint: The model, ``openai:NAME``, where it is and how it is called.
        spec: How it reads texts, and how many in a request.
        languages: Those it was made for; empty: not known.
    """

    def __init__(
        self, endpoint: ChatSpec, spec: EncoderSpec, languages: tuple[str, ...] = ()
    ) -> None:
        self.name = endpoint.model
        self.languages = languages
        self._endpoint = endpoint
        self._spec = spec

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
        rows = np.concatenate([self._rows(batch) for batch in _batches(sent, self._spec.batch)])
        place = {text: index for index, text in enumerate(distinct)}
        return np.asarray(rows[[place[text] for text in texts]], np.float32)

    def _rows(self, batch: list[str]) -> NDArray[np.float32]:
        """Embed one batch, with retries until the time is over."""
        call = partial(self._client.embed_documents, batch)
        deadline = time.monotonic() + self._spec.timeout_s
        try:
            found = call_with_retries(call, deadline, self._spec.retries)
        except CallFailed as failure:
            raise self._error(failure) from None  # It has the key, maybe.
        return self._checked(found, len(batch))

    def _checked(self, found: list[list[float]], count: int) -> NDArray[np.float32]:
        """Return the vectors of a reply as L2-normalised rows."""
        if len({len(row) for row in found}) != 1 or len(found) != count:
            raise ModelError(f"{self._place} did not return one vector for each of {count} texts")
        rows = np.array(found, np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise ModelError(f"{self._place} returned a vector that is no direction")
        return np.asarray(rows / norms, np.float32)

    @cached_property
    def _client(self) -> OpenAIEmbeddings:
        if not extra_of("openai").installed:
            raise SetupError(
                f"the text model {self.name!r} needs a package that is not installed: "
                f"{extra_of('openai').hint}"
            )
        # LangChain is slow to import, and other text models do without.
        from langchain_openai import OpenAIEmbeddings

        key = api_key(self._endpoint)
        return OpenAIEmbeddings(
            model=self._endpoint.model_name,
            openai_api_base=self._spec.base_url,
            openai_api_key=SecretStr(key) if key is not None else None,
            request_timeout=self._spec.timeout_s,
            # Retries and deadlines are ours (models.retries), as for language models.
            max_retries=0,
            # Otherwise it would send numbers of OpenAI's tokens, which other servers do not know.
            check_embedding_ctx_length=False,
            chunk_size=self._spec.batch,
        )

    @property
    def _place(self) -> str:
        url = self._spec.base_url
        return f"{self.name} at {redacted_url(url)}" if url else self.name

    def _error(self, failure: CallFailed) -> ModelError | SetupError:
        if failure.status in KEY_REFUSED:
            variable = key_variable(self._endpoint) or "the key"
            return SetupError(
                f"{self.name} does not let us in ({failure.status}): check {variable}"
            )
        reason = redact_key(str(failure), self._endpoint)
        return ModelError(f"{self._place} did not answer: {reason}")


def _batches(texts: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(texts), size):
        yield list(texts[start : start + size])
