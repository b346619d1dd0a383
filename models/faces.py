"""What both face engines share: clipping boxes, and five-point alignment."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from models.ports import Face, Image

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
    """Check whether an image is large enough for a detector."""
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
