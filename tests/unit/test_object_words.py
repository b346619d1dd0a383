"""Things in view, in words, and what becomes of them in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import Box, IdentityKind, Percept, SeenObject
from domain.memories import MemorySource
from domain.people import Identity
from domain.settings import MemorySettings, Settings
from domain.wording import count_objects, describe_by_time, describe_counts, pluralise
from memory.writers import make_writers
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext
from models.profile import Profile
from models.toolbox import Toolbox
from models.yolox import coco_labels
from people.characters import ClipPeople
from people.names import format_line
from tests.support.memory import face, percept, said, span, text_at

BOX = Box(x0=1, y0=2, x1=3, y1=4)


def thing(time_s: float, label: str) -> SeenObject:
    return SeenObject(time_ms=round(1000 * time_s), label=label, score=0.7, box=BOX)


@pytest.mark.parametrize(
    ("label", "many"),
    [
        ("person", "people"),
        ("bus", "buses"),
        ("bench", "benches"),
        ("toothbrush", "toothbrushes"),
        ("knife", "knives"),
        ("wine glass", "wine glasses"),
        ("laptop", "laptops"),
        ("sheep", "sheep"),
    ],
)
def test_several_of_a_kind(label: str, many: str) -> None:
    assert label in coco_labels()
    assert pluralise(label) == many


def test_a_listing_reads_as_people_write() -> None:
    counts = {"person": 3, "umbrella": 1, "laptop": 1, "scissors": 2}
    assert describe_counts(counts) == "3 people, an umbrella, a laptop, scissors"


def test_a_thing_that_stays_in_view_is_one_thing() -> None:
    seen = [thing(1, "cup"), thing(1, "person"), thing(9, "cup"), thing(9, "cup"), thing(9, "cow")]
    assert count_objects(seen) == {"person": 1, "cup": 2, "cow": 1}
    assert describe_by_time(seen) == [(1000, "a person, a cup"), (9000, "2 cups, a cow")]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(coco_labels()))))
def test_each_kind_is_reported_once_people_first(seen: list[tuple[int, str]]) -> None:
    counts = count_objects([thing(time, label) for time, label in seen])
    assert set(counts) == {label for _, label in seen}
    assert "person" not in list(counts)[1:]
    for label, count in counts.items():
        times = [time for time, of in seen if of == label]
        assert count == max(times.count(time) for time in times)


def lines_of(one: Percept) -> list[tuple[str, str]]:
    drafts = LocalClipWriter().write(one, ClipPeople(), ClipContext("")).drafts
    return [(draft.source, format_line(draft, ClipPeople())) for draft in drafts]


def test_the_local_writer_tells_them_in_one_line_with_its_time() -> None:
    one = percept(1, objects=(thing(33, "cup"), thing(48, "person"), thing(48, "person")))
    (draft,) = LocalClipWriter().write(one, ClipPeople(), ClipContext("")).drafts
    assert (draft.source, draft.text) == (MemorySource.OBJECTS, "Seen: 2 people, a cup.")
    assert draft.span == span(33, 49)
    assert lines_of(percept(1)) == []


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (1, ["said", "read"]),
        (2, ["said", "read"]),
        (3, ["said", "seen", "read"]),
        (4, ["said", "seen", "read", "objects"]),
        (24, ["said", "seen", "read", "objects"]),
    ],
)
def test_what_is_in_view_is_told_where_there_is_room(lines: int, kept: list[str]) -> None:
    one = percept(
        0,
        utterances=(said(1, "Good morning."),),
        screen_texts=(text_at(4, "EXIT"),),
        faces=(face(0, 1, (2, 3)),),
        objects=(thing(5, "cup"),),
    )
    known = ClipPeople({0: Identity(id=1, kind=IdentityKind.FACE, number=0, first_clip=0)})
    drafts = LocalClipWriter(lines).write(one, known, ClipContext("")).drafts
    assert [str(draft.source) for draft in drafts] == kept


@pytest.mark.parametrize(
    ("density", "lines"), [("sparse", 8), ("normal", 24), ("dense", 48), (5, 5)]
)
def test_density_is_a_name_or_a_number_of_lines(density: object, lines: int) -> None:
    assert MemorySettings.model_validate({"density": density}).lines == lines
    profile = Profile(name="p", settings=Settings(memory=MemorySettings(density=lines)))
    writer = make_writers(Toolbox(profile, Path("/nowhere")), profile).clip
    many = tuple(face(n, n, (n / 9, n / 9 + 0.1)) for n in range(60))
    people = ClipPeople(
        {n: Identity(id=n + 1, kind=IdentityKind.FACE, number=n, first_clip=0) for n in range(60)}
    )
    assert len(writer.write(percept(0, faces=many), people, ClipContext("")).drafts) == lines
