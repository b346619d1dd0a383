"""Sentence embeddings on ONNX Runtime, the same bits for a text whatever it is embedded with.

Padding a batch changes the low bits of a transformer's output, and a model that quantises its
activations over the whole batch changes more than those. So nothing is ever padded: texts of
equal token length share a run where the model keeps its rows apart (``batch > 1``), and otherwise
each text is run alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.onnx import map_in_threads, open_session

MAX_TOKENS = 256
TOKENS_A_RUN = 512

Pooling = Literal["mean", "first"]


class OnnxTextEmbedder:
    """A sentence encoder exported to ONNX, with its tokenizer beside it. Thread-safe.

    Args:
        name: how the model is called in the store.
        folder: holds ``model.onnx`` and ``tokenizer.json``.
        pooling: the mean over tokens, or the first token.
        batch: most texts of equal token length in one run; 1 where rows would touch each other.
        languages: those it was made for.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        pooling: Pooling,
        batch: int,
        languages: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.dimensions = 384
        self.languages = languages
        self._pooling = pooling
        self._batch = batch
        self._session = open_session(folder / "model.onnx", threads=1, arena=False)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts: one L2-normalised row a text, shape (N, 384); cut after 256 tokens.

        A row depends on its own text only, bit for bit. Equal texts are computed once.
        """
        distinct = list(dict.fromkeys(texts))
        rows = np.zeros((len(distinct), self.dimensions), np.float32)
        encodings = self._tokenizer.encode_batch_fast(distinct)
        ids = [encoding.ids for encoding in encodings]
        groups = list(_equal_lengths(ids, self._batch))
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
        (states,) = self._session.run(None, inputs)
        pooled = states.mean(axis=1) if self._pooling == "mean" else states[:, 0]
        norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        return np.asarray(pooled / norms, np.float32)


def _equal_lengths(ids: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
    """Yield indices of token lists of equal length, shortest first, in batches of one run."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, tokens in enumerate(ids):
        groups[len(tokens)].append(index)
    for length, group in sorted(groups.items()):
        size = max(1, min(most, TOKENS_A_RUN // length))
        for start in range(0, len(group), size):
            yield group[start : start + size]
