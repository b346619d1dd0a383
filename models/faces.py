"""Faces by YuNet and SFace, which are free for any use, or by InsightFace: SCRFD and ArcFace.

Both share the clipping of boxes and the alignment by five points.
"""

from __future__ import annotations

import contextlib
import re
import sys
import zipfile
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from domain.errors import SetupError, WeightsMissing
from models.devices import CPU, CPU_PROVIDER, execution_providers
from models.onnx import open_session
from models.ports import Face, Image
from models.specs import FACES

SMALLEST_SIDE = 16
CROP = 112
FIVE_POINTS = np.array(
    [
        [38.2946, 51.6963],
        [73.5318, 51.5014],
        [56.0252, 71.7366],
        [41.5493, 92.3655],
        [70.7299, 92.2041],
    ]
)
"""Where the five points lie in an aligned crop (the ArcFace template)."""


def make_face(
    image: Image, corners: NDArray[np.float32], score: float, raw: NDArray[np.float32]
) -> Face | None:
    """Make a face with its box clipped to ``image``; None if nothing is left of the box.

    Args:
        corners: x0, y0, x1, y1 in pixels, shape (4,).
        score: the detector's, in [0, 1].
        raw: the embedding before normalisation; its norm is the quality.
    """
    box = clip_box(corners, image)
    if box is None:
        return None
    quality = float(np.linalg.norm(raw))
    vector = np.asarray(raw / max(quality, 1e-9), np.float32)
    return Face(box, min(1.0, float(score)), quality, vector)


def is_large_enough(image: Image) -> bool:
    return bool(min(image.shape[:2]) >= SMALLEST_SIDE)


def align(bgr: Image, points: NDArray[np.float32]) -> Image:
    """Return the 112 x 112 crop in which eyes, nose and mouth lie where recognisers expect them.

    Args:
        points: left eye, right eye, nose, left and right mouth corner (as seen), shape (5, 2).
    """
    # The rotation, scale and shift that takes the points closest to where they belong, shape (2,
    # 3): least squares, Umeyama 1991, without reflection.
    source = points.astype(np.float64)
    mean_s, mean_t = source.mean(axis=0), FIVE_POINTS.mean(axis=0)
    centred_s, centred_t = source - mean_s, FIVE_POINTS - mean_t
    u, stretch, vt = np.linalg.svd(centred_t.T @ centred_s / len(source))
    signs = np.array([1.0, np.sign(np.linalg.det(u @ vt))])
    rotation = u @ np.diag(signs) @ vt
    scale = float(stretch @ signs) / max(centred_s.var(axis=0).sum(), 1e-9)
    turn = np.hstack([scale * rotation, (mean_t - scale * rotation @ mean_s)[:, None]])
    return np.asarray(cv2.warpAffine(bgr, turn, (CROP, CROP)), np.uint8)


def suppress_overlaps(
    boxes: NDArray[np.float32],
    scores: NDArray[np.float32],
    most: float,
    kinds: NDArray[np.int64] | None = None,
) -> list[int]:
    """Suppress boxes that overlap a better one; return the others' indices, best score first.

    Args:
        boxes: corners, shape (N, 4).
        most: the intersection over union above which the worse box goes.
        kinds: shape (N,); boxes of different kinds suppress none of the other.
    """
    if not len(boxes):
        return []
    corners_sizes = np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])
    of_kind = np.zeros(len(boxes), np.int32) if kinds is None else kinds.astype(np.int32)
    kept = cv2.dnn.NMSBoxesBatched(corners_sizes, scores, of_kind, 0.0, most)  # type: ignore[arg-type]
    return [int(index) for index in kept]


def clip_box(corners: NDArray[np.float32], image: Image) -> tuple[int, int, int, int] | None:
    """Return a box x0, y0, x1, y1 in whole pixels of an image; None if nothing of it is within."""
    height, width = image.shape[:2]
    x0, y0 = (max(0, int(np.floor(value))) for value in corners[:2])
    x1, y1 = min(width, int(np.ceil(corners[2]))), min(height, int(np.ceil(corners[3])))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


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
