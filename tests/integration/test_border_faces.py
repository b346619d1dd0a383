"""A real face through the real detector into memory: cut by the frame's border, alone, or twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import av
import numpy as np
import pytest

from benchmarks.perception.senses import OnlyPeople
from domain.errors import WeightsMissing
from domain.media import ClipState, IdentityKind
from models.ports import Image
from models.profile import load_profile
from models.toolbox import Toolbox
from perception.decode import RawClip
from perception.frames import Frame, FrameMetrics
from perception.perceive_clip import perceive
from store.database import Store
from store.home import Home
from store.queries.identities import SightingAt, sightings_of
from tests.support.full_suite import sample
from tests.support.memory import SETTINGS, VIDEO, clip, known_video, local_writers, remember
from tests.support.signals import frame_at, silence

WEIGHTS = Home.default().weights


@pytest.fixture(scope="module", params=["insightface", "yunet_sface"])
def models(request: pytest.FixtureRequest) -> Toolbox:
    found = Toolbox(load_profile("local").model_copy(update={"faces": request.param}), WEIGHTS)
    try:
        _ = found.faces, found.speaker, found.text
    except WeightsMissing as missing:
        pytest.skip(str(missing))
    return found


@pytest.fixture(scope="module")
def presenter(shared_media: Callable[[str], Path]) -> Image:
    return frame_at(shared_media("pbs_spacetime_quantum_information.mp4"), 121.0)


def watched(store: Store, models: Toolbox, *clips: Sequence[Image]) -> list[SightingAt]:
    """Faces as they are remembered of clips of these frames, a second apart."""
    known_video(store, len(clips))
    for index, images in enumerate(clips):
        frames = [_frame(30_000 * index + 1_000 * n, image) for n, image in enumerate(images)]
        raw = RawClip(clip(index), frames, silence(0))
        seen = perceive(raw, OnlyPeople(models, voices=False), SETTINGS.watch)
        assert remember(store, VIDEO, seen, local_writers(), models, SETTINGS) == ClipState.DONE
    with store.begin() as session:
        return sightings_of(session, VIDEO, IdentityKind.FACE)


def _frame(ms: int, image: Image) -> Frame:
    return Frame(ms, FrameMetrics(0, 1, 1), av.VideoFrame.from_ndarray(image, format="rgb24"))


def cut(image: Image, box: tuple[int, ...], side: str, share: float) -> Image:
    """The image cut off so that its border takes ``share`` of the face away."""
    x0, y0, x1, y1 = box
    dx, dy = round(share * (x1 - x0)), round(share * (y1 - y0))
    parts = {
        "left": image[:, x0 + dx :],
        "right": image[:, : x1 - dx],
        "top": image[y0 + dy :],
        "bottom": image[: y1 - dy],
    }
    return np.ascontiguousarray(parts[side])


@pytest.mark.parametrize("side", sample(["left"], ("left", "right", "top", "bottom")))
def test_a_face_that_the_border_cuts_is_stored_known_and_within_the_frame(
    side: str, store: Store, models: Toolbox, presenter: Image
) -> None:
    (face,) = models.faces.faces(presenter)
    image = cut(presenter, face.box, side, 0.25)
    whole, part = watched(store, models, [presenter], [image])
    assert whole.number == part.number == 0
    assert part.box is not None
    height, width = image.shape[:2]
    x0, y0, x1, y1 = part.box
    assert 0 <= x0 < x1 <= width
    assert 0 <= y0 < y1 <= height
    at_border = {"left": x0, "right": width - x1, "top": y0, "bottom": height - y1}
    assert at_border[side] == 0
    assert min(gap for name, gap in at_border.items() if name != side) > 0


def test_two_faces_of_one_frame_are_two(store: Store, models: Toolbox, presenter: Image) -> None:
    twins = np.hstack([presenter, presenter])
    seen = watched(store, models, [twins, presenter, twins], [twins, twins])
    assert set(Counter((one.start_ms, one.number) for one in seen).values()) == {1}
    assert len(seen) == 9
    # Whom the lone one is taken for is anybody's guess; that there are two is not.
    assert {one.number for one in seen} == {0, 1}
