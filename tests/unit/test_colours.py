"""The line on colours: where nothing but speech was recognised, and true to the picture."""

from __future__ import annotations

import numpy as np
import pytest

from domain.media import Keyframe, Percept, SeenObject
from domain.memories import MemoryDraft, MemorySource
from memory.writers.keyframe_descriptions import colour_lines, describe_colours
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext
from models.ports import Image
from people.characters import ClipPeople
from perception.likeness import colour_shares, likeness
from tests.support.memory import VIDEO, keyframe, percept, said, span


def painted(*colours: tuple[int, int, int]) -> Image:
    """Stripes of these colours, equally wide."""
    return np.repeat(np.array(colours, np.uint8)[None], 90, axis=0).repeat(60, axis=1)


def measured(time_s: float, *colours: tuple[int, int, int]) -> Keyframe:
    vector = tuple(likeness(painted(*colours)).tolist())
    return keyframe(time_s).model_copy(update={"likeness": vector})


def written(seen: Percept) -> list[MemoryDraft]:
    people = ClipPeople()
    drafts = LocalClipWriter().write(seen, people, ClipContext(VIDEO)).drafts
    return [draft for draft in drafts if draft.source == MemorySource.COLOURS]


RED, BLUE, BLACK, WHITE = (220, 10, 10), (20, 40, 230), (2, 2, 2), (250, 250, 250)
BROWN, NAVY = (130, 80, 30), (10, 10, 60)


@pytest.mark.parametrize(
    ("colours", "text"),
    [
        ((BLACK,), "dark, mostly black"),
        ((WHITE,), "bright, mostly white"),
        ((RED, RED, BLUE), "bright, mostly red and blue"),
        ((BROWN,), "mostly brown"),
        ((NAVY,), "dark, mostly dark blue"),
        ((RED, (10, 200, 20), BLUE, WHITE, BLACK, (240, 230, 10)), "bright, of many colours"),
    ],
)
def test_colours_are_named_by_how_much_there_is_of_them(
    colours: tuple[tuple[int, int, int], ...], text: str
) -> None:
    assert describe_colours(colour_shares(likeness(painted(*colours)))) == text


def test_a_clip_without_any_other_line_has_one_on_its_colours() -> None:
    seen = percept(0, keyframes=(measured(4, BLACK), measured(20, BLACK)))
    (line,) = written(seen)
    assert line.text == "Picture: dark, mostly black."
    assert line.span == span(4, 21)
    (spoken,) = written(seen.model_copy(update={"utterances": (said(1, "Hello."),)}))
    assert spoken == line


def test_where_anything_was_recognised_there_is_none() -> None:
    cup = SeenObject.model_validate(
        {"time_ms": 4000, "label": "cup", "score": 0.9, "box": {"x0": 0, "y0": 0, "x1": 9, "y1": 9}}
    )
    assert written(percept(0, keyframes=(measured(4, BLACK),), objects=(cup,))) == []


def test_pictures_that_were_not_measured_have_none() -> None:
    assert [*colour_lines(percept(0, keyframes=(keyframe(4),)))] == []
    assert [*colour_lines(percept(0))] == []
