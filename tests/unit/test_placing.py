"""What people say, laid over what was learned: pure, and the same whenever it was said."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind
from domain.people import CorrectedCharacter, Correction, CorrectionKind, Identity
from people.characters import ClipPeople
from people.placing import InForce, in_force, memberships, nameless
from retrieval.people_in_query import view_people, with_current_names
from store.queries.characters import CharacterAt, StatedSupport, characters_of_rows

FACES, VOICES = range(1, 5), range(5, 9)
"""Identity rows; each began as the character of the number one below."""


@dataclass(frozen=True)
class Story:
    """What a machine learned: names by identity, and statements in order of clips."""

    names: dict[int, str]
    stated: tuple[StatedSupport, ...] = ()


def identity(row: int) -> Identity:
    face = row in FACES
    kind = IdentityKind.FACE if face else IdentityKind.VOICE
    number = row - (1 if face else 5)
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
    stated = sorted(story.stated, key=lambda one: (one.voice, one.clip))
    now = memberships(EVERYBODY, stated, truth)
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
    (
        StatedSupport(0, 1, 5, 6.0),
        StatedSupport(1, 2, 6, 3.0),
        StatedSupport(2, 3, 6, 3.0),
    ),
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
    rows = tuple(StatedSupport(n, f, v, s) for n, (f, v, s) in enumerate(stated))
    story = Story({1: "Ada", 6: "Omar"}, rows)
    made: list[Correction] = []
    for act in acts:
        made += done(story, made, *act)
        for at in (clip, 99):
            consistent(laid_over(story, *made, clip=at))
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
        CorrectedCharacter(number=number, members=tuple(identity(row).tag for row in rows))
        for number, rows in parts
    ]
    return [output(*outcomes, numbers=tuple(numbers), number=len(made) + 1)]


def consistent(found: list[CharacterAt]) -> None:
    assert sorted(row for one in found for row in one.members) == [*FACES, *VOICES]
    numbers = [one.character.number for one in found]
    assert numbers == sorted(set(numbers))
    assert all(one.character.number + 1 in one.members for one in found)
