"""What people say, laid over what was learned: pure, and the same whenever it was said."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind
from domain.people import Character, CorrectedCharacter, Correction, CorrectionKind
from people.characters import ClipPeople
from people.overlay import LearnedPeople, Overlay, apply_overlay, are_distinct, overlay_of
from retrieval.people_in_query import view_people, with_current_names
from store.queries.characters import CharacterAt, Name, preferred_name
from store.queries.corrections import LearnedName, Origin, StatedSupport

FACES, VOICES = range(1, 5), range(5, 9)
"""Identity rows; each began as the character of the number one below."""


@dataclass(frozen=True)
class Story:
    """What a machine learned: names by identity, and statements in order of clips."""

    names: dict[int, str]
    stated: tuple[StatedSupport, ...] = ()


def origin(row: int) -> Origin:
    face = row in FACES
    kind = IdentityKind.FACE if face else IdentityKind.VOICE
    return Origin(row, kind, row - (1 if face else 5), 0, 100 + row, row - 1)


def learned(story: Story, clip: int = 99) -> LearnedPeople:
    """As the machine would have it: each voice is where its statements last put it."""
    stated = [one for one in story.stated if one.clip <= clip]
    plain = Overlay(names={-1: ("nobody",)})
    alone = [_character(row - 1, [row], story) for row in (*FACES, *VOICES)]
    names = [LearnedName(row, Name(text, "said", 0)) for row, text in story.names.items()]
    origins = {row: origin(row) for row in (*FACES, *VOICES)}
    everyone = LearnedPeople(alone, origins, names, stated)
    marked = Overlay(names=plain.names | {row - 1: () for row in VOICES})
    return LearnedPeople(apply_overlay(everyone, marked), origins, names, stated)


def _character(number: int, rows: list[int], story: Story) -> CharacterAt:
    names = tuple(Name(story.names[row], "said", 0) for row in rows if row in story.names)
    character = Character(
        number=number,
        name=preferred_name(names),
        faces=tuple(row - 1 for row in rows if row in FACES),
        voices=tuple(row - 5 for row in rows if row in VOICES),
    )
    return CharacterAt(101 + number, character, tuple(rows), names, 0)


def output(
    *outcomes: CorrectedCharacter, numbers: tuple[int, ...] = (), number: int = 1
) -> Correction:
    return Correction(
        number=number,
        kind=CorrectionKind.MERGE,
        told="",
        numbers=numbers,
        outcomes=outcomes,
    )


def laid_over(story: Story, *corrections: Correction, clip: int = 99) -> list[CharacterAt]:
    truth = overlay_of(corrections)
    assert truth is not None
    return apply_overlay(learned(story, clip), truth)


STORY = Story(
    {1: "Ada", 5: "Ada", 6: "Omar"},
    (
        StatedSupport(0, 1, 5, 0, 6.0),
        StatedSupport(1, 2, 6, 1, 3.0),
        StatedSupport(2, 3, 6, 2, 3.0),
    ),
)


def shown(found: list[CharacterAt]) -> dict[int, tuple[str | None, tuple[int, ...]]]:
    return {one.character.number: (one.character.name, one.members) for one in found}


def test_the_story_is_learned_as_a_machine_would() -> None:
    assert shown(list(learned(STORY).characters))[0] == ("Ada", (1, 5))
    assert shown(list(learned(STORY).characters))[5] == ("Omar", (6,))


def test_nothing_said_is_no_truth_and_undone_corrections_say_nothing() -> None:
    one = output(CorrectedCharacter(number=0, names=("Grace",)))
    assert overlay_of([]) is None
    assert overlay_of([one.model_copy(update={"undone": True})]) is None


def test_faces_that_are_one_share_what_was_stated_of_their_voice() -> None:
    merged = output(CorrectedCharacter(number=1, members=("<face_1>", "<face_2>")), numbers=(1, 2))
    assert shown(laid_over(STORY, merged))[1] == ("Omar", (2, 3, 6))
    assert shown(laid_over(STORY, merged, clip=1))[1] == (None, (2, 3))


def test_the_latest_word_counts() -> None:
    one = output(CorrectedCharacter(number=0, names=("Grace",)), numbers=(0,))
    other = output(CorrectedCharacter(number=0, names=("Ruth",)), numbers=(0,), number=2)
    for order in ([one, other], [other, one]):
        assert shown(laid_over(STORY, *order))[0][0] == "Ruth"


def two(one: str, other: str, number: int = 1) -> Correction:
    """Those with these tags are two people."""
    said = output(
        CorrectedCharacter(number=0, members=(one,), others=(other,)),
        CorrectedCharacter(number=0, members=(other,), others=(one,)),
        number=number,
    )
    return said.model_copy(update={"kind": CorrectionKind.APART})


def test_those_who_are_two_are_not_joined_whatever_is_learned() -> None:
    apart = two("<face_0>", "<voice_0>")
    found = shown(laid_over(STORY, apart))
    assert (found[0], found[4]) == (("Ada", (1,)), ("Ada", (5,)))
    assert found[5] == shown(list(learned(STORY).characters))[5]
    elsewhere = two("<face_3>", "<voice_0>")
    assert shown(laid_over(STORY, elsewhere))[0] == ("Ada", (1, 5))


def test_who_is_stored_apart_from_one_face_may_be_joined_to_another() -> None:
    """The voice that was thought to be of two faces belongs to the other one then."""
    merged = output(CorrectedCharacter(number=1, members=("<face_1>", "<face_2>")), numbers=(1, 2))
    assert shown(laid_over(STORY, merged, two("<voice_1>", "<face_2>", 2)))[1] == (None, (2, 3))
    assert shown(laid_over(STORY, merged, two("<voice_1>", "<face_0>", 2)))[1][1] == (2, 3, 6)


def test_a_later_word_that_they_are_one_counts_and_names_stay() -> None:
    named = output(CorrectedCharacter(number=0, names=("Grace",)), numbers=(0,))
    joined = output(
        CorrectedCharacter(number=0, members=("<face_0>", "<voice_0>")), numbers=(0, 4), number=3
    )
    every = (named, two("<face_0>", "<voice_0>", 2))
    assert shown(laid_over(STORY, *every))[0] == ("Grace", (1,))
    assert shown(laid_over(STORY, *every, joined))[0][1] == (1, 5)


def test_two_are_apart_by_any_of_their_tags_and_both_ways() -> None:
    truth = overlay_of([two("<face_0>", "<face_1>")])
    assert truth is not None
    assert are_distinct(truth, ["<voice_9>", "<face_0>"], ["<face_1>"])
    assert are_distinct(truth, ["<face_1>"], ["<face_0>", "<voice_3>"])
    assert not are_distinct(truth, ["<face_0>"], ["<face_2>"])
    assert not are_distinct(Overlay(), ["<face_0>"], ["<face_1>"])


def test_a_voice_and_a_face_of_different_names_are_not_joined() -> None:
    voice_named = output(CorrectedCharacter(number=4, names=("Ruth",)), numbers=(4,))
    face_named = output(CorrectedCharacter(number=0, names=("Grace",)), numbers=(0,), number=2)
    same = output(CorrectedCharacter(number=0, names=("ruth",)), numbers=(0,), number=2)
    assert shown(laid_over(STORY, voice_named))[0] == ("Ruth", (1, 5))
    assert shown(laid_over(STORY, voice_named, same))[0] == ("ruth", (1, 5))
    apart = shown(laid_over(STORY, voice_named, face_named))
    assert (apart[0], apart[4]) == (("Grace", (1,)), ("Ruth", (5,)))


def test_a_correction_about_all_of_a_person_replaces_what_was_said_of_its_parts() -> None:
    voice_named = output(CorrectedCharacter(number=4, names=("Ruth",)), numbers=(4,))
    named = output(CorrectedCharacter(number=0, names=("Grace",)), numbers=(0, 4), number=2)
    assert shown(laid_over(STORY, voice_named, named))[0] == ("Grace", (1, 5))


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


@pytest.mark.parametrize("clip", [0, 1, 2])
def test_characters_that_nobody_spoke_of_stay_as_they_were_learned(clip: int) -> None:
    with_current_names = output(CorrectedCharacter(number=0, names=("Grace",)), numbers=(0,))
    before = {one.id: one for one in learned(STORY, clip).characters}
    after = laid_over(STORY, with_current_names, clip=clip)
    assert [one for one in after if one.character.number != 0] == [
        one for row, one in before.items() if one.character.number != 0
    ]


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
    rows = tuple(StatedSupport(n, f, v, f - 1, s) for n, (f, v, s) in enumerate(stated))
    story = Story({1: "Ada", 6: "Omar"}, rows)
    made: list[Correction] = []
    for act in acts:
        made += done(story, made, *act)
        for at in (clip, 99):
            found = laid_over(story, *made, clip=at) if made else []
            consistent(found) if made else None
        if made and made[-1].outcomes[0].members:
            now = {one.character.number: one for one in laid_over(story, *made)}
            for outcome in made[-1].outcomes:
                tags = {origin(row).tag for row in now[outcome.number].members}
                assert set(outcome.members) <= tags


def done(
    story: Story, made: list[Correction], merging: bool, one: int, other: int, which: int
) -> list[Correction]:
    """The next correction: two are one, or some of one are somebody else."""
    people = laid_over(story, *made) if made else list(learned(story).characters)
    first, second = people[one % len(people)], people[other % len(people)]
    if merging and first.id != second.id:
        rows = [*second.members, *first.members]
        parts = [(second.character.number, rows)]
        numbers = [row - 1 for row in rows]
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
        CorrectedCharacter(number=number, members=tuple(origin(row).tag for row in rows))
        for number, rows in parts
    ]
    return [output(*outcomes, numbers=tuple(numbers), number=len(made) + 1)]


def consistent(found: list[CharacterAt]) -> None:
    assert sorted(row for one in found for row in one.members) == [*FACES, *VOICES]
    numbers = [one.character.number for one in found]
    assert numbers == sorted(set(numbers))
    assert all(one.character.number + 1 in one.members for one in found)
    assert all(one.id == 101 + one.character.number for one in found)
