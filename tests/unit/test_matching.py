"""Who is who across clips, and which vectors to know them by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import Group
from people.identities import choose_exemplars, co_occur, group_vector, match_identities
from tests.support.memory import direction, face, voice


def centre(*who: int) -> list[float]:
    return [float(one) for one in np.mean([direction(one) for one in who], axis=0)]


def test_a_face_is_matched_to_the_identity_it_is_closest_to() -> None:
    groups = [face(0, 2, (0, 1)), face(1, 1, (0, 1)), face(2, 9, (0, 1))]
    assert match_identities(groups, [centre(1), centre(2)], 0.5) == [1, 0, None]


def test_the_mean_over_exemplars_decides_and_not_the_best_one() -> None:
    assert match_identities([face(0, 1, (0, 1))], [centre(1, 2, 3)], 0.5) == [None]
    assert match_identities([face(0, 1, (0, 1))], [centre(1, 1, 2)], 0.5) == [0]


def test_a_cosine_at_the_threshold_is_a_match() -> None:
    exact = float(group_vector(face(0, 1, (0, 1))) @ np.asarray(centre(1, 2)))
    assert match_identities([face(0, 1, (0, 1))], [centre(1, 2)], exact - 1e-9) == [0]
    assert match_identities([face(0, 1, (0, 1))], [centre(1, 2)], exact + 1e-6) == [None]


def test_of_two_faces_seen_together_the_better_match_wins_and_the_other_is_new() -> None:
    near = face(0, 1, (0, 1))
    mixed = np.asarray(direction(1)) * 0.8 + np.asarray(direction(2)) * 0.6
    blurred = near.sightings[0].model_copy(update={"vector": tuple(mixed / np.linalg.norm(mixed))})
    far = Group(kind=near.kind, number=1, sightings=(blurred,))
    assert match_identities([far, near], [centre(1)], 0.5) == [None, 0]


def test_the_same_face_may_be_seen_twice_at_different_times() -> None:
    assert match_identities([face(0, 1, (0, 1)), face(1, 1, (2, 3))], [centre(1)], 0.5) == [0, 0]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((0, 1), (1, 2), False),
        ((0, 1), (0.5, 2), True),
        ((1, 1), (1, 1), True),
        ((0, 0), (1, 1), False),
    ],
)
def test_sightings_at_one_instant_are_together(
    one: tuple[float, float], other: tuple[float, float], expected: bool
) -> None:
    assert co_occur(face(0, 1, one), face(1, 2, other)) is expected


def test_nobody_is_matched_where_nobody_is_known() -> None:
    assert match_identities([face(0, 1, (0, 1))], [], 0.5) == [None]
    assert match_identities([], [centre(1)], 0.5) == []


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=6), st.permutations(range(5))
)
def test_no_two_groups_of_one_moment_share_an_identity(
    seen: list[tuple[int, int]], order: list[int]
) -> None:
    groups = [voice(n, who, (at, at + 1)) for n, (who, at) in enumerate(seen)]
    known = [centre(1000 + who) for who in order]
    picks = match_identities(groups, known, 0.5)
    for a, group in enumerate(groups):
        for b in range(a):
            same = picks[a] is not None and picks[a] == picks[b]
            assert not (same and co_occur(group, groups[b]))
    for group, (who, _), pick in zip(groups, seen, picks, strict=True):
        assert pick is None or order[pick] == who, group.number


def test_exemplars_begin_with_the_best_and_spread_out() -> None:
    a, b = np.asarray(direction(1)), np.asarray(direction(2))
    close = a + 0.35 * b
    vectors = [a.tolist(), (a * 2).tolist(), close.tolist(), b.tolist()]
    assert choose_exemplars([1.0, 3.0, 2.0, 0.5], vectors, 3, -1.0) == [1, 3, 2]


def test_a_vector_unlike_the_rest_is_taken_for_a_mistake() -> None:
    vectors = [direction(1)] * 5 + [direction(2)]
    assert choose_exemplars([1.0] * 5 + [99.0], vectors, 10, 0.5) == [0]


def test_where_no_two_are_alike_the_best_one_is_chosen() -> None:
    assert choose_exemplars([1.0, 3.0], [[1.0, 0.0], [-1.0, 0.0]], 1, 0.9) == [1]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.floats(0, 50)), min_size=1, max_size=30),
    st.integers(1, 10),
)
def test_exemplars_are_few_different_and_the_same_each_time(
    made: list[tuple[int, float]], keep: int
) -> None:
    qualities, vectors = [q for _, q in made], [direction(who) for who, _ in made]
    chosen = choose_exemplars(qualities, vectors, keep, 0.3)
    assert 1 <= len(chosen) <= keep
    assert len({made[n][0] for n in chosen}) == len(chosen)
    assert chosen == choose_exemplars(qualities, vectors, keep, 0.3)
