"""Images and texts in one space: a CLIP or SigLIP model of the user's own, or of the hub.

No such model can be had from a package registry, so none comes with Homer. Their usual export to
ONNX is read: a vision and a text tower, a tokenizer, and how images are prepared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from domain.errors import WeightsMissing
from models.devices import CPU
from models.hub import CONFIG, FILES, files_there, missing_files, name_of
from models.onnx import open_session
from models.ports import Image, Vector
from models.text_embedding import load_tokenizer

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
MOST_TOKENS = 77
CLOSE = {"clip": 0.22, "siglip": 0.05}
"""Cosines from which an image shows what a text says, as their makers' examples suggest."""

_POOLED = ("image_embeds", "text_embeds", "pooler_output")


class ImageTextEncoder:
    """Two towers that map images and texts to one space. Thread-safe; one input a run.

    Args:
        folder: holds ``models.hub.FILES``, and may hold ``config.json``.

    Raises:
        WeightsMissing: A file is missing or is not what it should be; the message says which, and
            where to put it.
    """

    def __init__(self, folder: Path, device: str = CPU) -> None:
        if lacking := missing_files(folder):
            raise WeightsMissing(
                f"{folder} lacks {', '.join(lacking)}: put there the ONNX export of a CLIP or "
                "SigLIP model (vision_model.onnx and text_model.onnx, perhaps in onnx/, "
                "tokenizer.json, preprocessor_config.json), or leave `images` out of the profile"
            )
        there = files_there(folder)
        vision, text, tokenizer, config_file = (there[name] for name in FILES)
        self.name = name_of(folder.name)
        with _with_advice(folder):
            known = _json(there[CONFIG]) if CONFIG in there else {}
            self._family = _family(known)
            self._preprocessing = read_preprocessing(_json(config_file))
            self._vision = open_session(vision, device=device)
            self._text = open_session(text, device=device)
            self._tokenizer = load_tokenizer(tokenizer, MOST_TOKENS)
        self.close = CLOSE[self._family]
        self._padded = self._family == "siglip"

    def images(self, images: list[Image]) -> NDArray[np.float32]:
        """Embed images: one L2-normalised row an image, shape (N, D)."""
        rows = [
            _pooled(
                self._vision,
                {self._vision.get_inputs()[0].name: preprocess(image, self._preprocessing)},
            )
            for image in images
        ]
        return np.stack(rows) if rows else np.zeros((0, 0), np.float32)

    def text(self, text: str) -> Vector:
        """Embed a text in the same space, shape (D,); what is beyond its length is cut."""
        ids = self._tokenizer.encode(text.lower() if self._padded else text).ids[:MOST_TOKENS]
        mask = [1] * len(ids)
        if self._padded:
            # SigLIP has learned texts of one length only, filled up with its end mark.
            ids = (ids[:64] + [1] * 64)[:64]
            mask = [1] * 64
        given = {"input_ids": np.array([ids], np.int64), "attention_mask": np.array([mask])}
        wanted = {one.name for one in self._text.get_inputs()}
        return _pooled(self._text, {name: row for name, row in given.items() if name in wanted})


@dataclass(frozen=True)
class Preprocessing:
    """How images are preprocessed: ``size`` (height, width), mean and deviation by channel.

    ``crop``: the shorter side is fitted and the middle taken; else the image is stretched.
    """

    size: tuple[int, int]
    crop: bool
    mean: tuple[float, float, float]
    deviation: tuple[float, float, float]


def read_preprocessing(config: dict[str, Any]) -> Preprocessing:
    """Read how a ``preprocessor_config.json`` has images preprocessed.

    Raises:
        WeightsMissing: it states none that is known.
    """
    try:
        cropped = bool(config.get("do_center_crop"))
        size = config["crop_size"] if cropped else config["size"]
        mean, deviation = config["image_mean"], config["image_std"]
        if isinstance(size, dict):
            one = size.get("shortest_edge")
            sides = (int(one), int(one)) if one else (int(size["height"]), int(size["width"]))
        else:
            sides = int(size), int(size)
        return Preprocessing(
            sides,
            cropped,
            (float(mean[0]), float(mean[1]), float(mean[2])),
            (float(deviation[0]), float(deviation[1]), float(deviation[2])),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise WeightsMissing(
            f"preprocessor_config.json does not say how images are prepared: {error!r}"
        ) from error


def preprocess(image: Image, how: Preprocessing) -> NDArray[np.float32]:
    """Turn an H x W x 3 image into a standardised 1 x 3 x height x width input.

    Images are made smaller by area, which differs from the bicubic of most trainings by little.
    """
    height, width = how.size
    if how.crop:
        # The centre of the image whose shorter side was fitted.
        scale = max(height / image.shape[0], width / image.shape[1])
        tall, wide = (max(1, round(side * scale)) for side in image.shape[:2])
        whole = _resized(image, max(tall, height), max(wide, width))
        top, left = (whole.shape[0] - height) // 2, (whole.shape[1] - width) // 2
        fitted = whole[top : top + height, left : left + width]
    else:
        fitted = _resized(image, height, width)
    values = fitted.astype(np.float32) / 255
    standard = (values - np.array(how.mean, np.float32)) / np.array(how.deviation, np.float32)
    return np.ascontiguousarray(standard.transpose(2, 0, 1)[None], np.float32)


def _resized(image: Image, height: int, width: int) -> Image:
    smaller = height < image.shape[0] or width < image.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(image, (width, height), interpolation=way), np.uint8)


def _pooled(session: InferenceSession, given: dict[str, Any]) -> Vector:
    outputs = [one.name for one in session.get_outputs()]
    name = next((one for one in _POOLED if one in outputs), outputs[0])
    (rows,) = session.run([name], given)
    row = np.asarray(rows, np.float32).reshape(-1)
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-9), np.float32)


@contextmanager
def _with_advice(folder: Path) -> Iterator[None]:
    """Add to an error what to do about it."""
    try:
        yield
    except WeightsMissing as error:
        raise WeightsMissing(
            f"{error}: put that file of the model's ONNX export into {folder} again, or leave "
            "`images` out of the profile"
        ) from error


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise WeightsMissing(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise WeightsMissing(f"{path} is not a JSON object")
    return found


def _family(config: dict[str, Any]) -> str:
    return "siglip" if str(config.get("model_type", "")).startswith("siglip") else "clip"
