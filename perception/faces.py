"""Detects the faces of one clip and groups them by person (section 3.1).

About a frame a second is looked at, and every keyframe. A face that stays in its place within a
shot is one track; tracks are merged by the likeness of their embeddings. Two faces on one frame
are two people, whatever they look like, and one lone face is a person. A picture of a face that
never moves is none (``perception.faces``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from domain.media import Box, Group, IdentityKind, Sighting
from domain.time import TimeSpan
from perception.clustering import cluster, group_by_label

if TYPE_CHECKING:
    from domain.media import Clip
    from domain.settings import WatchSettings
    from models.ports import Face, FaceEngine, Image
    from perception.frames import Frame
    from perception.jpeg import Blobs


# Detects faces of still images: statues, paintings, photos and posters that a camera rests on.
#
# A heuristic. Whoever lives and is seen from near enough to be recognised moves within seconds:
# eyes, mouth, head, light on the skin. So where every look at a face finds the same pixels in the
# same place, but for what compression changes, it is taken for a picture, which neither acts nor
# speaks.
#
# It is meant to miss rather than to lose a person. Nothing is said of a face that was looked at too
# seldom, that moved once, that was seen in a shot for one look alone, or whose pixels show nothing.
# Where the camera moves, and so the picture on the screen, it stays a person.

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


_MIN_TRACK_IOU = 0.5
"""Intersection over union from which a face is taken to have stayed where it was."""
_CROP_MARGIN = 0.3
"""How much of its size is added around a face on each side of its crop."""


@dataclass(frozen=True, eq=False)
class DetectedFace:
    """A face on a frame: index of the searched frame, shot, time and crop.

    ``corner`` is where on the frame the crop's upper left is.
    """

    sample: int
    shot: int
    time_ms: int
    face: Face
    crop: Image
    corner: tuple[int, int] = (0, 0)


def find_faces(
    frames: Sequence[Frame],
    shots: Sequence[int],
    keyframes: Collection[int],
    engine: FaceEngine,
    settings: WatchSettings,
) -> list[DetectedFace]:
    """Detect faces on about one frame a second and on the frames in ``keyframes`` (indices).

    Faces that the model itself would not recognise a person by are left out.
    """
    first: dict[int, int] = {}
    for index, frame in enumerate(frames):
        first.setdefault(frame.time_ms // settings.face_interval_ms, index)
    samples = sorted({*first.values(), *keyframes})
    detected: list[DetectedFace] = []
    for sample, index in enumerate(samples):
        image = frames[index].image
        detected += [
            DetectedFace(sample, shots[index], frames[index].time_ms, face, *_crop(image, face.box))
            for face in engine.faces(image)
            # The paper's thresholds belong to its model; another says its own, on its own scale.
            if face.score >= min(settings.face_score, engine.min_score)
            and face.quality > min(settings.face_quality, engine.min_quality)
        ]
    return detected


def _crop(image: Image, box: tuple[int, int, int, int]) -> tuple[Image, tuple[int, int]]:
    """Crop the face with a margin; return a copy and its upper left corner on the image."""
    x0, y0, x1, y1 = box
    dx, dy = round((x1 - x0) * _CROP_MARGIN), round((y1 - y0) * _CROP_MARGIN)
    left, top = max(0, x0 - dx), max(0, y0 - dy)
    return image[top : y1 + dy, left : x1 + dx].copy(), (left, top)


def group_faces(
    detected: Sequence[DetectedFace],
    same_person: float,
    clip: Clip,
    settings: WatchSettings,
    blobs: Blobs,
) -> tuple[Group, ...]:
    """Group faces by person, in order of first appearance; the best sighting has a crop."""
    if not detected:
        return ()
    vectors = np.stack([s.face.vector for s in detected])
    samples = np.array([s.sample for s in detected])
    same_frame = samples[:, None] == samples[None, :]
    np.fill_diagonal(same_frame, val=False)
    tracks = list(range(len(detected)))
    by_sample: dict[int, list[int]] = {}
    for index, face in enumerate(detected):
        by_sample.setdefault(face.sample, []).append(index)
    for before, now in pairwise(sorted(by_sample)):
        if now == before + 1:
            for a, b in _match_boxes(by_sample[before], by_sample[now], detected):
                tracks[b] = tracks[a]
    labels = cluster(vectors, same_person, same_frame, tracks)
    persons = [
        [detected[index] for index in person]
        for person in group_by_label(labels, range(len(detected)))
        if not is_still_image(
            [
                [detected[i] for i in one]
                for one in group_by_label([tracks[index] for index in person], person)
            ],
            settings,
        )
    ]
    in_order = sorted(persons, key=lambda person: (person[0].time_ms, person[0].face.box))
    groups = []
    for number, person in enumerate(in_order):
        best = max(person, key=lambda s: (s.face.quality, s.face.score, -s.time_ms))
        blob = blobs.add(best.crop, settings.jpeg_quality)
        seen = tuple(_sighting(s, clip, settings, blob if s is best else None) for s in person)
        groups.append(Group(kind=IdentityKind.FACE, number=number, sightings=seen))
    return tuple(groups)


def _match_boxes(
    before: Iterable[int], now: Iterable[int], detected: Sequence[DetectedFace]
) -> list[tuple[int, int]]:
    """Pair faces in the same place, best overlap first, each face in at most one pair."""
    now = list(now)
    overlaps = [
        (box_iou(detected[a].face.box, detected[b].face.box), a, b) for a in before for b in now
    ]
    pairs: dict[int, int] = {}
    for iou, a, b in sorted(overlaps, key=lambda found: (-found[0], found[1], found[2])):
        free = a not in pairs and b not in pairs.values()
        if iou >= _MIN_TRACK_IOU and detected[a].shot == detected[b].shot and free:
            pairs[a] = b
    return list(pairs.items())


def box_iou(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> float:
    """Return the intersection over union, in [0, 1], of two boxes (x0, y0, x1, y1)."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0, width) * max(0, height)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / union if union else 0.0


def _sighting(
    face: DetectedFace, clip: Clip, settings: WatchSettings, blob: str | None
) -> Sighting:
    end = min(face.time_ms + settings.face_interval_ms, clip.span.end_ms)
    x0, y0, x1, y1 = face.face.box
    return Sighting(
        span=TimeSpan.of(face.time_ms, max(end, face.time_ms)),
        box=Box(x0=x0, y0=y0, x1=x1, y1=y1),
        score=face.face.score,
        quality=face.face.quality,
        vector=tuple(float(value) for value in face.face.vector),
        blob=blob,
    )
