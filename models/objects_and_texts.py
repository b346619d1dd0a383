"""What is on images, on the CPU: objects by YOLOX (COCO's 80 labels), text by PP-OCR."""

from __future__ import annotations

from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from domain.errors import SetupError
from models.devices import CPU
from models.faces import clip_box, is_large_enough, suppress_overlaps
from models.onnx import open_session
from models.ports import Image, TextLine, Thing

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


MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
"""Its model of text that stands on its head is not used."""

_SETTINGS = {"Global.log_level": "critical", "Global.use_cls": False}


class RapidOcrReader:
    """Lines of printed text, upright. Makes no download: it is given the bundled files by path."""

    name = "pp-ocr"

    def __init__(self, device: str = CPU) -> None:
        # Slow to import, and the app only asks for the labels of objects.
        from omegaconf import flag_override
        from rapidocr import RapidOCR

        # What it returns depends on its arguments, which its types cannot say.
        self._engine: Any = RapidOCR(params=_SETTINGS)
        # Sessions of its own would have threads that spin, which slows all other steps down.
        with flag_override(self._engine.cfg, "allow_objects", True):
            # The model files of the rapidocr package, by their role.
            spec = find_spec("rapidocr")
            if spec is None or spec.origin is None:
                raise SetupError(
                    "reading screen text needs the package rapidocr: pip install rapidocr"
                )
            folder = Path(spec.origin).parent / "models"
            missing = [file for file in MODELS.values() if not (folder / file).is_file()]
            if missing:
                raise SetupError(
                    f"the rapidocr package lacks {missing[0]}: pip install rapidocr==3.10.0"
                )
            bundled = {part: folder / file for part, file in MODELS.items()}
            for part, file in bundled.items():
                self._engine.cfg[part].session = open_session(file, arena=False, device=device)

    def read(self, image: Image) -> list[TextLine]:
        """Read lines of an RGB image, in reading order; boxes are clipped to the image."""
        result = self._engine(np.ascontiguousarray(image[:, :, ::-1]))
        if result.boxes is None or result.txts is None:
            return []
        lines = []
        for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True):
            corners = np.asarray(corners)
            box = clip_box(np.hstack([corners.min(axis=0), corners.max(axis=0)]), image)
            if text.strip() and box is not None:
                lines.append(TextLine(box, text.strip(), min(1.0, float(score))))
        return lines
