from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import Keyframe
from models.ports import Image, TextLine
from perception.keyframes import ChosenKeyframe
from perception.screen_text import read_screen, same_text

Box = tuple[int, int, int, int]


@dataclass
class Reader:
    """Reads what was put in for a keyframe, in the order of the calls."""

    pages: list[list[TextLine]]
    name: str = "scripted"
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def read(self, image: Image) -> list[TextLine]:
        self.shapes.append(image.shape)
        return self.pages[len(self.shapes) - 1]


def line(text: str, score: float = 0.9, box: Box = (4, 5, 60, 20)) -> TextLine:
    return TextLine(box, text, score)


def chosen(
    ms: int, size: tuple[int, int] = (640, 360), image: Image | None = None
) -> ChosenKeyframe:
    """A keyframe; each second has another grey unless ``image`` says what it shows."""
    width, height = size
    key = Keyframe(
        time_ms=ms, shot=0, sharpness=1, entropy=1, quality=1, width=width, height=height, blob="0"
    )
    grey = np.full((height, width, 3), ms // 1_000 * 20 % 256, np.uint8)
    return ChosenKeyframe(0, key, grey if image is None else image)


def slide(words: str, noise: int = 0) -> Image:
    """A white picture with small words on it, as a lossy codec gives it back."""
    image = np.full((360, 640, 3), 230, np.uint8)
    cv2.putText(image, words, (40, 180), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (20, 20, 20), 1)
    random = np.random.default_rng(7).integers(0, noise + 1, image.shape)
    return np.asarray(image + random, np.uint8)


def texts(*pages: list[TextLine]) -> list[tuple[int, str]]:
    keys = [chosen(i * 1_000) for i in range(len(pages))]
    return [(t.time_ms, t.text) for t in read_screen(keys, Reader(list(pages)))]


def test_lines_come_in_reading_order_with_the_time_of_their_keyframe() -> None:
    assert texts([line("Agenda"), line("Budget 2026")], [line("Questions?")]) == [
        (0, "Agenda"),
        (0, "Budget 2026"),
        (1_000, "Questions?"),
    ]


def test_what_stands_there_for_longer_is_stored_once_where_first_seen() -> None:
    page = [line("Omar"), line("Software Engineer")]
    again = [line("OMAR"), line("Software Englneer"), line("Paris office")]
    assert texts(page, again, page) == [
        (0, "Omar"),
        (0, "Software Engineer"),
        (1_000, "Paris office"),
    ]


def test_a_picture_that_shows_the_same_is_read_once() -> None:
    images = [slide("12 Mbit"), slide("12 Mbit", noise=6), slide("Questions?"), slide("12 Mbit")]
    reader = Reader([[line("12 Mbit")], [line("Questions?")]])
    found = read_screen([chosen(n * 1_000, image=one) for n, one in enumerate(images)], reader)
    assert [(one.time_ms, one.text) for one in found] == [(0, "12 Mbit"), (2_000, "Questions?")]
    assert len(reader.shapes) == 2


@pytest.mark.parametrize("words", ["12 Mb1t", "72 Mbit", "12,Mbit"])
def test_one_small_letter_makes_another_picture(words: str) -> None:
    reader = Reader([[line("12 Mbit")], [line(words)]])
    images = [slide("12 Mbit"), slide(words)]
    read_screen([chosen(n * 1_000, image=one) for n, one in enumerate(images)], reader)
    assert len(reader.shapes) == 2


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (line("ok", 0.61), True),
        (line("ok", 0.6), False),
        (line("a!"), False),
        (line("||| --"), False),
        (line("42"), True),
        (line("東京"), True),
    ],
)
def test_doubtful_readings_and_specks_are_left_out(found: TextLine, kept: bool) -> None:
    assert bool(texts([found])) == kept


def test_a_wide_picture_is_read_smaller_and_boxes_are_of_the_keyframe() -> None:
    reader = Reader([[line("Wide", box=(10, 20, 640, 100))]])
    (text,) = read_screen([chosen(0, (2_560, 720))], reader)
    assert reader.shapes == [(360, 1_280, 3)]
    assert (text.box.x0, text.box.y0, text.box.x1, text.box.y1) == (20, 40, 1_280, 200)


def test_boxes_are_clipped_and_what_is_outside_is_left_out() -> None:
    page = [line("Edge", box=(-5, 300, 700, 400)), line("Gone", box=(650, 0, 700, 9))]
    (text,) = read_screen([chosen(0)], Reader([page]))
    assert (text.box.x0, text.box.y0, text.box.x1, text.box.y1) == (0, 300, 640, 360)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("Paris Office", "paris office!", True),
        ("Software Engineer", "Software Englneer", True),
        ("Room 101", "Room 102", False),
        ("Omar", "Osar", False),
        ("cat", "dog", False),
    ],
)
def test_slip_in_long_line_is_same_line_and_in_number_it_is_not(a: str, b: str, same: bool) -> None:
    assert same_text(a, b) is same


@given(st.text(max_size=30), st.text(max_size=30))
def test_sameness_is_mutual_and_with_oneself(a: str, b: str) -> None:
    assert same_text(a, a)
    assert same_text(a, b) == same_text(b, a)
