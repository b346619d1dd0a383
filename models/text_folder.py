"""Folders with the ONNX export of a sentence-transformers model, as its makers publish them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from domain.errors import SetupError, WeightsMissing
from models.hub import HubModel

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
    """Return the files that a folder lacks."""
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
