"""Detects the faces of one clip and groups them by person (section 3.1).

About a frame a second is looked at, and every keyframe. A face that stays in its place within a
shot is one track; tracks are merged by the likeness of their embeddings. Two faces on one frame
are two people, whatever they look like, and one lone face is a person. A picture of a face that
never moves is none (``perception.still_faces``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from domain.media import Box, Group, IdentityKind, Sighting
from domain.time import TimeSpan
from perception.clustering import cluster, group_by_label
from perception.still_faces import is_still_image

if TYPE_CHECKING:
    from domain.media import Clip
    from domain.settings import WatchSettings
    from models.ports import Face, FaceEngine, Image
    from perception.frames import Frame
    from perception.jpeg import Blobs

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
    samples = _sample_frames(frames, keyframes, settings.face_interval_ms)
    detected: list[DetectedFace] = []
    for sample, index in enumerate(samples):
        image = frames[index].image
        detected += [
            DetectedFace(sample, shots[index], frames[index].time_ms, face, *_crop(image, face.box))
            for face in engine.faces(image)
            if _is_recognisable(face, engine, settings)
        ]
    return detected


def _sample_frames(
    frames: Sequence[Frame], keyframes: Collection[int], interval_ms: int
) -> list[int]:
    """Return indices of frames to search: the first of each interval, and ``keyframes``."""
    first: dict[int, int] = {}
    for index, frame in enumerate(frames):
        first.setdefault(frame.time_ms // interval_ms, index)
    return sorted({*first.values(), *keyframes})


def _is_recognisable(face: Face, engine: FaceEngine, settings: WatchSettings) -> bool:
    # The paper's thresholds belong to its model; another model says its own, on its own scale.
    score = min(settings.face_score, engine.min_score)
    return face.score >= score and face.quality > min(settings.face_quality, engine.min_quality)


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
    tracks = _assign_tracks(detected)
    labels = cluster(vectors, same_person, same_frame, tracks)
    persons = [
        [detected[index] for index in person]
        for person in group_by_label(labels, range(len(detected)))
        if not is_still_image(
            [[detected[i] for i in one] for one in _split_by_track(person, tracks)], settings
        )
    ]
    in_order = sorted(persons, key=lambda person: (person[0].time_ms, person[0].face.box))
    return tuple(
        _group(number, person, clip, settings, blobs) for number, person in enumerate(in_order)
    )


def _split_by_track(person: Sequence[int], tracks: Sequence[int]) -> list[list[int]]:
    return group_by_label([tracks[index] for index in person], person)


def _assign_tracks(detected: Sequence[DetectedFace]) -> list[int]:
    """Return each face's track: faces that stay in place from one searched frame to the next."""
    tracks = list(range(len(detected)))
    by_sample: dict[int, list[int]] = {}
    for index, face in enumerate(detected):
        by_sample.setdefault(face.sample, []).append(index)
    for before, now in pairwise(sorted(by_sample)):
        if now == before + 1:
            for a, b in _match_boxes(by_sample[before], by_sample[now], detected):
                tracks[b] = tracks[a]
    return tracks


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


def _group(
    number: int, person: Sequence[DetectedFace], clip: Clip, settings: WatchSettings, blobs: Blobs
) -> Group:
    best = max(person, key=lambda s: (s.face.quality, s.face.score, -s.time_ms))
    blob = blobs.add(best.crop, settings.jpeg_quality)
    return Group(
        kind=IdentityKind.FACE,
        number=number,
        sightings=tuple(_sighting(s, clip, settings, blob if s is best else None) for s in person),
    )


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
