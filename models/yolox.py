"""Object detection by YOLOX (Ge et al. 2021): the 80 labels of COCO, on the CPU."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from models.faces import clip_box, is_large_enough, suppress_overlaps
from models.onnx import open_session
from models.ports import Image, Thing

SIDE = 416
STRIDES = (8, 16, 32)
OVERLAP = 0.45
GREY = 114
"""What fills the square beside and below the image, as in training."""

Rows = NDArray[np.float32]


class YoloxDetector:
    """Detection on one image at a time.

    Args:
        folder: holds ``yolox_nano.onnx``, whose input is 1 x 3 x 416 x 416.
    """

    name = "yolox-nano"
    min_score = 0.5
    """The model is small, and below this often wrong."""

    def __init__(self, folder: Path, device: str) -> None:
        self.labels = coco_labels()
        self._session = open_session(folder / "yolox_nano.onnx", arena=False, device=device)
        self._input = self._session.get_inputs()[0].name
        self._corners, self._strides = grid(SIDE, STRIDES)

    def objects(self, image: Image) -> list[Thing]:
        """Detect objects on an RGB image, best score first; boxes are clipped to the image."""
        if not is_large_enough(image):
            return []
        square, scale = letterbox(image, SIDE)
        (rows,) = self._session.run(None, {self._input: square})
        # A row (85,) is centre and log size in cells, objectness, and a score of each label.
        rows = np.asarray(rows)[0]
        sure = rows[:, 4:5] * rows[:, 5:]
        kind, scores = sure.argmax(axis=1), sure.max(axis=1)
        keep = np.flatnonzero(scores >= self.min_score)
        stride = self._strides[keep]
        centre = (rows[keep, :2] + self._corners[keep]) * stride
        half = np.exp(rows[keep, 2:4]) * stride / 2
        scores, kind, boxes = scores[keep], kind[keep], np.hstack([centre - half, centre + half])
        return [
            Thing(box, self.labels[kind[i]], min(1.0, float(scores[i])))
            for i in suppress_overlaps(boxes, scores, OVERLAP, kind)
            if (box := clip_box(boxes[i] / scale, image)) is not None
        ]


def letterbox(image: Image, side: int) -> tuple[Rows, float]:
    """Put an RGB image in the upper left of a grey square: 1 x 3 x side x side, BGR, 0-255.

    Returns:
        The square, and by how much the image was scaled to fit in.
    """
    height, width = image.shape[:2]
    scale = min(side / height, side / width)
    size = (max(1, int(width * scale)), max(1, int(height * scale)))
    canvas = np.full((side, side, 3), GREY, np.uint8)
    canvas[: size[1], : size[0]] = cv2.resize(image, size, interpolation=cv2.INTER_LINEAR)
    square = canvas[:, :, ::-1].transpose(2, 0, 1)[None]
    return np.ascontiguousarray(square, np.float32), scale


def grid(side: int, strides: tuple[int, ...]) -> tuple[Rows, Rows]:
    """Return each cell's corner (N, 2) in cells and width (N, 1) in pixels, grid after grid."""
    corners, widths = [], []
    for stride in strides:
        rows, columns = np.divmod(np.arange((side // stride) ** 2), side // stride)
        corners.append(np.stack([columns, rows], axis=1))
        widths.append(np.full((len(rows), 1), stride))
    return (np.concatenate(corners).astype(np.float32), np.concatenate(widths).astype(np.float32))


@cache
def coco_labels() -> tuple[str, ...]:
    """Return the 80 labels of COCO by number."""
    text = resources.files(__package__ or "models").joinpath("coco.txt").read_text("utf-8")
    return tuple(text.split("\n")[:80])
