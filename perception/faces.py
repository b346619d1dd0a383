"""Faces of one clip, grouped by person (section 3.1).

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
from perception.clustering import cluster
from perception.still_faces import is_picture

if TYPE_CHECKING:
    from domain.media import Clip
    from domain.settings import WatchSettings
    from models.ports import Face, FaceEngine, Image
    from perception.frames import Frame
    from perception.jpeg import Blobs

_SAME_PLACE = 0.5
"""Intersection over union from which a face is taken to have stayed where it was."""
_MARGIN = 0.3
"""How much of its size is added around a face on each side of its crop."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A face on a frame: which of the looked-at frames, in which shot, when, and its crop.

    ``corner`` is where on the frame the crop's upper left is.
    """

    look: int
    shot: int
    time_ms: int
    face: Face
    crop: Image
    corner: tuple[int, int] = (0, 0)


def find_faces(
    frames: Sequence[Frame],
    shots: Sequence[int],
    always: Collection[int],
    engine: FaceEngine,
    settings: WatchSettings,
) -> list[Seen]:
    """Look for faces on about a frame a second and on the frames named in ``always``.

    Faces that the model itself would not recognise a person by are left out.
    """
    looks = _looks(frames, always, settings.face_interval_ms)
    seen: list[Seen] = []
    for look, index in enumerate(looks):
        image = frames[index].image
        seen += [
            Seen(look, shots[index], frames[index].time_ms, face, *_crop(image, face.box))
            for face in engine.faces(image)
            if _recognisable(face, engine, settings)
        ]
    return seen


def _looks(frames: Sequence[Frame], always: Collection[int], interval_ms: int) -> list[int]:
    """Indices of the frames to look at: the first of each interval, and ``always``."""
    first: dict[int, int] = {}
    for index, frame in enumerate(frames):
        first.setdefault(frame.time_ms // interval_ms, index)
    return sorted({*first.values(), *always})


def _recognisable(face: Face, engine: FaceEngine, settings: WatchSettings) -> bool:
    # The paper's thresholds belong to its model; another model says its own, on its own scale.
    score = min(settings.face_score, engine.min_score)
    return face.score >= score and face.quality > min(settings.face_quality, engine.min_quality)


def _crop(image: Image, box: tuple[int, int, int, int]) -> tuple[Image, tuple[int, int]]:
    """The face with a margin, clipped to the image, and its corner; a copy: the frame can go."""
    x0, y0, x1, y1 = box
    dx, dy = round((x1 - x0) * _MARGIN), round((y1 - y0) * _MARGIN)
    left, top = max(0, x0 - dx), max(0, y0 - dy)
    return image[top : y1 + dy, left : x1 + dx].copy(), (left, top)


def group_faces(
    seen: Sequence[Seen], same_person: float, clip: Clip, settings: WatchSettings, blobs: Blobs
) -> tuple[Group, ...]:
    """One group a person, in order of first appearance; the best sighting of each has its crop."""
    if not seen:
        return ()
    vectors = np.stack([s.face.vector for s in seen])
    looks = np.array([s.look for s in seen])
    together = looks[:, None] == looks[None, :]
    np.fill_diagonal(together, val=False)
    tracks = _tracks(seen)
    labels = cluster(vectors, same_person, together, tracks)
    people = [
        [seen[index] for index in person]
        for person in _gathered(labels, range(len(seen)))
        if not is_picture([[seen[i] for i in one] for one in _by_track(person, tracks)], settings)
    ]
    in_order = sorted(people, key=lambda person: (person[0].time_ms, person[0].face.box))
    return tuple(
        _group(number, person, clip, settings, blobs) for number, person in enumerate(in_order)
    )


def _by_track(person: Sequence[int], tracks: Sequence[int]) -> list[list[int]]:
    return _gathered([tracks[index] for index in person], person)


def _gathered(labels: Sequence[int], indices: Sequence[int]) -> list[list[int]]:
    """Indices of the same label together, in order of first appearance."""
    groups: dict[int, list[int]] = {}
    for label, index in zip(labels, indices, strict=True):
        groups.setdefault(label, []).append(index)
    return list(groups.values())


def _tracks(seen: Sequence[Seen]) -> list[int]:
    """The track of each face: it goes on while the face stays in place from look to look."""
    tracks = list(range(len(seen)))
    looks: dict[int, list[int]] = {}
    for index, face in enumerate(seen):
        looks.setdefault(face.look, []).append(index)
    for before, now in pairwise(sorted(looks)):
        if now == before + 1:
            for a, b in _matches(looks[before], looks[now], seen):
                tracks[b] = tracks[a]
    return tracks


def _matches(
    before: Iterable[int], now: Iterable[int], seen: Sequence[Seen]
) -> list[tuple[int, int]]:
    """Pairs of faces in the same place, each face in one pair at most, best overlap first."""
    now = list(now)
    overlaps = [(overlap(seen[a].face.box, seen[b].face.box), a, b) for a in before for b in now]
    pairs: dict[int, int] = {}
    for share, a, b in sorted(overlaps, key=lambda found: (-found[0], found[1], found[2])):
        free = a not in pairs and b not in pairs.values()
        if share >= _SAME_PLACE and seen[a].shot == seen[b].shot and free:
            pairs[a] = b
    return list(pairs.items())


def overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> float:
    """Intersection over union of two boxes (x0, y0, x1, y1)."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0, width) * max(0, height)
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared
    return shared / both if both else 0.0


def _group(
    number: int, person: Sequence[Seen], clip: Clip, settings: WatchSettings, blobs: Blobs
) -> Group:
    best = max(person, key=lambda s: (s.face.quality, s.face.score, -s.time_ms))
    blob = blobs.add(best.crop, settings.jpeg_quality)
    return Group(
        kind=IdentityKind.FACE,
        number=number,
        sightings=tuple(_sighting(s, clip, settings, blob if s is best else None) for s in person),
    )


def _sighting(seen: Seen, clip: Clip, settings: WatchSettings, blob: str | None) -> Sighting:
    end = min(seen.time_ms + settings.face_interval_ms, clip.span.end_ms)
    x0, y0, x1, y1 = seen.face.box
    return Sighting(
        span=TimeSpan.of(seen.time_ms, max(end, seen.time_ms)),
        box=Box(x0=x0, y0=y0, x1=x1, y1=y1),
        score=seen.face.score,
        quality=seen.face.quality,
        vector=tuple(float(value) for value in seen.face.vector),
        blob=blob,
    )
