"""Names are taken only where somebody plainly says or shows their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import ScreenText
from people.names import find_name_plates, introduced_name, is_name_plate
from tests.support.memory import face, keyframe, percept, said, text_at


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is Ada.", "Ada"),
        ("Hello everyone, my name's Omar Haddad and I work here.", "Omar Haddad"),
        ("Hi, I'm Jeff Steen, and this is Boulder Eats.", "Jeff Steen"),
        ("Welcome back. I'm Ada from the lab.", "Ada"),
        ("I am Grace M. Hopper.", "Grace M. Hopper"),
        ("This is Mary McDonald reporting from Rome.", "Mary McDonald"),
        ("Hi, I’m Zoë.", "Zoë"),
        ("I'm sorry.", None),
        ("I'm Sorry.", None),
        ("I'm American.", None),
        ("I'm Spanish, actually.", None),
        ("I'm going home.", None),
        ("She said I'm Batman and left.", None),
        ("This is Google.", None),
        ("This is Paris in spring.", None),
        ("His name is Omar.", None),
        ("I'm Ready Player One fan number one.", None),
        ("My name is written on the door.", None),
        ("What I'm saying is Ada was there.", None),
        ("", None),
    ],
)
def test_only_an_introduction_gives_its_speaker_s_name(text: str, name: str | None) -> None:
    assert introduced_name(said(0, text)) == name


@given(st.text(max_size=200))
def test_any_words_give_a_name_that_they_contain_or_none(text: str) -> None:
    found = introduced_name(said(0, text))
    assert found is None or found in " ".join(text.split()) or found in text


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        ("Omar Benjelloun", "Software Engineer", True),
        ("CARLO BIONDO", "Vice President, Southern Europe", True),
        ("Google Maps", "Sunny with a chance of rain", False),
        ("Software Engineer", "Manager", False),
        ("omar benjelloun", "Software Engineer", False),
        ("OMAR", "Software Engineer", True),
        ("Omar", "an engineer by trade", False),
        ("CNN", "President Biden arrives", False),
        ("NEWS", "Reporter", False),
        ("Annual Report 2024", "by the director", False),
        ("Breaking News", "President arrives", False),
    ],
)
def test_a_name_plate_is_two_names_and_an_occupation(name: str, title: str, expected: bool) -> None:
    assert is_name_plate(name, title) is expected


def plate_of(
    *lines: ScreenText, faces: tuple[object, ...] = (), height: int = 50
) -> list[tuple[int, str, str]]:
    """Plates on pictures of that height: lines stand at 32, 62, 92 ... from the top."""
    frames = [
        keyframe(ms / 1000).model_copy(update={"height": height})
        for ms in sorted({line.time_ms for line in lines})
    ]
    seen = percept(0, keyframes=frames, screen_texts=lines, faces=faces or (face(3, 1, (4, 6)),))
    found = find_name_plates(seen, lambda name: "Teams" not in name)
    return [(one.face, one.name, one.title) for one in found]


NAME, TITLE = text_at(5, "OMAR HADDAD"), text_at(5, "Software Engineer", row=1)


def test_a_plate_names_the_only_face_in_view() -> None:
    assert plate_of(NAME, TITLE) == [(3, "Omar Haddad", "Software Engineer")]
    assert plate_of(text_at(5, "Omar Haddad, Engineer")) == [(3, "Omar Haddad", "Engineer")]


def test_a_heading_or_what_is_no_person_names_nobody() -> None:
    assert not plate_of(NAME, TITLE, height=360)
    assert not plate_of(text_at(5, "CHATLLM TEAMS"), TITLE)


def test_no_plate_counts_where_it_could_be_somebody_else_s() -> None:
    assert not plate_of(NAME, TITLE, faces=(face(0, 1, (4, 6)), face(1, 2, (5, 7))))
    assert not plate_of(NAME, TITLE, faces=(face(0, 1, (20, 21)),))
    other = (text_at(5, "Ada Ferrari", row=2), text_at(5, "Designer", row=3))
    assert not plate_of(NAME, TITLE, *other)


def test_a_plate_that_is_hardly_legible_or_has_its_lines_apart_does_not_count() -> None:
    assert not plate_of(text_at(5, "Omar Haddad", score=0.5), TITLE)
    assert not plate_of(NAME, text_at(5, "Software Engineer", row=9))
    assert not plate_of(NAME, text_at(9, "Software Engineer", row=1))


def test_one_face_under_two_names_has_none() -> None:
    later = (text_at(6, "Ada Ferrari"), text_at(6, "Designer", row=1))
    assert not plate_of(NAME, TITLE, *later)
