"""Whose voice it is, by who is in view while it is heard, over many scenes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.time import TimeSpan
from people.characters import ACCEPT_SUPPORT
from people.face_voice import match_face, same_name

ANN, BOB, CEM = 0, 1, 2
SCENE_S = 10


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
        (["ab", "a"], ANN),
        (["ab", "ab", "bc", "b"], BOB),
        (["abc", "ab", "ac"], ANN),
        (["ab", "ab"], None),
        (["ab", "cb", "ca"], None),
        (["a", "b", "c"], None),
        (["", ""], None),
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
    heard = [TimeSpan.of(0, 20_000)]
    both = [TimeSpan.of(0, 15_000)]
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
