"""A cross-encoder that reads a question and a passage together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from models.onnx import map_in_threads, open_session
from models.text_embedding import load_tokenizer

MAX_TOKENS = 256


class CrossEncoderReranker:
    """Relevance of passages to a query. Pairs are run one by one, so that none affects another.

    Args:
        folder: holds ``model.onnx`` and ``tokenizer.json``.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._session = open_session(folder / "model.onnx", threads=1)
        self._tokenizer = load_tokenizer(folder / "tokenizer.json", MAX_TOKENS)

    def scores(self, query: str, passages: list[str]) -> NDArray[np.float32]:
        """Score passages in (0, 1), shape (N,): the sigmoid of the model's logit."""
        found = map_in_threads(lambda passage: self._logit(query, passage), passages)
        logits = np.array(found, np.float32)
        return np.asarray(1 / (1 + np.exp(-logits)), np.float32)

    def _logit(self, query: str, passage: str) -> float:
        pair = self._tokenizer.encode(query, passage)
        inputs = {
            "input_ids": np.array([pair.ids], np.int64),
            "attention_mask": np.array([pair.attention_mask], np.int64),
            "token_type_ids": np.array([pair.type_ids], np.int64),
        }
        (logits,) = self._session.run(None, inputs)
        return float(logits[0, 0])
