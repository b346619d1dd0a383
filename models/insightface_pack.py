"""Faces by InsightFace: the SCRFD detector and ArcFace embeddings (a MobileFaceNet)."""

from __future__ import annotations

import contextlib
import re
import sys
import zipfile
from pathlib import Path

import numpy as np

from domain.errors import SetupError, WeightsMissing
from models.devices import CPU, CPU_PROVIDER, execution_providers
from models.faces import align, is_large_enough, make_face
from models.onnx import open_session
from models.ports import Face, Image
from models.specs import FACES

INPUT_SIZE = (640, 640)
PACKS = "insightface_packs"
_PACK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class InsightFaceEngine:
    """Detection and embeddings of 512 dimensions by InsightFace's own model classes.

    Args:
        folder: holds ``scrfd_500m_bnkps.onnx`` and ``w600k_mbf.onnx``.
    """

    name = "insightface-mbf"
    same_person = FACES["insightface"]
    min_score, min_quality = 0.5, 14.0

    def __init__(self, folder: Path, device: str = CPU) -> None:
        # InsightFace is slow to import; only these parts of it are needed here.
        from insightface.model_zoo.arcface_onnx import ArcFaceONNX
        from insightface.model_zoo.scrfd import SCRFD

        detector, encoder = folder / "scrfd_500m_bnkps.onnx", folder / "w600k_mbf.onnx"
        self._detector = SCRFD(
            str(detector),
            session=open_session(detector, arena=False, device=device),
            static_shape_sessions=False,
        )
        self._encoder = ArcFaceONNX(
            str(encoder), session=open_session(encoder, arena=False, device=device)
        )

    def faces(self, image: Image) -> list[Face]:
        """Detect faces of an RGB image, best score first; boxes are clipped to the image."""
        if not is_large_enough(image):
            return []
        bgr = np.ascontiguousarray(image[:, :, ::-1])
        boxes, points = self._detector.detect(bgr, input_size=INPUT_SIZE, det_thresh=self.min_score)
        found = [
            make_face(image, box[:4], box[4], self._encoder.get_feat(align(bgr, five))[0])
            for box, five in zip(boxes, points, strict=True)
        ]
        return [face for face in found if face is not None]


class NamedPackEngine:
    """Detection and embeddings by any pack of InsightFace (``buffalo_l``, ``antelopev2``, ...).

    The paper's thresholds are of such packs. Their weights are InsightFace's: for non-commercial
    research only.

    Args:
        pack: a pack's name, or a folder that has its ``*.onnx`` files.
        weights: the weights folder; packs lie in ``insightface_packs/models/NAME`` below it, and
            are fetched to there by InsightFace itself, where there is a network.

    Raises:
        WeightsMissing: the pack is neither there nor can be fetched; names the folder.
        SetupError: what is there is no pack with a detector and a recogniser.
    """

    same_person = FACES["insightface"]
    min_score, min_quality = 0.85, 22.0

    def __init__(self, pack: str, weights: Path, device: str = CPU) -> None:
        self.name = f"insightface-{Path(pack).name}"
        # A pack's folder: the one named, the one below the weights, or a fetched one.
        named, root = Path(pack).expanduser(), weights / PACKS
        folder = named if named.is_absolute() or "/" in pack else root / "models" / pack
        if not list(folder.glob("*.onnx")) and folder != named:
            _fetch(pack, root, folder)
        if not list(folder.glob("*.onnx")):
            raise WeightsMissing(
                f"the InsightFace pack {pack!r} is not there: put its *.onnx files into {folder}"
            )
        # Its app imports all of InsightFace; only named packs need it.
        from insightface.app import FaceAnalysis

        wanted, providers = ["detection", "recognition"], execution_providers(device)
        for file in sorted(folder.glob("*.onnx")):
            open_session(file)
        try:
            app = FaceAnalysis(name=str(folder), allowed_modules=wanted, providers=providers)
            ready = set(wanted) <= set(app.models)
        except (AssertionError, OSError, RuntimeError, ValueError) as error:
            raise SetupError(f"{folder} is no pack that InsightFace can load: {error}") from error
        if not ready:
            raise SetupError(f"{folder} has no detector, or no recogniser, of InsightFace")
        # A negative number means the CPU; which device it is else, the providers say.
        app.prepare(
            ctx_id=-1 if providers == [CPU_PROVIDER] else 0,
            det_thresh=self.min_score,
            det_size=INPUT_SIZE,
        )
        self._app = app

    def faces(self, image: Image) -> list[Face]:
        """Detect faces of an RGB image, best score first; boxes are clipped to the image."""
        if not is_large_enough(image):
            return []
        found = self._app.get(np.ascontiguousarray(image[:, :, ::-1]))
        ranked = sorted(found, key=lambda face: -float(face.det_score))
        made = [make_face(image, f.bbox, float(f.det_score), f.embedding) for f in ranked]
        return [face for face in made if face is not None]


def _fetch(pack: str, root: Path, folder: Path) -> None:
    """Have InsightFace fetch a pack into ``folder``; leave nothing behind if it cannot."""
    # Only packs that are not here yet need it.
    from insightface.utils.storage import download

    if not _PACK_NAME.fullmatch(pack):
        raise WeightsMissing(f"{pack!r} is no name of an InsightFace pack: name it, or its folder")
    try:
        # It prints the source on standard output, which is a command's result.
        with contextlib.redirect_stdout(sys.stderr):
            download("models", pack, force=True, root=str(root))
    except (OSError, RuntimeError, zipfile.BadZipFile) as error:
        raise WeightsMissing(
            f"the InsightFace pack {pack!r} is not in {folder} and cannot be fetched ({error}): "
            "put its *.onnx files there, or fetch it where there is a network"
        ) from error
    inner = folder / pack
    for file in sorted(inner.glob("*.onnx")):  # Some packs have a folder of their own inside.
        file.replace(folder / file.name)
