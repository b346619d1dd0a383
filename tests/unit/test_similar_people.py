"""Which characters may be the same person."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind
from domain.people import LikelySame
from people import likely_same
from people.likely_same import MIN_COSINE_SHARE, Exemplars

FACE, VOICE = IdentityKind.FACE, IdentityKind.VOICE
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
