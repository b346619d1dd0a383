"""A photograph of somebody, held into a scene that moves, is no character (real models)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import pytest

from domain.settings import WatchSettings
from models.ports import Image
from models.toolbox import Toolbox
from perception.decode import read_clips
from perception.perceive_clip import perceive
from perception.source import probe
from tests.support.full_suite import in_full
from tests.support.signals import frame_at

SETTINGS = WatchSettings()
RATE, SECONDS = 10, 8
FACE = (660, 130)
"""Upper left of 200 x 200 pixels around a face of the clip, at its first frame."""


def photograph(path: Path) -> Image:
    x, y = FACE
    return frame_at(path, 0.0)[y : y + 200, x : x + 200]


def scene(target: Path, face: Image, *, sways: bool) -> Path:
    """A moving scene of H.264 with the face at one place, or swaying as who stands there would."""
    texture = np.random.default_rng(3).integers(0, 255, (40, 60, 3), np.uint8)
    wall = np.kron(texture, np.ones((12, 12, 1), np.uint8))
    with av.open(str(target), "w") as out:
        stream = out.add_stream("libx264", rate=RATE, options={"crf": "23"})
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        for number in range(RATE * SECONDS):
            picture = np.roll(wall, 4 * number, axis=1)[:360, :640].copy()
            x, y = 200 + (number % 7 if sways else 0), 80
            picture[y : y + 200, x : x + 200] = face
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                out.mux(packet)
        for packet in stream.encode():
            out.mux(packet)
    return target


@pytest.mark.parametrize(("sways", "people"), [in_full((False, 0)), (True, 1)])
def test_a_photograph_is_nobody_and_who_sways_is_somebody(
    tmp_path: Path, toolbox: Toolbox, shared_media: Callable[[str], Path], sways: bool, people: int
) -> None:
    face = photograph(shared_media("msdwild_00001.mp4"))
    recording = scene(tmp_path / "film.mp4", face, sways=sways)
    (raw,) = read_clips(recording, probe(recording), SETTINGS)
    found = perceive(raw, toolbox, SETTINGS, ("speech", "screen", "objects")).percept
    assert len(found.faces) == people
