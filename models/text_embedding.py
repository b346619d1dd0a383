"""Sentence embeddings on ONNX Runtime, the same bits for a text whatever it is embedded with.

Padding a batch changes the low bits of a transformer's output, and a model that quantises its
activations over the whole batch changes more than those. So nothing is ever padded: texts of
equal token length share a run where the model keeps its rows apart (``batch > 1``), and otherwise
each text is run alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from domain.errors import WeightsMissing
from models.onnx import map_in_threads, open_session
from models.text_folder import EncoderFiles

TOKENS_A_RUN = 512
_SENTENCE = "sentence_embedding"
"""The output of some exports that has pooled already."""
_STATES = ("last_hidden_state", "token_embeddings")


class OnnxTextEmbedder:
    """A sentence encoder exported to ONNX, with its tokenizer beside it. Thread-safe.

    Args:
        name: how the model is called in the store.
        files: its files, and how it reads texts.
        batch: most texts of equal token length in one run; 1 where rows would touch each other.
        languages: those it was made for.
    """

    def __init__(
        self, name: str, files: EncoderFiles, *, batch: int = 1, languages: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.languages = languages
        self._files = files
        self._batch = batch
        self._session = open_session(files.model, threads=1, arena=False)
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._output = _output([one.name for one in self._session.get_outputs()])
        self._tokenizer = _tokenizer(files)

    @cached_property
    def dimensions(self) -> int:
        """The size of a vector."""
        return int(self._run(np.zeros((1, 1), np.int64)).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts to be stored: one L2-normalised row a text, shape (N, dimensions).

        A row depends on its own text only, bit for bit. Equal texts are computed once. Texts are
        cut where the model stops reading.
        """
        return self._embedded(texts, self._files.passage_prefix)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts to search for, as ``embed`` does."""
        return self._embedded(texts, self._files.query_prefix)

    def _embedded(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        distinct = list(dict.fromkeys(texts))
        rows = np.zeros((len(distinct), self.dimensions), np.float32)
        read = [prefix + text for text in distinct]
        if self._files.lower_case:
            read = [text.lower() for text in read]
        encodings = self._tokenizer.encode_batch_fast(read)
        # A text without tokens is read as the first word of the vocabulary, mostly "unknown".
        ids = [encoding.ids or [0] for encoding in encodings]
        groups = list[list[int]]()
        by_length: dict[int, list[int]] = defaultdict(list)
        for index, tokens in enumerate(ids):
            by_length[len(tokens)].append(index)
        for length, group in sorted(by_length.items()):
            size = max(1, min(self._batch, TOKENS_A_RUN // length))
            for start in range(0, len(group), size):
                groups.append(group[start : start + size])
        batches = [np.array([ids[index] for index in group], np.int64) for group in groups]
        for group, found in zip(groups, map_in_threads(self._run, batches), strict=True):
            rows[group] = found
        place = {text: index for index, text in enumerate(distinct)}
        return rows[[place[text] for text in texts]]

    def _run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        taken = {name: value for name, value in inputs.items() if name in self._inputs}
        (states,) = self._session.run([self._output], taken)
        pooled = states if states.ndim == 2 else self._pooled(states)
        norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        return np.asarray(pooled / np.maximum(norms, 1e-9), np.float32)

    def _pooled(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Pool the states of tokens, shape (N, tokens, D), to rows of shape (N, D)."""
        if self._files.pooling == "mean":
            return np.asarray(states.mean(axis=1))
        if self._files.pooling == "max":
            return np.asarray(states.max(axis=1))
        return states[:, 0 if self._files.pooling == "first" else -1]


def _output(names: Sequence[str]) -> str:
    """Return the output to read: pooled vectors, else states of tokens, else the first."""
    return next((one for one in (_SENTENCE, *_STATES) if one in names), names[0])


def _tokenizer(files: EncoderFiles) -> Tokenizer:
    try:
        made = Tokenizer.from_file(str(files.tokenizer))
    except Exception as error:  # The library raises nothing more exact.
        raise WeightsMissing(f"{files.tokenizer} cannot be read as a tokenizer: {error}") from error
    made.no_padding()
    made.enable_truncation(files.max_tokens)
    return made
