"""Detects objects on the keyframes of one clip, with boxes and times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from domain.media import Box, SeenObject

if TYPE_CHECKING:
    from models.ports import ObjectDetector, Thing
    from perception.keyframes import ChosenKeyframe


def find_objects(
    chosen: Sequence[ChosenKeyframe], detector: ObjectDetector | None
) -> tuple[SeenObject, ...]:
    """Return the objects on each keyframe, by time, best score first; boxes in its pixels."""
    if detector is None:
        return ()
    return tuple(
        _detected_object(thing, one.keyframe.time_ms)
        for one in chosen
        for thing in detector.objects(one.image)
    )


def _detected_object(thing: Thing, time_ms: int) -> SeenObject:
    x0, y0, x1, y1 = thing.box
    box = Box(x0=x0, y0=y0, x1=x1, y1=y1)
    return SeenObject(time_ms=time_ms, label=thing.label, score=thing.score, box=box)
