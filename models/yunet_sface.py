"""Faces by YuNet (detector) and SFace (embeddings): free for any use."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from models.faces import align, is_large_enough, make_face, suppress_overlaps
from models.onnx import open_session
from models.ports import Face, Image
from models.specs import FACES

SIDE = 640
STRIDES = (8, 16, 32)
OVERLAP = 0.3

Rows = NDArray[np.float32]


class YunetSfaceEngine:
    """Detection and embeddings of 128 dimensions, both on ONNX Runtime.

    Args:
        folder: holds ``yunet.onnx`` and ``sface.onnx``.
    """

    name = "yunet-sface"
    same_person = FACES["yunet_sface"]
    min_score, min_quality = 0.7, 0.0

    def __init__(self, folder: Path, device: str) -> None:
        self._detector = open_session(
            folder / "yunet.onnx", repair=True, arena=False, device=device
        )
        self._encoder = open_session(folder / "sface.onnx", repair=True, arena=False, device=device)
        self._outputs = [output.name for output in self._detector.get_outputs()]

    def faces(self, image: Image) -> list[Face]:
        """Detect faces of an RGB image, best score first; boxes are clipped to the image."""
        if not is_large_enough(image):
            return []
        bgr = np.ascontiguousarray(image[:, :, ::-1])
        height, width = bgr.shape[:2]
        scale = SIDE / max(height, width)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        canvas = np.zeros((SIDE, SIDE, 3), np.float32)
        canvas[: size[1], : size[0]] = cv2.resize(bgr, size)
        values = self._detector.run(None, {"input": canvas.transpose(2, 0, 1)[None]})
        named = dict(zip(self._outputs, values, strict=True))
        levels = [self._level(named, stride) for stride in STRIDES]
        scores, boxes, points = (np.concatenate(parts) for parts in zip(*levels, strict=True))
        boxes, points = boxes / scale, points / scale
        found = [
            make_face(image, boxes[index], scores[index], self._embed(bgr, points[index]))
            for index in suppress_overlaps(boxes, scores, OVERLAP)
        ]
        return [face for face in found if face is not None]

    def _level(self, named: dict[str, Rows], stride: int) -> tuple[Rows, Rows, Rows]:
        """Decode one grid, whose centre offsets and log sizes are in units of the stride."""
        cells = SIDE // stride
        rows, columns = np.divmod(np.arange(cells * cells), cells)
        grid = np.stack([columns, rows], axis=1).astype(np.float32)
        score = np.sqrt(named[f"cls_{stride}"][0, :, 0] * named[f"obj_{stride}"][0, :, 0])
        keep = np.flatnonzero(score >= self.min_score)
        box, cell = named[f"bbox_{stride}"][0, keep], grid[keep]
        centre, half = (cell + box[:, :2]) * stride, np.exp(box[:, 2:]) * stride / 2
        points = named[f"kps_{stride}"][0, keep].reshape(-1, 5, 2) + cell[:, None]
        return score[keep], np.hstack([centre - half, centre + half]), points * stride

    def _embed(self, bgr: Image, points: Rows) -> Rows:
        crop = align(bgr, points)[:, :, ::-1].astype(np.float32)
        (rows,) = self._encoder.run(["fc1"], {"data": crop.transpose(2, 0, 1)[None]})
        return np.asarray(rows[0], np.float32)
