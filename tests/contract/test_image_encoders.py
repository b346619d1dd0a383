"""Image-text models: what users put into a folder keeps the port's promises, or is told of."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from domain.asking import Aim, Mode
from domain.errors import WeightsMissing
from domain.media import ClipState
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from library.library_search import LibraryQuery, search_library
from models.hub import FILES, missing_files
from models.image_text import ImageTextEncoder, preprocess, read_preprocessing
from models.ports import Image
from retrieval.retrievers import Retrievers
from store.database import Store
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
from tests.support.remembered import Tools
from tests.support.tiny_image_encoder import COLOURS, towers

COLOUR_AT = {4: "blue", 14: "red", 24: "green"}
Filmed = tuple[Store, ImageTextEncoder]


def painted(colour: str, height: int = 60, width: int = 100) -> Image:
    return np.full((height, width, 3), np.array(COLOURS[colour]) * 255, np.uint8)


@pytest.fixture(params=["clip", "clip in onnx/", "siglip"])
def encoder(request: pytest.FixtureRequest, tmp_path: Path) -> ImageTextEncoder:
    family, _, inside = request.param.partition(" in ")
    return ImageTextEncoder(towers(tmp_path / "tiny", family=family, inside=inside))


def test_an_image_is_closest_to_the_text_that_tells_of_it(encoder: ImageTextEncoder) -> None:
    rows = encoder.images([painted(colour) for colour in COLOURS])
    texts = np.stack([encoder.text(colour) for colour in COLOURS])
    assert (rows @ texts.T).argmax(axis=1).tolist() == [0, 1, 2]
    assert encoder.close < float((rows @ texts.T).diagonal().min())


def test_rows_are_unit_vectors_of_one_space(encoder: ImageTextEncoder) -> None:
    rows = encoder.images([painted("red"), painted("blue", 16, 300)])
    assert rows.dtype == np.float32
    assert rows.shape == (2, len(encoder.text("red")))
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert np.linalg.norm(encoder.text("blue")) == pytest.approx(1, abs=1e-5)
    assert len(encoder.images([])) == 0


def test_a_row_depends_on_its_own_input_only(encoder: ImageTextEncoder) -> None:
    images = [painted(colour) for colour in COLOURS]
    alone = [encoder.images([image])[0].tobytes() for image in images]
    assert [row.tobytes() for row in encoder.images(images[::-1])] == alone[::-1]
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda c: encoder.text(c).tobytes(), [*COLOURS] * 4))
    assert len(set(texts)) == 3


@pytest.mark.parametrize("text", ["", "colourless", "red " * 500, "🚲 rot"])
def test_any_text_has_a_finite_vector(encoder: ImageTextEncoder, text: str) -> None:
    assert np.isfinite(encoder.text(text)).all()


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_with_where_to_put_it(name: str, tmp_path: Path) -> None:
    folder = towers(tmp_path / "tiny")
    (folder / name).unlink()
    assert missing_files(folder) == [name]
    with pytest.raises(WeightsMissing, match=name) as output:
        ImageTextEncoder(folder)
    assert str(folder) in str(output.value)
    assert "leave `images` out" in str(output.value)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named_with_where_to_put_it_again(name: str, tmp_path: Path) -> None:
    folder = towers(tmp_path / "tiny")
    for data in (b"{not a model", b"{}"):
        (folder / name).write_bytes(data)
        with pytest.raises(WeightsMissing, match=name) as output:
            ImageTextEncoder(folder)
        assert f"ONNX export into {folder} again" in str(output.value)
        assert "leave `images` out" in str(output.value)


@pytest.mark.parametrize(
    "config", [{}, {"size": "huge"}, {"size": 8, "image_mean": [1]}, {"size": {}}]
)
def test_an_unknown_preparation_is_reported(config: dict[str, object]) -> None:
    with pytest.raises(WeightsMissing, match="how images are prepared"):
        read_preprocessing(config)


@pytest.mark.parametrize("shape", [(16, 300), (300, 16), (8, 8), (32, 32)])
def test_every_image_is_brought_to_the_size_and_scale_of_the_model(shape: tuple[int, int]) -> None:
    sizes: list[dict[str, Any]] = [
        {"do_center_crop": True, "crop_size": 32},
        {"size": {"height": 32, "width": 32}},
    ]
    for size in sizes:
        config = size | {"image_mean": [0, 0.5, 1], "image_std": [1, 0.5, 1]}
        values = preprocess(np.full((*shape, 3), 255, np.uint8), read_preprocessing(config))
        assert values.shape == (1, 3, 32, 32)
        assert values[0, :, 0, 0] == pytest.approx([1, 1, 0])


def test_the_middle_is_taken_where_the_model_was_trained_so() -> None:
    image = painted("red", 40, 120)
    image[:, 40:80] = painted("green", 40, 40)
    config = {"do_center_crop": True, "crop_size": 32, "image_mean": [0] * 3, "image_std": [1] * 3}
    values = preprocess(image, read_preprocessing(config))
    assert values[0, :, 16, 16] == pytest.approx([0, 1, 0])
    assert values[0, 0].mean() < 0.1


# In memory


@pytest.fixture
def recorded_video(store: Store, tmp_path: Path) -> tuple[Store, ImageTextEncoder]:
    """Three keyframes whose colours nothing tells but their pixels."""
    encoder = ImageTextEncoder(towers(tmp_path / "tiny"))
    known_video(store, 1)
    rows = encoder.images([painted(colour) for colour in COLOUR_AT.values()])
    frames = tuple(
        keyframe(time).model_copy(
            update={"vector": tuple(row.tolist()), "image_encoder": encoder.name}
        )
        for time, row in zip(COLOUR_AT, rows, strict=True)
    )
    seen = Perceived(percept(0, keyframes=frames), {})
    assert remember(store, VIDEO, seen, local_writers(), Remembering(), SETTINGS) == ClipState.DONE
    return store, encoder


def found(store: Store, encoder: ImageTextEncoder | None, query: str) -> tuple[int, str, bool]:
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=0),))
    result = Retrievers(store, Tools(images=encoder), Settings()).search(view, Mode.KEYFRAME, query)
    return result.images[0].time_ms if result.images else -1, result.searched, result.nothing_close


def test_an_image_is_found_by_what_is_on_it(recorded_video: Filmed) -> None:
    store, encoder = recorded_video
    for time, colour in COLOUR_AT.items():
        first, searched, nothing = found(store, encoder, f"all {colour}")
        assert (first, nothing) == (1000 * time, False)
        assert "by their likeness under clip:tiny" in searched


def test_any_search_finds_what_only_an_image_shows(recorded_video: Filmed) -> None:
    store, encoder = recorded_video
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=0),))
    retrievers = Retrievers(store, Tools(images=encoder), Settings())
    plain = retrievers.search(view, Mode.VIDEO, "all red")
    assert (plain.evidence[-1].span.start_ms, plain.nothing_close) == (14_000, False)
    asked = retrievers.search(view, Mode.EVENT, "all red", aim=Aim(text="all red", moments=5))
    assert (asked.quotes[0].span.start_ms, asked.nothing_close) == (14_000, False)
    assert (plain.unseen, asked.unseen) == (False, False)
    (seen,) = search_library(
        store, Tools().text, LibraryQuery(words="all red"), images=encoder
    ).pictures[:1]
    assert seen.span.start_ms == 14_000
    blind = Retrievers(store, Tools(), Settings()).search(view, Mode.VIDEO, "all red")
    assert blind.nothing_close
    assert blind.unseen


def test_what_is_on_no_image_is_said_not_to_be_close(recorded_video: Filmed) -> None:
    store, encoder = recorded_video
    assert found(store, encoder, "nobody knows")[2]


def test_without_the_model_it_is_said_plainly(recorded_video: Filmed) -> None:
    store, _ = recorded_video
    assert "this profile has no image-text model" in found(store, None, "all red")[1]


def test_vectors_of_another_model_are_not_compared(recorded_video: Filmed, tmp_path: Path) -> None:
    store, _ = recorded_video
    other = ImageTextEncoder(towers(tmp_path / "other"))
    assert found(store, other, "all red")[1] == found(store, None, "all red")[1]
