"""Who a tag stands for, what it is called, and how lines are told with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.people import TAG, Character, Identity, escape_tags, tags_in_words
from people.characters import ClipPeople
from people.names import format_clip, format_line, search_text
from tests.support.memory import span

FACE, VOICE = IdentityKind.FACE, IdentityKind.VOICE


def one(kind: IdentityKind, number: int) -> Identity:
    return Identity(id=10 * number + (kind == VOICE) + 1, kind=kind, number=number, first_clip=0)


ADA = Character(number=0, name="Ada", faces=(1, 4), voices=(2,))
NOBODY = Character(number=1, faces=(3,))
PEOPLE = ClipPeople(
    faces={0: one(FACE, 3), 1: one(FACE, 1)},
    voices={0: one(VOICE, 2)},
    speakers={"Jake": one(VOICE, 7)},
    characters=(ADA, NOBODY),
)


def draft(text: str, source: MemorySource = MemorySource.SAID, **more: object) -> MemoryDraft:
    values = {"kind": MemoryKind.EPISODIC, "text": text, "span": span(0, 1), "source": source}
    return MemoryDraft.model_validate({**values, **more})


def test_everybody_of_the_clip_is_listed_once_faces_first() -> None:
    assert list(PEOPLE.identities()) == ["<face_1>", "<face_3>", "<voice_2>", "<voice_7>"]
    assert PEOPLE.tags() == {*PEOPLE.identities(), "<character_0>", "<character_1>"}
    assert ClipPeople().tags() == frozenset()


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
        ("<voice_2>", "Ada"),
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


def test_what_is_searched_has_names_and_no_tags_of_speakers() -> None:
    assert search_text(draft("Hi <face_3>", speaker="<voice_2>"), PEOPLE) == "Ada: Hi <face_3>"
    assert search_text(draft("Hi.", speaker="<voice_9>"), PEOPLE) == "Hi."
    assert search_text(draft("EXIT", MemorySource.READ), PEOPLE) == "EXIT"


TEXTS = st.text(alphabet=st.sampled_from("ab <>_/\\1234"), max_size=30) | st.sampled_from(
    ["<face_1> and <face_3>", "<character_0>!", "<<face_1>>", "<face_1", "<Face_1>"]
)


@given(TEXTS)
def test_names_replace_known_tags_only_and_leave_the_rest(text: str) -> None:
    named = PEOPLE.replace_tags(text)
    known = [found[0] for found in TAG.finditer(text) if PEOPLE.label(found[0]) != found[0]]
    assert named.count("Ada") == text.count("Ada") + len(known)
    assert ClipPeople().replace_tags(text) == text
    assert TAG.sub("", PEOPLE.replace_tags(text)).replace("Ada", "") == TAG.sub("", text)


@given(TEXTS)
def test_foreign_words_hold_no_tag_and_tags_in_words_are_readable(text: str) -> None:
    assert not TAG.search(escape_tags(text))
    assert len(escape_tags(text)) == len(text)
    assert not TAG.search(tags_in_words(text))
    assert escape_tags(escape_tags(text)) == escape_tags(text)


@given(st.lists(st.sampled_from(["a", "b c", "<face_1>"]), max_size=5))
def test_a_clips_text_is_its_lines_one_a_line(texts: list[str]) -> None:
    drafts = [draft(text) for text in texts]
    assert format_clip(drafts, PEOPLE).split("\n") == (
        [format_line(d, PEOPLE) for d in drafts] or [""]
    )
