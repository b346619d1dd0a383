"""Which character a voice belongs to, and which of its names a character goes by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.people import KnownName
from domain.time import TimeSpan
from people.characters import ACCEPT_SHARE, ACCEPT_SUPPORT, best_character, source_of_name
from people.face_voice import match_face, same_name
from people.identities import is_person
from store.queries.characters import preferred_name

OWN = {face: 100 + face for face in range(10)}
ANN, BOB, CEM = 0, 1, 2
SCENE_S = 10


@pytest.mark.parametrize(
    ("totals", "winner"),
    [
        ([], None),
        ([(1, 3.9)], None),
        ([(1, 4.0)], 101),
        ([(1, 6.0), (2, 4.0)], 101),
        ([(1, 5.9), (2, 4.1)], None),
        ([(1, 4.0), (2, 9.0)], 102),
        ([(1, 5.0), (2, 5.0)], None),
    ],
)
def test_the_face_with_most_support_wins_where_there_is_enough_of_it(
    totals: list[tuple[int, float]], winner: int | None
) -> None:
    assert best_character(dict(sorted(totals)), OWN) == winner


@given(st.dictionaries(st.integers(0, 9), st.floats(0.1, 50), max_size=10))
def test_a_winner_has_the_support_and_the_share_it_needs(totals: dict[int, float]) -> None:
    winner = best_character(totals, OWN)
    of = {row: totals.get(face, 0.0) for face, row in OWN.items()}
    if winner is not None:
        assert of[winner] == max(of.values()) >= ACCEPT_SUPPORT
        assert of[winner] >= ACCEPT_SHARE * sum(of.values()) - 1e-9


def test_of_names_the_most_trusted_is_shown_and_of_equals_the_oldest() -> None:
    every = {"Jeff Steam": ("said", 0), "Geoff": ("said", 2), "Jeff Steen": ("read", 3)}
    every |= {"Mr. Steen": ("person", 9), "He": ("model", 0)}
    names = [KnownName(name=one, source=of, from_clip=at) for one, (of, at) in every.items()]
    assert preferred_name(names[:2]) == "Jeff Steam"
    assert preferred_name(names[:3]) == "Jeff Steen"
    assert preferred_name(names) == "Mr. Steen"
    assert preferred_name([]) is None


@pytest.mark.parametrize(
    ("tag", "writer", "source"),
    [("<face_1>", "", "read"), ("<voice_1>", "", "said"), ("<face_1>", "model", "model")],
)
def test_names_have_the_source_of_their_tag(tag: str, writer: str, source: str) -> None:
    assert source_of_name(tag, writer) == source


@pytest.mark.parametrize(
    "label", ["Others", " other people ", "MUSIC", "(Lyrics)", "18", "其他人：", ""]
)
def test_labels_of_nobody_in_particular_are_no_person(label: str) -> None:
    assert not is_person(label)


@pytest.mark.parametrize("label", ["Jake", "Shure's GF", "男嘉宾", "AI", "Dr. No"])
def test_labels_of_somebody_are_a_person(label: str) -> None:
    assert is_person(label)


def scenes(*shown: str) -> tuple[list[TimeSpan], dict[int, list[TimeSpan]]]:
    """A voice through scenes of ten seconds, each with the people of these initials in view."""
    spans = [
        TimeSpan.of(at * SCENE_S * 1000, (at + 1) * SCENE_S * 1000) for at in range(len(shown))
    ]
    seen = {
        who: [s for s, here in zip(spans, shown, strict=True) if letter in here]
        for who, letter in ((ANN, "a"), (BOB, "b"), (CEM, "c"))
    }
    return spans, {who: found for who, found in seen.items() if found}


@pytest.mark.parametrize(
    ("shown", "whose"),
    [
        (["ab", "ac"], ANN),
        (["ab", "ab", "bc", "b"], BOB),
        (["abc", "ab", "ac"], ANN),
        (["ab", "ab"], None),
        (["ab", "cb", "ca"], None),
        (["a", "b", "c"], None),
        ([], None),
    ],
)
def test_a_voice_is_of_whoever_is_there_each_time(shown: list[str], whose: int | None) -> None:
    found = match_face(*scenes(*shown))
    assert (found.face if found else None) == whose


def test_the_reason_tells_the_seconds() -> None:
    found = match_face(*scenes("ab", "ac", "a"))
    assert found is not None
    assert found.reason == (
        "in view during 30.0 of the 30.0 s of this voice with anyone in view, "
        "nobody else for more than 10.0 s"
    )


def test_a_moment_apart_is_too_little() -> None:
    heard, both = [TimeSpan.of(0, 20_000)], [TimeSpan.of(0, 15_000)]
    short = round(1_000 * ACCEPT_SUPPORT) - 1
    assert match_face(heard, {ANN: [TimeSpan.of(0, 15_000 + short)], BOB: both}) is None
    assert match_face(heard, {ANN: [TimeSpan.of(0, 15_001 + short)], BOB: both}) is not None


@given(st.lists(st.text("abc", max_size=3), max_size=6))
def test_whoever_is_singled_out_was_there_more_than_anyone(shown: list[str]) -> None:
    heard, seen = scenes(*shown)
    found = match_face(heard, seen)
    if found is not None:
        times = {who: len(spans) for who, spans in seen.items()}
        assert all(times[found.face] > n for who, n in times.items() if who != found.face)
        assert found.with_voice_ms == 1_000 * SCENE_S * times[found.face]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Jeff", "JEFF STEEN", True),
        ("Jeff Steen", "jeff  steen", True),
        ("Jeff Steen", "Jeff Stone", False),
        ("Steen", "Jeff Steen", False),
        ("Ann", "Anna", False),
        ("", "", False),
        ("", "Ann", False),
    ],
)
def test_a_first_name_goes_with_the_whole(one: str, other: str, same: bool) -> None:
    assert same_name(one, other) is same
    assert same_name(other, one) is same
