"""Who a tag stands for, what it is called, and the names that people plainly say or show."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind, ScreenText
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.people import TAG, Character, Identity, LikelySame, escape_tags, tags_in_words
from people import likely_same
from people.characters import ClipPeople
from people.likely_same import MIN_COSINE_SHARE, Exemplars
from people.names import find_name_plates, format_line, introduced_name, is_name_plate
from tests.support.memory import face, keyframe, percept, said, span, text_at

FACE, VOICE = IdentityKind.FACE, IdentityKind.VOICE
TEXTS = st.text(alphabet=st.sampled_from("ab <>_/\\1234"), max_size=30) | st.sampled_from(
    ["<face_1> and <face_3>", "<character_0>!", "<<face_1>>", "<face_1", "<Face_1>"]
)
NAME, TITLE = text_at(5, "OMAR HADDAD"), text_at(5, "Software Engineer", row=1)


def one(kind: IdentityKind, number: int) -> Identity:
    return Identity(id=10 * number + (kind == VOICE) + 1, kind=kind, number=number, first_clip=0)


NOBODY = Character(number=1, faces=(3,))
PEOPLE = ClipPeople(
    faces={0: one(FACE, 3), 1: one(FACE, 1)},
    voices={0: one(VOICE, 2)},
    speakers={"Jake": one(VOICE, 7)},
    characters=(Character(number=0, name="Ada", faces=(1, 4), voices=(2,)), NOBODY),
)


def draft(text: str, source: MemorySource = MemorySource.SAID, **more: object) -> MemoryDraft:
    values = {"kind": MemoryKind.EPISODIC, "text": text, "span": span(0, 1), "source": source}
    return MemoryDraft.model_validate({**values, **more})


@pytest.mark.parametrize(
    ("tag", "members"),
    [
        ("<face_1>", ["<face_1>"]),
        ("<character_0>", ["<face_1>", "<voice_2>"]),
        ("<character_1>", ["<face_3>"]),
        ("<character_9>", []),
        ("<face_4>", []),
        ("Ada", []),
        ("", []),
    ],
)
def test_a_tag_stands_for_who_of_it_is_in_the_clip(tag: str, members: list[str]) -> None:
    assert [found.tag for found in PEOPLE.members(tag)] == members


@pytest.mark.parametrize(
    ("tag", "label"),
    [
        ("<face_1>", "Ada"),
        ("<face_4>", "Ada"),
        ("<character_0>", "Ada"),
        ("<face_3>", "<face_3>"),
        ("<character_1>", "<character_1>"),
        ("<voice_9>", "<voice_9>"),
        ("Jake", "Jake"),
    ],
)
def test_a_tag_is_called_by_the_name_of_its_character(tag: str, label: str) -> None:
    assert PEOPLE.label(tag) == label


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (draft("It is late.", speaker="<voice_2>"), "Ada: It is late."),
        (draft("It is late.", speaker="<voice_9>"), "<voice_9>: It is late."),
        (draft("It is late.", speaker="Jake"), "Jake: It is late."),
        (draft("It is late."), "It is late."),
        (draft("EXIT", MemorySource.READ), "On screen: EXIT"),
        (draft("<face_1> waves.", MemorySource.SEEN), "Ada waves."),
        (draft("<face_1> waves.", MemorySource.MODEL, speaker="Jake"), "Ada waves."),
        (
            draft(
                "<face_1> is named Ada (shown on screen).",
                MemorySource.READ,
                kind=MemoryKind.CHARACTER,
                tags=("<face_1>",),
            ),
            "<face_1> is named Ada (shown on screen).",
        ),
    ],
)
def test_a_line_says_who_said_it_or_where_it_was_read(shown: MemoryDraft, text: str) -> None:
    assert format_line(shown, PEOPLE) == text


@given(TEXTS)
def test_names_replace_known_tags_only_and_leave_the_rest(text: str) -> None:
    named = PEOPLE.replace_tags(text)
    known = [found[0] for found in TAG.finditer(text) if PEOPLE.label(found[0]) != found[0]]
    assert named.count("Ada") == text.count("Ada") + len(known)
    assert ClipPeople().replace_tags(text) == text
    assert TAG.sub("", PEOPLE.replace_tags(text)).replace("Ada", "") == TAG.sub("", text)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("<voice_1>: it rains", "An unnamed speaker: it rains"),
        ("then <face_12> waves", "then an unnamed person waves"),
        ("<character_3> and <voice_0>", "Person 3 and an unnamed speaker"),
        (
            "<face_1> gives <face_2> what <face_1> had of <face_2>",
            "An unnamed person gives another unnamed person what the unnamed person had of "
            "the other unnamed person",
        ),
        (
            "<voice_1> asks <voice_2> and <voice_3>. <voice_3> asks <voice_1>",
            "An unnamed speaker asks another unnamed speaker and another unnamed speaker. "
            "The third unnamed speaker asks the first unnamed speaker",
        ),
        ("1 < 2 <b> <voice_x> <clip_1>", "1 < 2 <b> <voice_x> <clip_1>"),
        ("Ann waves", "Ann waves"),
    ],
)
def test_people_without_a_name_are_reported_in_words(text: str, output: str) -> None:
    assert tags_in_words(text) == output


@given(st.lists(st.sampled_from(["<face_1>", "<voice_22>", "<", ">", "face_1", "é "])).map("".join))
def test_no_tag_is_left_in_words_nor_in_what_was_said(text: str) -> None:
    assert not TAG.search(tags_in_words(text))
    assert not TAG.search(escape_tags(text))
    assert escape_tags(text).replace("‹", "<").replace("›", ">") == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is Ada.", "Ada"),
        ("Hello everyone, my name's Omar Haddad and I work here.", "Omar Haddad"),
        ("Hi, I'm Jeff Steen, and this is Boulder Eats.", "Jeff Steen"),
        ("I am Grace M. Hopper.", "Grace M. Hopper"),
        ("This is Mary McDonald reporting from Rome.", "Mary McDonald"),
        ("Hi, I’m Zoë.", "Zoë"),
        ("I'm sorry.", None),
        ("I'm Sorry.", None),
        ("I'm American.", None),
        ("I'm going home.", None),
        ("She said I'm Batman and left.", None),
        ("This is Google.", None),
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
        ("Annual Report 2024", "by the director", False),
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
    assert not plate_of(NAME, TITLE, text_at(6, "Ada Ferrari"), text_at(6, "Designer", row=1))


# Which characters may be the same person.


SAME = {FACE: 0.3, VOICE: 0.4}


def alike(people: Mapping[int, Exemplars], most: int | None = None) -> list[LikelySame[int]]:
    return likely_same.similar_people(people, SAME, most)


def at(degrees: float, size: int = 3) -> list[float]:
    angle = np.deg2rad(degrees)
    return [float(np.cos(angle)), float(np.sin(angle)), *[0.0] * (size - 2)]


def faces(**degrees: float) -> dict[int, Exemplars]:
    return {int(name[1:]): {FACE: [at(angle)]} for name, angle in degrees.items()}


def test_the_most_alike_come_first() -> None:
    found = alike(faces(p1=0, p2=40, p3=70))
    assert [(a.one, a.other) for a in found] == [(2, 3), (1, 2), (1, 3)]
    assert found[0].cosine == pytest.approx(np.cos(np.deg2rad(30)))


@pytest.mark.parametrize(
    ("cosine", "offered"), [(0.18, False), (0.25, False), (0.29, False), (0.31, True), (0.9, True)]
)
def test_a_pair_is_offered_from_the_models_own_threshold_on(cosine: float, offered: bool) -> None:
    pair = faces(p1=0, p2=float(np.rad2deg(np.arccos(cosine))))
    assert bool(alike(pair)) is offered
    assert alike(pair) == likely_same.similar_people(pair, {FACE: 0.3})


def test_a_pair_is_named_once_for_what_is_most_alike_by_its_own_measure() -> None:
    (found,) = alike({1: {FACE: [at(0)], VOICE: [at(0)]}, 2: {FACE: [at(50)], VOICE: [at(45)]}})
    assert found.kind == FACE
    assert found.cosine / SAME[FACE] > np.cos(np.deg2rad(45)) / SAME[VOICE]


@given(st.dictionaries(st.integers(0, 9), st.floats(0, 360), max_size=6))
def test_pairs_are_of_known_people_in_order_and_close_enough(angles: dict[int, float]) -> None:
    found = alike({n: {FACE: [at(angle)]} for n, angle in angles.items()})
    assert [a.cosine for a in found] == sorted((a.cosine for a in found), reverse=True)
    for one in found:
        assert one.one < one.other
        assert one.cosine >= MIN_COSINE_SHARE * SAME[FACE]
        assert {one.one, one.other} <= angles.keys()


@given(st.lists(st.tuples(st.floats(0, 90), st.floats(0, 90)), max_size=6), st.integers(0, 8))
def test_the_best_few_are_the_first_of_all(angles: list[tuple[float, float]], most: int) -> None:
    people: dict[int, Exemplars] = {
        n: {FACE: [at(face)], VOICE: [at(voice)]} for n, (face, voice) in enumerate(angles)
    }
    assert alike(people, most) == alike(people)[:most]
