"""A tiny image-text model in ONNX, made on the spot: an image is its mean colour.

It is what users put into a folder, file by file, but for size and sense.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from models.ports import Image, Vector

SIDE = 32
COLOURS = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}


def towers(folder: Path, *, family: str = "clip", inside: str = "") -> Path:
    """Fills ``folder``; the towers go into the folder ``inside`` it."""
    (folder / inside).mkdir(parents=True, exist_ok=True)
    outputs = ("image_embeds", "text_embeds") if family == "clip" else ("pooler_output",) * 2
    for name, graph in zip(
        ("vision_model.onnx", "text_model.onnx"),
        (_vision(outputs[0]), _text(outputs[1])),
        strict=True,
    ):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.save(model, str(folder / inside / name))
    words = {"<unk>": 0, "</s>": 1} | {name: 2 + n for n, name in enumerate(COLOURS)}
    made = Tokenizer(WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = Whitespace()
    made.save(str(folder / "tokenizer.json"))
    prepared: dict[str, Any] = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    prepared |= (
        {"do_center_crop": True, "crop_size": {"height": SIDE, "width": SIDE}}
        if family == "clip"
        else {"size": {"height": SIDE, "width": SIDE}}
    )
    (folder / "preprocessor_config.json").write_text(json.dumps(prepared))
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    return folder


def _vision(output: str) -> Any:
    pixels = helper.make_tensor_value_info(
        "pixel_values", TensorProto.FLOAT, ["batch", 3, SIDE, SIDE]
    )
    rows = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", 3])
    nodes = [
        helper.make_node("GlobalAveragePool", ["pixel_values"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], [output]),
    ]
    return helper.make_graph(nodes, "vision", [pixels], [rows])


def _text(output: str) -> Any:
    """The mean of the words' colours; marks and unknown words have none."""
    table = np.zeros((2 + len(COLOURS), 3), np.float32)
    for number, colour in enumerate(COLOURS.values()):
        table[2 + number] = 2 * np.array(colour) - 1
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])
    rows = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", 3])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("ReduceMean", ["words"], [output], axes=[1], keepdims=0),
    ]
    return helper.make_graph(
        nodes, "text", [ids], [rows], [numpy_helper.from_array(table, "table")]
    )


class Doubled:
    """An image encoder of twice the size, to which every picture is somewhat like every text."""

    name, close, dimensions = "doubled", 0.9, 6

    def images(self, images: list[Image]) -> NDArray[np.float32]:
        return np.stack(
            [self._row(image.reshape(-1, 3).mean(axis=0) / 127.5 - 1) for image in images]
        )

    def text(self, text: str) -> Vector:
        colour = next((COLOURS[word] for word in text.split() if word in COLOURS), (0, 0, 0))
        return self._row(2 * np.array(colour) - 1)

    def _row(self, colour: NDArray[Any]) -> Vector:
        row = np.concatenate([colour / max(float(np.linalg.norm(colour)), 1e-9), np.full(3, 2.0)])
        return np.asarray(row / np.linalg.norm(row), np.float32)


def painted_jpeg(colour: str) -> bytes:
    """Return a JPEG of 64 x 36 pixels in one colour."""
    image = np.full((36, 64, 3), np.array(COLOURS[colour])[::-1] * 255, np.uint8)
    return bytes(cv2.imencode(".jpg", image)[1])
