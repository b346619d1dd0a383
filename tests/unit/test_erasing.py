"""What people say of people: laid over what was learned, and erased with every trace."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind
from domain.people import (
    CorrectedCharacter,
    Correction,
    CorrectionKind,
    Identity,
    IdentityStatement,
)
from memory.delete_span import contains_any, exclusive_words, flatten_text, quotes_any
from people.characters import ClipPeople, InForce, in_force, memberships, nameless
from people.names import NameEraser
from retrieval.people_in_query import view_people, with_current_names
from store.queries.characters import CharacterAt, characters_of_rows

ADA = NameEraser(["<face_1>", "<voice_12>"], ["Ada Lovelace", "Dr. Ada"], ["Omar Byron"])
GONE = ["Ann hides the ruby in the piano", "the code is Nightingale"]
WORDS = st.lists(st.sampled_from(["ruby", "piano", "gate", "code", "garden", "Ann"]), max_size=6)
SHA = "0123456789abcdef" * 4
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abcde ", max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("xyz", max_size=3), inner),
    max_leaves=12,
)
FACES, VOICES = range(1, 5), range(5, 9)
"""Identity rows; each began as the character of the number one below."""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<face_1> and <face_11> are on screen", "somebody and <face_11> are on screen"),
        ("‹voice_12› spoke, voice_1 did not", "somebody spoke, voice_1 did not"),
        ("ADA LOVELACE / Professor", "somebody / Professor"),
        ("ada lovelace's boats", "somebody's boats"),
        ("Ada met Mrs. Lovelace.", "somebody met Mrs. somebody."),
        ("Dr. Ada opens", "somebody opens"),
        ("The adage of Adaline in Lovelaceville", "The adage of Adaline in Lovelaceville"),
        ("Omar Byron laughs", "Omar Byron laughs"),
    ],
)
def test_names_and_tags_are_replaced_and_nothing_else(text: str, left: str) -> None:
    assert ADA.erase(text) == left


def test_a_name_that_others_bear_too_is_theirs() -> None:
    shared = NameEraser([], ["Ada Byron", "Omar"], ["Omar", "Lord Byron"])
    found = shared.erase("Ada Byron and Omar and Byron and Ada")
    assert found == "somebody and Omar and Byron and somebody"


def test_a_name_of_common_words_is_erased_only_where_it_is_written_as_a_name() -> None:
    found = NameEraser([], ["Rose Will"], []).erase("Rose rose at dawn; will Will come?")
    assert found == "somebody rose at dawn; will somebody come?"


def test_nobody_to_erase_changes_nothing() -> None:
    assert NameEraser([], [], []).erase("Ada was here") == "Ada was here"
    assert NameEraser(["<face_0>"], [], []).erase("Ada was here") == "Ada was here"


def test_every_text_of_a_json_value_is_erased() -> None:
    value = {"label": "Ada speaks", "clips": [1, 2], "steps": [{"text": "of Ada", "none": None}]}
    assert ADA.erase_json(value) == {
        "label": "somebody speaks",
        "clips": [1, 2],
        "steps": [{"text": "of somebody", "none": None}],
    }


@given(
    st.text("Aadel <>_face1voic2LOV.'", max_size=60),
    st.sampled_from(["Ada", "<face_1>", "ADA LOVELACE"]),
)
def test_whatever_surrounds_a_trace_none_is_left(around: str, trace: str) -> None:
    erased = ADA.erase(f"{around} {trace} {around}")
    assert not re.search(r"(?<!\w)(?:Ada|Lovelace|face_1|voice_12)(?!\w)", erased)
    assert ADA.erase(erased) == erased


@given(st.text(max_size=80))
def test_a_text_without_any_needle_stays_as_it_is(text: str) -> None:
    if not any(needle.casefold() in text.casefold() for needle in ADA.search_terms):
        assert ADA.erase(text) == text


def test_only_what_nothing_else_has_is_telling() -> None:
    found = exclusive_words(GONE, ["Ann plays the piano", "a code of laws"])
    assert found == {"hides", "ruby", "nightingale"}


@given(WORDS, WORDS)
def test_it_is_what_was_said_nowhere_else(gone: list[str], elsewhere: list[str]) -> None:
    found = exclusive_words([" ".join(gone)], [" ".join(elsewhere)])
    assert found == {one.lower() for one in gone} - {one.lower() for one in elsewhere}


@given(WORDS, WORDS)
def test_however_the_texts_are_cut_up_it_is_the_same(gone: list[str], elsewhere: list[str]) -> None:
    assert exclusive_words(gone, elsewhere) == exclusive_words(
        [" ".join(gone)], [" ".join(elsewhere)]
    )


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("She spoke of a ruby.", True),
        ("RUBY!", True),
        ("the ruby's glow", True),
        ("rubies", False),
        ("a rubyish red", False),
        ("", False),
    ],
)
def test_a_text_betrays_by_whole_words_in_any_case(text: str, output: bool) -> None:
    assert contains_any(text, {"ruby"}) is output


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("as seen in m12", True),
        ("m12,s3", True),
        ("m123", False),
        ("m1", False),
        ("am12", False),
        ("M12", False),
        (f"image {SHA}", True),
        (f"image {SHA}0", False),
    ],
)
def test_a_text_quotes_by_whole_references(text: str, output: bool) -> None:
    assert quotes_any(text, (), {"m12", SHA}) is output


def test_all_texts_of_a_value_are_looked_through_however_deep() -> None:
    value = {"a": ["one", {"b": ("two", 3, None, True)}], "key ruby": 1.5, "c": {"d": []}}
    assert [one for one in flatten_text(value).split("\n") if one] == ["one", "two"]
    assert not contains_any(flatten_text(value), {"ruby"})


@given(JSON)
def test_no_word_of_a_value_is_missed(value: object) -> None:
    output = flatten_text(value)

    def check(one: object) -> None:
        match one:
            case str():
                assert one in output
            case list():
                list(map(check, one))
            case dict():
                list(map(check, one.values()))

    check(json.loads(json.dumps(value)))


@dataclass(frozen=True)
class Story:
    """What a machine learned: names by identity, and statements in order of clips."""

    names: dict[int, str]
    stated: tuple[IdentityStatement, ...] = ()


def statement(clip: int, face: int, voice: int, support: float) -> IdentityStatement:
    return IdentityStatement(clip=clip, face=face, voice=voice, support=support)


def identity(row: int) -> Identity:
    face = row in FACES
    kind, number = IdentityKind.FACE if face else IdentityKind.VOICE, row - (1 if face else 5)
    return Identity(id=row, kind=kind, number=number, first_clip=0, character=row - 1)


EVERYBODY = [identity(row) for row in (*FACES, *VOICES)]


def output(
    *outcomes: CorrectedCharacter, numbers: tuple[int, ...] = (), number: int = 1
) -> Correction:
    return Correction(
        number=number, kind=CorrectionKind.MERGE, told="", numbers=numbers, outcomes=outcomes
    )


def laid_over(story: Story, *corrections: Correction, clip: int = 99) -> list[CharacterAt]:
    truth = in_force(corrections)
    now = memberships(EVERYBODY, sorted(story.stated, key=lambda one: (one.voice, one.clip)), truth)
    ignored = nameless(EVERYBODY, now, truth)
    valid = [m for m in now if m.from_clip <= clip and (m.to_clip is None or m.to_clip > clip)]
    members = sorted(
        ("v", m.number, one.id, str(one.kind), one.number, one.character, 0)
        for m in valid
        for one in (identity(m.identity),)
    )
    names: list[tuple[object, ...]] = [
        ("v", None, n, name, "person", 0, False)
        for n, one in truth.names.items()
        for name in one.names
    ]
    for row, name in story.names.items():
        names.append(("v", row, None, name, "said", 0, row in ignored))
    return characters_of_rows(members, names)["v"]


STORY = Story(
    {1: "Ada", 5: "Ada", 6: "Omar"},
    (statement(0, 1, 5, 6.0), statement(1, 2, 6, 3.0), statement(2, 3, 6, 3.0)),
)


def shown(found: list[CharacterAt]) -> dict[int, tuple[str | None, tuple[int, ...]]]:
    return {one.character.number: (one.character.name, one.members) for one in found}


def two(one: str, other: str, number: int = 1) -> Correction:
    """Those with these tags are two people."""
    said = output(
        CorrectedCharacter(number=0, members=(one,), others=(other,)),
        CorrectedCharacter(number=0, members=(other,), others=(one,)),
        number=number,
    )
    return said.model_copy(update={"kind": CorrectionKind.APART})


def test_who_is_stored_apart_from_one_face_may_be_joined_to_another() -> None:
    """The voice that was thought to be of two faces belongs to the other one then."""
    merged = output(CorrectedCharacter(number=1, members=("<face_1>", "<face_2>")), numbers=(1, 2))
    assert shown(laid_over(STORY, merged, two("<voice_1>", "<face_2>", 2)))[1] == (None, (2, 3))
    assert shown(laid_over(STORY, merged, two("<voice_1>", "<face_0>", 2)))[1][1] == (2, 3, 6)


def test_two_are_apart_by_any_of_their_tags_and_both_ways() -> None:
    truth = in_force([two("<face_0>", "<face_1>")])
    assert truth.are_distinct(["<voice_9>", "<face_0>"], ["<face_1>"])
    assert truth.are_distinct(["<face_1>"], ["<face_0>", "<voice_3>"])
    assert not truth.are_distinct(["<face_0>"], ["<face_2>"])
    assert not InForce().are_distinct(["<face_0>"], ["<face_1>"])


def test_who_has_no_name_gets_none_from_a_voice_that_joins_later() -> None:
    nameless = output(CorrectedCharacter(number=0, nameless=("<face_0>",)), numbers=(0,))
    found = laid_over(STORY, nameless)[0]
    assert (found.character.name, found.members) == (None, (1, 5))
    assert found.character.aliases == ("Ada",)
    assert (
        ClipPeople(characters=(found.character,)).update_names("Ada waves") == "<character_0> waves"
    )


def test_names_set_aside_are_reported_so_that_old_texts_can_be_read_anew() -> None:
    found = laid_over(STORY, output(CorrectedCharacter(number=0, names=("Grace",)), numbers=(0,)))
    people = ClipPeople(characters=tuple(one.character for one in found))
    assert found[0].character.aliases == ("Ada",)
    text = "<face_0> says her name is Ada. Ada's boats; Adam."
    assert people.update_names(text) == "Grace says her name is Ada. Grace's boats; Adam."
    names = view_people({"v": people.characters}).names("v")
    assert with_current_names(text, names) == people.update_names(text)
    assert people.label("Ada") == "Grace"
    assert people.label("Omar") == "Omar"


def test_a_name_that_is_part_of_its_replacement_is_replaced_once() -> None:
    found = laid_over(
        STORY, output(CorrectedCharacter(number=0, names=("Ada Byron",)), numbers=(0,))
    )
    people = ClipPeople(characters=tuple(one.character for one in found))
    assert (
        people.update_names("Ada waves. Ada Byron laughs.") == "Ada Byron waves. Ada Byron laughs."
    )
    known = view_people({"v": people.characters})
    assert known.with_former_names("Does Ada Byron laugh? Does Ada?") == "Does Ada laugh? Does Ada?"


def test_a_question_with_a_given_name_finds_what_was_written_under_the_former_one() -> None:
    found = laid_over(
        STORY, output(CorrectedCharacter(number=0, names=("Grace Hill",)), numbers=(0,))
    )
    known = view_people({"v": [one.character for one in found]})
    assert known.with_former_names("What did Grace Hill say?") == "What did Ada say?"
    assert "ada" in known.terms_of("the boats of Grace Hill")
    assert "ada" not in known.terms_of("the boats of Omar")


def test_a_name_that_somebody_else_goes_by_is_not_taken_for_a_former_one() -> None:
    apart = output(
        CorrectedCharacter(number=0, members=("<face_0>",), names=("Grace",)),
        CorrectedCharacter(number=4, members=("<voice_0>",)),
        numbers=(0, 4),
    )
    found = {one.character.number: one.character for one in laid_over(STORY, apart)}
    assert (found[0].name, found[4].name) == ("Grace", "Ada")
    assert found[0].aliases == ()


STATED = st.lists(
    st.builds(
        lambda face, voice, support: (face, voice, support),
        st.sampled_from(FACES),
        st.sampled_from(VOICES),
        st.sampled_from((1.0, 3.0, 5.0, 9.0)),
    ),
    max_size=8,
)
ACTS = st.lists(st.tuples(st.booleans(), st.integers(0, 7), st.integers(0, 7), st.integers(0, 255)))


@given(STATED, ACTS, st.integers(0, 8))
def test_whoever_is_joined_and_parted_everybody_is_one_and_numbers_keep_their_meaning(
    stated: list[tuple[int, int, float]], acts: list[tuple[bool, int, int, int]], clip: int
) -> None:
    rows = tuple(statement(n, f, v, s) for n, (f, v, s) in enumerate(stated))
    story = Story({1: "Ada", 6: "Omar"}, rows)
    made: list[Correction] = []
    for act in acts:
        made += done(story, made, *act)
        for at in (clip, 99):
            found = laid_over(story, *made, clip=at)
            assert sorted(row for one in found for row in one.members) == [*FACES, *VOICES]
            numbers = [one.character.number for one in found]
            assert numbers == sorted(set(numbers))
            assert all(one.character.number + 1 in one.members for one in found)
        if made and made[-1].outcomes[0].members:
            now = {one.character.number: one for one in laid_over(story, *made)}
            for outcome in made[-1].outcomes:
                tags = {identity(row).tag for row in now[outcome.number].members}
                assert set(outcome.members) <= tags


def done(
    story: Story, made: list[Correction], merging: bool, one: int, other: int, which: int
) -> list[Correction]:
    """The next correction: two are one, or some of one are somebody else."""
    people = laid_over(story, *made)
    first, second = people[one % len(people)], people[other % len(people)]
    if merging and first.members != second.members:
        rows = [*second.members, *first.members]
        parts, numbers = [(second.character.number, rows)], [row - 1 for row in rows]
    else:
        gone = [row for n, row in enumerate(first.members) if which >> n & 1]
        rest = [row for row in first.members if row not in gone]
        if not gone or not rest:
            return []
        number = first.character.number
        holds = number + 1 in gone
        spare = min(rest if holds else gone) - 1
        parts = [(number if holds else spare, gone), (spare if holds else number, rest)]
        numbers = [row - 1 for row in first.members]
    outcomes = [
        CorrectedCharacter(number=number, members=tuple(identity(row).tag for row in rows))
        for number, rows in parts
    ]
    return [output(*outcomes, numbers=tuple(numbers), number=len(made) + 1)]
