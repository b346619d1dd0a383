"""Sentence embeddings and the reranker on ONNX Runtime: the same bits whatever a text is beside.

Padding a batch changes the low bits of a transformer's output, and a model that quantises its
activations over the whole batch changes more than those. So nothing is ever padded: texts of
equal token length share a run where the model keeps its rows apart (``batch > 1``), and otherwise
each text is run alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from domain.errors import SetupError, WeightsMissing
from models.hub import HubModel
from models.onnx import map_in_threads, open_session
from models.ports import TextEmbedder, embed_queries

if TYPE_CHECKING:
    from llama_index.core.embeddings import BaseEmbedding


TOKENS_A_RUN = 512
_SENTENCE = "sentence_embedding"
"""The output of some exports that has pooled already."""
_STATES = ("last_hidden_state", "token_embeddings")


class OnnxTextEmbedder:
    """A sentence encoder exported to ONNX, with its tokenizer beside it. Thread-safe.

    Args:
        files: its files, and how it reads texts.
        batch: most texts of equal token length in one run; 1 where rows would touch each other.
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
        self._tokenizer = load_tokenizer(files.tokenizer, files.max_tokens)

    @cached_property
    def dimensions(self) -> int:
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


def load_tokenizer(path: Path, most_tokens: int) -> Tokenizer:
    """Return a tokenizer that pads nothing and cuts texts off.

    Raises:
        WeightsMissing: the file cannot be read.
    """
    try:
        made = Tokenizer.from_file(str(path))
    except Exception as error:  # The library raises nothing more exact.
        raise WeightsMissing(f"{path} cannot be read as a tokenizer: {error}") from error
    made.no_padding()
    made.enable_truncation(most_tokens)
    return made


# Folders with the ONNX export of a sentence-transformers model, as its makers publish them.


Pooling = Literal["mean", "first", "last", "max"]

MODELS = ("model.onnx", "onnx/model.onnx")
"""Where a model may lie, in a folder and on the hub; the first of them is taken where both are."""
TOKENIZER = "tokenizer.json"
CONFIGS = (
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
    "modules.json",
)
"""Files that state how a model is to be used, where it has them."""
MAX_TOKENS = 256
LONGEST = 8192
"""No text of a memory is longer; some tokenizers state 10**30."""

_POOLINGS: dict[str, Pooling] = {
    "mean": "mean",
    "mean_tokens": "mean",
    # It differs from the mean by a factor, which normalisation removes.
    "mean_sqrt_len_tokens": "mean",
    "cls": "first",
    "cls_token": "first",
    "max": "max",
    "max_tokens": "max",
    "lasttoken": "last",
}
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class EncoderFiles:
    """The files of a text encoder, and how texts are read by it.

    ``query_prefix`` and ``passage_prefix`` precede what is searched for and what is stored.
    """

    model: Path
    tokenizer: Path
    pooling: Pooling = "mean"
    max_tokens: int = MAX_TOKENS
    query_prefix: str = ""
    passage_prefix: str = ""
    lower_case: bool = False

    def with_prefixes(self, query: str | None, passage: str | None) -> EncoderFiles:
        """Return these files with the prefixes that a profile states; None: as the model does."""
        return replace(
            self,
            query_prefix=self.query_prefix if query is None else query,
            passage_prefix=self.passage_prefix if passage is None else passage,
        )


def hub_text_model(name: str) -> HubModel:
    """Return a text encoder of the hub, by its name there."""
    return HubModel(name, "text", (MODELS, (TOKENIZER,)), CONFIGS)


def missing_text_files(folder: Path) -> list[str]:
    lacking = [] if any((folder / name).is_file() for name in MODELS) else [MODELS[0]]
    return lacking if (folder / TOKENIZER).is_file() else [*lacking, TOKENIZER]


def read_encoder_folder(folder: Path) -> EncoderFiles:
    """Read which files a folder has, and how its model is to be used.

    Raises:
        WeightsMissing: A file is missing or cannot be read; names it and where to put it.
        SetupError: The model pools its tokens, or goes on after that, in a way not known here.
    """
    if lacking := missing_text_files(folder):
        raise WeightsMissing(
            f"{folder} lacks {', '.join(lacking)}: put there the ONNX export of a "
            f"sentence-transformers model ({' or '.join(MODELS)}, {TOKENIZER}, and its "
            "1_Pooling/config.json), or set `text` in the profile to a model of 'homer models'"
        )
    # Refuse a model with layers after pooling: its ONNX file does not have them.
    path = folder / "modules.json"
    found = _read(path) if path.is_file() else []
    for module in found if isinstance(found, list) else []:
        kind = str(_table(module).get("type", "")).rpartition(".")[2]
        if kind not in _KNOWN_MODULES:
            raise SetupError(f"the text model in {folder} has a layer {kind!r} that is not known")
    prompts = _table(_json(folder / "config_sentence_transformers.json").get("prompts"))
    sentence = _json(folder / "sentence_bert_config.json")
    stated = [
        sentence.get("max_seq_length"),
        _json(folder / "tokenizer_config.json").get("model_max_length"),
    ]
    lengths = [int(one) for one in stated if isinstance(one, int | float) and one > 0]
    config = _json(folder / "1_Pooling" / "config.json")
    marked = [name.removeprefix("pooling_mode_") for name, on in config.items() if on is True]
    ways = [way for way in marked if f"pooling_mode_{way}" in config]
    named = config.get("pooling_mode")
    ways = ways or ([str(named)] if named else ["mean"])
    if len(ways) > 1 or ways[0] not in _POOLINGS:
        raise SetupError(
            f"the text model in {folder} pools by {' and '.join(ways)}; known are "
            f"{', '.join(_POOLINGS)}"
        )
    return EncoderFiles(
        next(folder / name for name in MODELS if (folder / name).is_file()),
        folder / TOKENIZER,
        _POOLINGS[ways[0]],
        min([*lengths, LONGEST]) if lengths else MAX_TOKENS,
        str(prompts.get("query") or ""),
        str(prompts.get("passage") or prompts.get("document") or ""),
        bool(sentence.get("do_lower_case")),
    )


def _json(path: Path) -> dict[str, Any]:
    """Return the table of a file; empty where there is no such file."""
    return _table(_read(path)) if path.is_file() else {}


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsMissing(
            f"{path} cannot be read: {error}; put that file there again"
        ) from error


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


def as_llama_index(embedder: TextEmbedder) -> BaseEmbedding:
    """Wrap ``embedder`` as a llama-index embedding; queries as the model wants them."""
    # llama-index takes seconds to import.
    from llama_index.core.embeddings import BaseEmbedding

    class _Embedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return _floats(embedder.embed([text])[0])

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return [_floats(row) for row in embedder.embed(texts)]

        def _get_query_embedding(self, query: str) -> list[float]:
            return _floats(embed_queries(embedder, [query])[0])

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return _Embedding(model_name=embedder.name)


def _floats(row: Any) -> list[float]:
    return [float(value) for value in row]
