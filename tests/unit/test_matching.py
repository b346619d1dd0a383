"""Who is who across clips, and which vectors to know them by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import Group
from people.identities import co_occur, group_vector, match_identities
from tests.support.memory import direction, face, voice


def centre(*who: int) -> list[float]:
    return [float(one) for one in np.mean([direction(one) for one in who], axis=0)]


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


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=6), st.permutations(range(5))
)
def test_no_two_of_one_moment_share_identity(seen: list[tuple[int, int]], order: list[int]) -> None:
    groups = [voice(n, who, (at, at + 1)) for n, (who, at) in enumerate(seen)]
    picks = match_identities(groups, [centre(1000 + who) for who in order], 0.5)
    for a, group in enumerate(groups):
        for b in range(a):
            same = picks[a] is not None and picks[a] == picks[b]
            assert not (same and co_occur(group, groups[b]))
    for group, (who, _), pick in zip(groups, seen, picks, strict=True):
        assert pick is None or order[pick] == who, group.number
