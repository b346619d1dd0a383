"""Images that look like an example, in the store and on the command line."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from sqlalchemy import select

from domain.errors import InputError, NotFound
from domain.media import ClipState, Keyframe
from domain.memories import MemoryView, Scope
from library.rights import give_right, rights_on
from models.ports import Image
from perception.images import Blobs, likeness
from retrieval import search_once as searching
from retrieval.search_once import example_of, image_example, images_alike, search_alike
from store.database import Store
from store.tables.schema import KeyframeRow
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    keyframe,
    known_video,
    local_writers,
    percept,
    remember,
)
from tests.support.memory import Tools as Remembering

STREET, STREET_AGAIN, SLIDE, FACE = 2, 41, 8, 20
"""When pictures are shown, in seconds; the second one of the street is in the next clip."""


def picture(number: int, *, dx: int = 0) -> Image:
    draw = np.random.default_rng(number)
    image = np.full((90, 160, 3), draw.integers(0, 255, 3), np.uint8)
    for _ in range(5):
        x, y, w, h = draw.integers(0, 120), draw.integers(0, 60), *draw.integers(20, 60, 2)
        image[y : y + h, x + dx : x + dx + w] = draw.integers(0, 255, 3)
    return image


PICTURES = {STREET: picture(1), SLIDE: picture(2), FACE: picture(3), STREET_AGAIN: picture(1, dx=3)}


@pytest.fixture
def library(store: Store) -> Store:
    known_video(store, 2)
    for clip, times in ((0, (STREET, SLIDE, FACE)), (1, (STREET_AGAIN,))):
        blobs = Blobs()
        frames = tuple(_frame(time, blobs) for time in times)
        for data in blobs.values():
            store.blobs.put(data)
        seen = Perceived(percept(clip, keyframes=frames), dict(blobs))
        done = remember(store, VIDEO, seen, local_writers(), Remembering(), SETTINGS)
        assert done == ClipState.DONE
    return store


def _frame(time: int, blobs: Blobs) -> Keyframe:
    image = PICTURES[time]
    measured = tuple(likeness(image).tolist())
    return keyframe(time, blobs.add(image, 90)).model_copy(update={"likeness": measured})


def view(last_clip: int = 1) -> MemoryView:
    return MemoryView(scopes=(Scope(video=VIDEO, last_clip=last_clip),))


def id_at(store: Store, time_s: int) -> int:
    row = KeyframeRow
    with store.begin() as session:
        return session.scalars(select(row.id).where(row.time_ms == 1000 * time_s)).one()


def times(store: Store, like: str, last_clip: int = 1) -> list[int]:
    seen = view(last_clip)
    found = images_alike(store, seen, example_of(store, seen, like))
    return [image.time_ms // 1000 for image in found.images]


def test_the_same_place_in_another_clip_comes_first(library: Store) -> None:
    seen = view()
    found = images_alike(library, seen, example_of(library, seen, f"k{id_at(library, STREET)}"))
    assert found.images[0].time_ms == 1000 * STREET_AGAIN
    assert not found.nothing_close
    assert STREET not in [image.time_ms // 1000 for image in found.images]
    assert [e.ref for e in found.evidence] == [image.ref for image in found.images]


def test_an_image_file_is_an_example(library: Store, tmp_path: Path) -> None:
    path = tmp_path / "slide.png"
    cv2.imwrite(str(path), cv2.cvtColor(PICTURES[SLIDE], cv2.COLOR_RGB2BGR))
    assert times(library, str(path))[0] == SLIDE
    found = images_alike(library, view(), image_example("slide.png", path.read_bytes()))
    assert found.images[0].description.startswith("nearly the same as slide.png")
    assert found.images[0].score > 0.97


def test_what_comes_later_is_neither_found_nor_an_example(library: Store) -> None:
    assert STREET_AGAIN not in times(library, f"k{id_at(library, STREET)}", last_clip=0)
    with pytest.raises(NotFound, match="no image k"):
        times(library, f"k{id_at(library, STREET_AGAIN)}", last_clip=0)


def test_unlike_images_are_listed_only_where_none_is_alike(library: Store) -> None:
    assert times(library, f"k{id_at(library, STREET)}") == [STREET_AGAIN]
    assert len(times(library, f"k{id_at(library, FACE)}")) == 3


def test_a_huge_file_fails(library: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "slide.png"
    cv2.imwrite(str(path), PICTURES[SLIDE])
    monkeypatch.setattr(searching, "LARGEST_BYTES", 10)
    with pytest.raises(InputError, match=r"slide\.png: larger than"):
        times(library, str(path))
    with pytest.raises(InputError, match=r"slide\.png: larger than"):
        image_example("slide.png", path.read_bytes())


def test_who_may_only_look_finds_images_too(library: Store) -> None:
    give_right(library, "key:reader", video=VIDEO)
    rights_on(library)
    assert times(library.for_viewer("key:reader"), f"k{id_at(library, STREET)}") == [STREET_AGAIN]


@pytest.mark.parametrize(
    ("like", "error"),
    [("k999999", "no image k999999"), ("nope.jpg", "neither an image such as k12 nor a file")],
)
def test_what_is_no_example_is_refused(library: Store, like: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        times(library, like)


def test_a_file_that_is_no_image_is_refused(library: Store, tmp_path: Path) -> None:
    path = tmp_path / "words.jpg"
    path.write_text("no picture")
    with pytest.raises(InputError, match=r"words\.jpg: cannot be read as an image"):
        times(library, str(path))


def test_without_videos_there_is_nothing_to_search(store: Store) -> None:
    example = image_example("a.png", cv2.imencode(".png", PICTURES[FACE])[1].tobytes())
    with pytest.raises(InputError, match="nothing has been watched yet"):
        search_alike(store, lambda _: example)
