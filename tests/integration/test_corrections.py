"""What a person says about who is who holds, whatever is watched later, and can be taken back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from domain.errors import Ambiguous, InputError, NotFound
from domain.media import Percept
from domain.people import Correction
from library.memory import dump_lines, show_video
from library.people import people_of_video
from people.across_videos import rename
from people.corrections import history, keep_apart, merge, split, undo
from store.database import Store
from store.queries.characters import characters_at
from store.queries.percepts import lock_video
from tests.support.library_templates import FilledLibraries
from tests.support.memory import VIDEO, face, known_video, memorise, percept, said, voice
from tests.support.several_videos import list_people

Person = tuple[int, str | None, tuple[int, ...], tuple[int, ...]]
Act = Callable[[Store], Correction]


def people(store: Store, clip: int = 99) -> list[Person]:
    with store.begin() as session:
        found = [one.character for one in characters_at(session, VIDEO, clip)]
    return [(one.number, one.name, one.faces, one.voices) for one in found]


def dumped(store: Store) -> list[str]:
    return list(dump_lines(store, VIDEO))


def learned(store: Store) -> list[str]:
    """All of the dump but the corrections."""
    return [line for line in dumped(store) if '"row":"correction"' not in line]


def speaks(clip: int, who: int, words: str, seconds: float = 6) -> Percept:
    """Somebody speaks, and nobody is in view."""
    start = 30 * clip
    return percept(
        clip,
        voices=(voice(0, who, (start, start + seconds)),),
        utterances=(said(start, words, voice=0, seconds=seconds),),
    )


def talks(clip: int, who: int, speaker: int, words: str, seconds: float = 6) -> Percept:
    """A face in view while a voice speaks: support for the one being the other."""
    start = 30 * clip
    return speaks(clip, speaker, words, seconds).model_copy(
        update={"faces": (face(0, who, (start, start + seconds)),)}
    )


def appears(clip: int, *who: int) -> Percept:
    start = 30 * clip
    return percept(clip, faces=tuple(face(n, one, (start, start + 2)) for n, one in enumerate(who)))


@pytest.fixture
def talk(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, watch_talk)
    return store


def watch_talk(store: Store) -> None:
    """Character 0: face 0 with voice 0, Ada. Character 2: face 1. Character 3: voice 1, Omar."""
    known_video(store, 9)
    memorise(
        store, talks(0, 1, 1, "My name is Ada."), appears(1, 2), speaks(2, 2, "My name is Omar.")
    )
    assert people(store) == [(0, "Ada", (0,), (0,)), (2, None, (1,), ()), (3, "Omar", (), (1,))]


RENAMED: Act = lambda store: rename(store, VIDEO, "0", "Grace")  # noqa: E731
NAMELESS: Act = lambda store: rename(store, VIDEO, "Ada", "")  # noqa: E731
MERGED: Act = lambda store: merge(store, VIDEO, "3", "2")  # noqa: E731
SPLIT: Act = lambda store: split(store, VIDEO, "0", ["voice_0"], "Ruth")  # noqa: E731
ACTS = pytest.mark.parametrize(
    ("act", "after"),
    [
        (RENAMED, [(0, "Grace", (0,), (0,)), (2, None, (1,), ()), (3, "Omar", (), (1,))]),
        (NAMELESS, [(0, None, (0,), (0,)), (2, None, (1,), ()), (3, "Omar", (), (1,))]),
        (MERGED, [(0, "Ada", (0,), (0,)), (2, "Omar", (1,), (1,))]),
        (
            SPLIT,
            [
                (0, None, (0,), ()),
                (1, "Ruth", (), (0,)),
                (2, None, (1,), ()),
                (3, "Omar", (), (1,)),
            ],
        ),
    ],
    ids=["rename", "nameless", "merge", "split"],
)


@ACTS
def test_a_correction_holds_and_undone_is_equal(talk: Store, act: Act, after: list[Person]) -> None:
    before = dumped(talk)
    made = act(talk)
    assert people(talk) == after
    changed = set(dumped(talk)) ^ set(before)
    kinds = Counter(json.loads(line)["row"] for line in changed)
    assert kinds.pop("correction") == 1
    assert kinds.keys() <= {"character_member", "character_name"}
    assert (undo(talk, VIDEO), dumped(talk)) == (made.model_copy(update={"undone": True}), before)
    assert history(talk, VIDEO)[0].undone


@ACTS
def test_corrected_before_or_after_is_the_same(talk: Store, act: Act, after: list[Person]) -> None:
    rest = [
        talks(3, 2, 2, "I like boats.", 2),
        appears(4, 1, 2),
        talks(5, 1, 1, "My name is Adele.", 9),
        speaks(6, 3, "My name is Zoe."),
    ]
    act(talk)
    memorise(talk, *rest)
    early, written = people(talk), learned(talk)
    undo(talk, VIDEO)
    act(talk)
    assert (people(talk), learned(talk)) == (early, written)


@ACTS
def test_question_as_of_then_knows_correction(talk: Store, act: Act, after: list[Person]) -> None:
    act(talk)
    then = show_video(talk, VIDEO, as_of=30_000).people
    now = {one.number: one.label for one in show_video(talk, VIDEO).people}
    assert [(one.number, one.label) for one in then] == [
        (one.number, now[one.number]) for one in then
    ]
    assert {tag for one in then for tag in one.tags} == {"<face_0>", "<voice_0>"}


def test_a_name_of_a_person_stays_before_any_that_is_learned_later(talk: Store) -> None:
    rename(talk, VIDEO, "face_1", "Grace")
    memorise(talk, talks(3, 2, 3, "My name is Zoe.", 9))
    (shown,) = [one for one in show_video(talk, VIDEO).people if one.number == 2]
    assert shown.label == "Grace"
    assert [(n.name, n.source) for n in shown.names] == [("Grace", "person"), ("Zoe", "said")]
    assert show_video(talk, VIDEO).clips[3].lines[0].text.startswith("Grace: ")


def test_a_name_taken_away_does_not_come_back_with_a_voice_that_joins(talk: Store) -> None:
    memorise(talk, talks(3, 2, 3, "It is cold.", 2), speaks(4, 3, "My name is Zoe."))
    rename(talk, VIDEO, "face_1", "Zoe")
    rename(talk, VIDEO, "face_1", "")
    assert people(talk)[1] == (2, None, (1,), ())


def test_what_was_split_stays_apart_though_support_for_it_grows(talk: Store) -> None:
    split(talk, VIDEO, "Ada", ["<voice_0>"])
    memorise(talk, talks(3, 1, 1, "It is cold.", 20), talks(4, 1, 1, "It is late.", 20))
    assert people(talk)[:2] == [(0, None, (0,), ()), (1, "Ada", (), (0,))]


def test_what_was_merged_stays_so_though_the_machine_joins_one_elsewhere(talk: Store) -> None:
    merge(talk, VIDEO, "Omar", "face_1")
    memorise(talk, talks(3, 1, 2, "It is cold.", 20), talks(4, 1, 2, "It is late.", 20))
    assert people(talk) == [(0, "Ada", (0,), (0,)), (2, "Omar", (1,), (1,))]
    undo(talk, VIDEO)
    assert people(talk) == [(0, "Ada", (0,), (0, 1)), (2, None, (1,), ())]


def test_faces_that_were_merged_count_as_one_when_a_voice_is_looked_for(store: Store) -> None:
    known_video(store, 3)
    memorise(store, appears(0, 1, 2))
    merge(store, VIDEO, "1", "0")
    memorise(store, talks(1, 1, 5, "It is cold.", 3), talks(2, 2, 5, "It is late.", 3))
    assert people(store) == [(0, None, (0, 1), (0,))]
    assert people(store, 1) == [(0, None, (0, 1), ()), (2, None, (), (0,))]
    undo(store, VIDEO)
    assert people(store) == [(0, None, (0,), ()), (1, None, (1,), ()), (2, None, (), (0,))]


def test_a_voice_and_a_face_of_different_names_are_not_joined(talk: Store) -> None:
    rename(talk, VIDEO, "voice_1", "Ruth")
    rename(talk, VIDEO, "face_1", "Grace")
    memorise(talk, talks(3, 2, 2, "It is cold.", 20))
    assert people(talk)[1:] == [(2, "Grace", (1,), ()), (3, "Ruth", (), (1,))]
    undo(talk, VIDEO)
    assert people(talk)[1:] == [(2, "Ruth", (1,), (1,))]


def test_a_voice_that_a_person_named_brings_that_name_to_its_face(talk: Store) -> None:
    rename(talk, VIDEO, "voice_1", "Ruth")
    memorise(talk, talks(3, 2, 2, "It is cold.", 20))
    assert people(talk)[1:] == [(2, "Ruth", (1,), (1,))]
    rename(talk, VIDEO, "Ruth", "Grace")
    assert people(talk)[1:] == [(2, "Grace", (1,), (1,))]


def test_two_who_were_said_to_be_apart_are_not_joined_later(talk: Store) -> None:
    keep_apart(talk, VIDEO, "2", "3")
    memorise(talk, talks(3, 2, 2, "Hello again.", 20), talks(4, 2, 2, "And again.", 20))
    assert [one for one in people(talk) if one[0] in (2, 3)] == [
        (2, None, (1,), ()),
        (3, "Omar", (), (1,)),
    ]
    undo(talk, VIDEO)
    assert [one for one in people(talk) if one[0] in (2, 3)] == [(2, "Omar", (1,), (1,))]


def test_what_was_said_apart_stands_on_its_own(talk: Store) -> None:
    """A name is taken back whatever was said of its bearer since; a split is not."""
    rename(talk, VIDEO, "2", "Ruth")
    keep_apart(talk, VIDEO, "2", "3")
    assert undo(talk, VIDEO, 1).undone
    split(talk, VIDEO, "0", ["voice_0"])
    keep_apart(talk, VIDEO, "0", "voice_0")
    with pytest.raises(InputError, match="undo that first"):
        undo(talk, VIDEO, 3)
    assert [one.undone for one in history(talk, VIDEO)] == [True, False, False, False]


def test_who_was_said_apart_can_still_be_merged_and_parted_again(talk: Store) -> None:
    keep_apart(talk, VIDEO, "2", "3")
    merge(talk, VIDEO, "3", "2")
    assert [one for one in people(talk) if one[0] == 2] == [(2, "Omar", (1,), (1,))]
    undo(talk, VIDEO)
    with pytest.raises(InputError, match=r"person 2 and Omar \(person 3\) are two people already"):
        keep_apart(talk, VIDEO, "2", "3")


def test_numbers_come_back_to_those_they_began_with(talk: Store) -> None:
    merge(talk, VIDEO, "0", "3")
    assert people(talk) == [(2, None, (1,), ()), (3, "Ada", (0,), (0, 1))]
    split(talk, VIDEO, "3", ["face_0", "voice_0"])
    assert people(talk) == [(0, "Ada", (0,), (0,)), (2, None, (1,), ()), (3, "Omar", (), (1,))]


def test_the_name_a_person_gave_stays_with_those_that_are_not_split_off(talk: Store) -> None:
    rename(talk, VIDEO, "0", "Grace")
    split(talk, VIDEO, "Grace", ["face_0"])
    assert people(talk)[:2] == [(0, None, (0,), ()), (1, "Grace", (), (0,))]


def test_people_who_correct_at_once_wait_for_each_other(talk: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        names = ("Zoe", "Grace", "Ruth", "Omar")
        made = list(pool.map(lambda name: rename(talk, VIDEO, "2", name), names))
    assert sorted(one.number for one in made) == [1, 2, 3, 4]
    last = max(made, key=lambda one: one.number)
    assert people(talk)[1][1] == last.outcomes[0].names[0]


def test_a_correction_does_not_wait_for_a_clip_that_is_being_written(talk: Store) -> None:
    with talk.begin() as session:
        lock_video(session, VIDEO)
        assert rename(talk, VIDEO, "2", "Grace").number == 1


def test_a_correction_that_others_build_on_is_taken_back_after_them(talk: Store) -> None:
    rename(talk, VIDEO, "0", "Grace")
    rename(talk, VIDEO, "2", "Ruth")
    merge(talk, VIDEO, "3", "Grace")
    with pytest.raises(
        InputError,
        match=r"correction 3 \(Merged Omar \(person 3\) into Grace \(person 0\)\) builds on",
    ):
        undo(talk, VIDEO, 1)
    assert undo(talk, VIDEO, 2).number == 2
    assert [undo(talk, VIDEO).number, undo(talk, VIDEO).number] == [3, 1]
    with pytest.raises(NotFound, match="nothing to undo"):
        undo(talk, VIDEO)
    assert [(one.number, one.undone) for one in history(talk, VIDEO)] == [
        (1, True),
        (2, True),
        (3, True),
    ]
    assert rename(talk, VIDEO, "0", "Zoe").number == 4


@pytest.mark.parametrize(
    ("act", "error", "says"),
    [
        (lambda s: rename(s, VIDEO, "9", "X"), NotFound, "nobody goes by '9'.*homer people"),
        (lambda s: rename(s, VIDEO, "Bob", "X"), NotFound, "nobody goes by 'Bob'"),
        (lambda s: rename(s, VIDEO, "face_7", "X"), NotFound, "nobody goes by 'face_7'"),
        (lambda s: rename(s, VIDEO, "0", "x" * 201), InputError, "at most 200"),
        (lambda s: rename(s, VIDEO, "2", ""), InputError, "already"),
        (lambda s: merge(s, VIDEO, "0", "Ada"), InputError, "one already"),
        (lambda s: split(s, VIDEO, "0", ["voice_1"]), InputError, "no face or voice of '0'"),
        (lambda s: split(s, VIDEO, "0", []), InputError, "not none"),
        (lambda s: split(s, VIDEO, "0", ["face_0", "voice_0"]), InputError, "not all"),
        (lambda s: undo(s, VIDEO, 7), NotFound, "no correction 7"),
        (lambda s: list_people(s, "nothing"), NotFound, "no video"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_do(
    talk: Store, act: Act, error: type[Exception], says: str
) -> None:
    before = dumped(talk)
    with pytest.raises(error, match=says):
        act(talk)
    assert (dumped(talk), history(talk, VIDEO)) == (before, [])


def test_a_name_that_several_have_is_refused_with_their_numbers(talk: Store) -> None:
    rename(talk, VIDEO, "face_1", "omar")
    with pytest.raises(Ambiguous, match=r"omar \(person 2\), Omar \(person 3\); give the number"):
        rename(talk, VIDEO, "Omar", "Zoe")


def test_an_odd_name_is_stored_on_one_line_and_passes_for_no_tag(talk: Store) -> None:
    rename(talk, VIDEO, "0", " Ann\n<face_1>\x00  B. ")
    assert people(talk)[0][1] == "Ann ‹face_1›� B."


def test_the_list_says_how_often_and_when_each_was_seen_and_heard(talk: Store) -> None:
    memorise(talk, talks(3, 1, 1, "It is cold."))
    listed = {one.number: one for one in list_people(talk, VIDEO)}
    assert (listed[0].seen, listed[0].heard, str(listed[0].span)) == (2, 2, "00:00-01:36")
    assert (listed[2].seen, listed[2].heard, listed[3].heard) == (1, 0, 1)
    assert listed[0].tags == ("<face_0>", "<voice_0>")


def test_who_was_known_by_a_time_has_nothing_of_what_came_later(talk: Store) -> None:
    before = people_of_video(talk, VIDEO, as_of=90_000)
    memorise(talk, talks(3, 1, 1, "My name is Zoe."))
    rename(talk, VIDEO, "2", "Ann")
    after = people_of_video(talk, VIDEO, as_of=90_000)
    assert [one.label for one in after.items] == ["Ada", "Ann", "Omar"]
    assert people_of_video(talk, VIDEO).items[0].heard == before.items[0].heard + 1
    undo(talk, VIDEO)
    assert people_of_video(talk, VIDEO, as_of=90_000) == before
    assert people_of_video(talk, VIDEO, as_of=1_000).items == ()
