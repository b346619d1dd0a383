"""Text on images by PP-OCR, whose models come with the rapidocr package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import flag_override
from rapidocr import RapidOCR

from domain.errors import SetupError
from models.devices import CPU
from models.faces import clip_box
from models.onnx import open_session
from models.ports import Image, TextLine

MODELS = {"Det": "PP-OCRv6_det_small.onnx", "Rec": "PP-OCRv6_rec_small.onnx"}
"""Its model of text that stands on its head is not used."""

_SETTINGS = {"Global.log_level": "critical", "Global.use_cls": False}


class RapidOcrReader:
    """Lines of printed text, upright. Makes no download: it is given the bundled files by path."""

    name = "pp-ocr"

    def __init__(self, device: str = CPU) -> None:
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
