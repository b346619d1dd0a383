"""Decodes single frames of a file at given times, for a question about a moment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from domain.errors import MediaError
from perception.frames import shrink
from perception.picture_stream import read_pictures
from perception.source import SourceInfo, probe

if TYPE_CHECKING:
    from domain.settings import WatchSettings
    from models.ports import Image

SAMPLES_AHEAD = 3
"""Sample instants within which a frame is looked for after the time that is asked for."""


def decode_frames(
    path: Path, settings: WatchSettings, times_ms: Sequence[int]
) -> list[tuple[int, Image]]:
    """Decode the frames that a file shows at some times.

    Args:
        settings: the sampling rate and the size that frames are shrunk to.
        times_ms: in milliseconds of video time.

    Returns:
        The time asked for and the picture (H x W x 3, RGB, upright) of each that decodes.

    Raises:
        MediaError: the file cannot be read, or has no pictures.
    """
    info = probe(path)
    if not info.has_video:
        raise MediaError(f"{path}: has no pictures")
    found = ((time, _frame(path, info, settings, time)) for time in times_ms)
    return [(time, image) for time, image in found if image is not None]


def _frame(path: Path, info: SourceInfo, settings: WatchSettings, time_ms: int) -> Image | None:
    """Return the picture that is shown at a time; None if none decodes there."""
    ahead = int(SAMPLES_AHEAD * 1000 / settings.sample_fps)
    start = max(0, min(time_ms, info.duration_ms - ahead))
    reader = read_pictures(path, info, settings, start, start + ahead, single_threaded=True)
    with closing(reader):
        shown = (one.picture for one in reader if one.picture is not None)
        picture = next(shown, None)
        if picture is None:
            return None
        return info.upright.pixels(shrink(picture, info.upright, settings.frame_height))
