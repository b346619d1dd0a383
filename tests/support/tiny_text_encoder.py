"""A tiny multilingual sentence encoder in ONNX: words of one meaning have one vector.

It is what users put into a folder, file by file, but for size and sense.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

MEANINGS = (
    ("dog", "Hund"),
    ("gate", "Tor"),
    ("rain", "Regen"),
    ("query",),
    ("passage",),
    ("load", "Last", "Gewicht"),
)
SIZE = 1 + len(MEANINGS)


def encoder(
    folder: Path,
    *,
    pooling: str = "mean_tokens",
    prompts: dict[str, str] | None = None,
    inside: str = "",
    pooled: bool = False,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    max_tokens: int = 8,
) -> Path:
    """Fill ``folder``; ``pooled``: the model has pooled itself; ``inside``: where its file goes."""
    (folder / inside).mkdir(parents=True, exist_ok=True)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    model = helper.make_model(
        _graph(inputs, pooled), opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    )
    onnx.save(model, str(folder / inside / "model.onnx"))
    words = {"<unk>": 0} | {
        word: 1 + n for n, word in enumerate(word for one in MEANINGS for word in one)
    }
    tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    modes = {f"pooling_mode_{one}": one == pooling for one in ("cls_token", "max_tokens")}
    write(folder / "1_Pooling" / "config.json", modes | {f"pooling_mode_{pooling}": True})
    write(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens})
    write(folder / "config_sentence_transformers.json", {"prompts": prompts or {}})
    return folder


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def _graph(inputs: tuple[str, ...], pooled: bool) -> Any:
    rows = [np.eye(SIZE)[0]]
    rows += [np.eye(SIZE)[1 + n] for n, words in enumerate(MEANINGS) for _ in words]
    table = numpy_helper.from_array(np.array(rows, np.float32), "table")
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in inputs
    ]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    outputs = [
        helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, ["batch", "length", SIZE]
        )
    ]
    if pooled:
        nodes.append(
            helper.make_node(
                "ReduceMean", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0
            )
        )
        outputs.append(
            helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", SIZE])
        )
    return helper.make_graph(nodes, "encoder", given, outputs, [table])
