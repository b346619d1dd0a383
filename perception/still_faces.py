"""Detects faces of still images: statues, paintings, photos and posters that a camera rests on.

A heuristic. Whoever lives and is seen from near enough to be recognised moves within seconds: eyes,
mouth, head, light on the skin. So where every look at a face finds the same pixels in the same
place, but for what compression changes, it is taken for a picture, which neither acts nor speaks.

It is meant to miss rather than to lose a person. Nothing is said of a face that was looked at too
seldom, that moved once, that was seen in a shot for one look alone, or whose pixels show nothing.
Where the camera moves, and so the picture on the screen, it stays a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from perception.faces import DetectedFace

_CELLS = 16
"""Cells a face is compared in, each way: enough for an eye, too few for noise."""
_CHANGE_PERCENTILE = 95
"""Percentile of the cells' changes that counts: one twentieth may be flicker of the background."""
_MIN_SIDE = 8
_MIN_DETAIL = 5.0
"""Standard deviation of grey from which a crop shows anything that could move."""


def is_still_image(tracks: Sequence[Sequence[DetectedFace]], settings: WatchSettings) -> bool:
    """Tell whether all detections of one face show a still image.

    Args:
        tracks: the looks at it, each track in order in one place of one shot.
        settings: how many looks it takes, and how little may change between them.
    """
    if sum(map(len, tracks)) < settings.still_looks or min(map(len, tracks)) < 2:
        return False
    pairs = (pair for track in tracks for pair in pairwise(track))
    return all(_change(a, b) <= settings.still_change for a, b in pairs)


def _change(a: DetectedFace, b: DetectedFace) -> float:
    """Return how much the face changed between two detections, in levels of grey (0-255)."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = a.face.box, b.face.box
    box = max(ax0, bx0), max(ay0, by0), min(ax1, bx1), min(ay1, by1)
    if min(box[2] - box[0], box[3] - box[1]) < _MIN_SIDE:
        return float("inf")
    one, other = _cells(a, box), _cells(b, box)
    if min(one.std(), other.std()) < _MIN_DETAIL:
        return float("inf")
    return float(np.percentile(np.abs(one - other), _CHANGE_PERCENTILE))


def _cells(face: DetectedFace, box: tuple[int, int, int, int]) -> NDArray[np.float32]:
    """Return the mean grey of the cells of a box that lies within the crop; 16 x 16."""
    (x0, y0), (left, top) = box[:2], face.corner
    face_pixels = face.crop[y0 - top : box[3] - top, x0 - left : box[2] - left]
    grey = cv2.cvtColor(face_pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(grey, (_CELLS, _CELLS), interpolation=cv2.INTER_AREA), np.float32)
