"""Faces by InsightFace: the SCRFD detector and ArcFace embeddings (a MobileFaceNet)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.faces import align, make_face, usable
from models.onnx import open_session
from models.ports import Face, Image

LOOK_AT = (640, 640)


class InsightFaceEngine:
    """Detection and embeddings of 512 dimensions by InsightFace's own model classes.

    Args:
        folder: holds ``scrfd_500m_bnkps.onnx`` and ``w600k_mbf.onnx``.
        min_score: detections below are not faces.
    """

    name = "insightface-mbf"
    # The paper's 0.85 and 22 belong to a larger pack. Of this one, every true face of a clip with
    # known identities scored 0.60 or more, with a quality of 14 or more.
    same_person = 0.3
    min_quality = 14.0

    def __init__(self, folder: Path, min_score: float = 0.5) -> None:
        from insightface.model_zoo.arcface_onnx import ArcFaceONNX
        from insightface.model_zoo.scrfd import SCRFD

        detector, encoder = folder / "scrfd_500m_bnkps.onnx", folder / "w600k_mbf.onnx"
        self.min_score = min_score
        self._detector = SCRFD(
            str(detector), session=open_session(detector), static_shape_sessions=False
        )
        self._encoder = ArcFaceONNX(str(encoder), session=open_session(encoder))

    def faces(self, image: Image) -> list[Face]:
        """Faces of an RGB image, best score first; boxes clipped to the image."""
        if not usable(image):
            return []
        bgr = np.ascontiguousarray(image[:, :, ::-1])
        boxes, points = self._detector.detect(bgr, input_size=LOOK_AT, det_thresh=self.min_score)
        found = [
            make_face(image, box[:4], box[4], self._encoder.get_feat(align(bgr, five))[0])
            for box, five in zip(boxes, points, strict=True)
        ]
        return [face for face in found if face is not None]
