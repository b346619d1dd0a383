"""Which characters of different videos may be one person."""

from __future__ import annotations

import numpy as np
import pytest

from domain.media import IdentityKind
from domain.people import CharacterRef, CorrectedCharacter, Correction, CorrectionKind
from people.across_videos import links_of
from people.likely_same import Looks, mutual_best, sure_cosine

FACE, VOICE = IdentityKind.FACE, IdentityKind.VOICE
SAME = {FACE: 0.4, VOICE: 0.4}
"""Pairs are sure from a cosine of 0.7 on, an angle of 45 degrees."""

JOIN, LEAVE = CorrectionKind.JOIN, CorrectionKind.LEAVE
NUMBERS = {video: {n: n for n in range(3)} for video in "abcd"}


def at(degrees: float, size: int = 3) -> np.ndarray:
    angle = np.deg2rad(degrees)
    return np.array([np.cos(angle), np.sin(angle), *[0.0] * (size - 2)], dtype=np.float32)


def who(video: str, number: int = 0) -> CharacterRef:
    return CharacterRef(video=video, number=number)


def test_each_is_the_others_best_in_its_video() -> None:
    ours: dict[CharacterRef, Looks] = {who("a", 0): {FACE: at(0)}, who("a", 1): {FACE: at(20)}}
    theirs: dict[CharacterRef, Looks] = {
        who("b", 0): {FACE: at(18)},
        who("b", 1): {FACE: at(40)},
        who("c", 5): {FACE: at(-10)},
        who("c", 6): {FACE: at(100)},
    }
    assert [
        (f"{a.one.number}", f"{a.other.video}{a.other.number}", a.sure)
        for a in mutual_best(ours, theirs, SAME)
    ] == [("1", "b0", True), ("0", "c5", True)]


@pytest.mark.parametrize(("degrees", "found"), [(40, [True]), (50, [False]), (70, [])])
def test_pairs_count_from_the_threshold_and_may_be_sure(degrees: float, found: list[bool]) -> None:
    one: dict[CharacterRef, Looks] = {who("a"): {FACE: at(0)}}
    other: dict[CharacterRef, Looks] = {who("b"): {FACE: at(degrees)}}
    assert sure_cosine(0.4) == pytest.approx(0.7)
    assert [pair.sure for pair in mutual_best(one, other, SAME)] == found


def test_faces_are_not_sure_where_the_voices_differ() -> None:
    one: dict[CharacterRef, Looks] = {who("a"): {FACE: at(0), VOICE: at(0, 4)}}
    other: dict[CharacterRef, Looks] = {who("b"): {FACE: at(5), VOICE: at(80, 4)}}
    (pair,) = mutual_best(one, other, SAME)
    assert (pair.kind, pair.sure) == (FACE, False)


def said(number: int, kind: CorrectionKind, person: str, character: int = 0) -> Correction:
    outcome = CorrectedCharacter(number=character, persons=(person,))
    return Correction(
        number=number, kind=kind, told="", numbers=(character,), outcomes=(outcome,), act="x"
    )


def test_what_is_undone_and_who_is_there_no_more_counts_for_nothing() -> None:
    gone = said(1, JOIN, "p").model_copy(update={"undone": True})
    corrections = {"a": [gone], "b": [said(1, JOIN, "p", 7)], "c": [said(1, JOIN, "p")]}
    assert links_of(corrections, NUMBERS).joined_persons() == []


def test_numbers_stand_for_the_character_that_they_were_merged_into() -> None:
    corrections = {"a": [said(1, JOIN, "p", 2)], "b": [said(1, JOIN, "p")]}
    links = links_of(corrections, NUMBERS | {"a": {0: 0, 2: 0}})
    assert links.person_of(who("b")) == {who("a", 0), who("b")}
