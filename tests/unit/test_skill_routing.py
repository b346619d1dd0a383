"""Which skills a question is given, and what they change."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.asking import Mode
from domain.skills import Policy, RoutedSkill, Tone, combined_policy
from skills.library import route
from skills.writer import tokens_of
from tests.support.skills import a_skill

QUESTION = np.array([1.0, 0.0], np.float32)


def at(cosine: float) -> list[float]:
    return [cosine, float(np.sqrt(1 - cosine**2))]


def routed(cosines: list[float], tokens: int = 600, above: float = 0.45) -> list[str]:
    skills = [a_skill(f"s{i}") for i in range(len(cosines))]
    vectors = np.array([at(c) for c in cosines], np.float32).reshape(-1, 2)
    return [one.name for one in route(QUESTION, skills, vectors, above, tokens)]


def test_only_what_is_above_the_threshold_is_given_best_first() -> None:
    assert routed([0.44, 0.46, 0.9, 0.45]) == ["s2", "s1"]
    assert routed([0.1, -0.9]) == []
    assert routed([]) == []


def test_equal_skills_stand_in_the_order_of_their_names() -> None:
    assert routed([0.8, 0.8, 0.8]) == ["s0", "s1", "s2"]


def test_the_best_that_fit_are_given() -> None:
    assert routed([0.5, 0.9, 0.7], tokens=2 * tokens_of(a_skill().instructions)) == ["s1", "s2"]
    assert routed([0.5, 0.9], tokens=0) == []


@given(st.lists(st.floats(-1, 1), max_size=8), st.integers(0, 200))
def test_what_is_given_fits_and_is_close(cosines: list[float], tokens: int) -> None:
    skills = [a_skill(f"s{i}") for i in range(len(cosines))]
    vectors = np.array([at(c) for c in cosines], np.float32).reshape(-1, 2)
    given_ = route(QUESTION, skills, vectors, 0.45, tokens)
    assert sum(tokens_of(one.instructions) for one in given_) <= tokens
    assert all(one.score > 0.45 for one in given_)
    assert [one.score for one in given_] == sorted((one.score for one in given_), reverse=True)


def skill(name: str, **policy: object) -> RoutedSkill:
    made = Policy.model_validate(policy)
    return RoutedSkill(
        name=name, version=1, tone=Tone.POSITIVE, score=0.5, instructions=("x",), policy=made
    )


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_of_two_that_change_the_same_the_better_one_does(order: tuple[int, ...]) -> None:
    skills = [skill("a", modes=["video"]), skill("b", modes=["event"]), skill("c", split=False)]
    first = next(i for i in order if i < 2)
    made = combined_policy([skills[i] for i in order])
    assert made == Policy(modes=((Mode.VIDEO, Mode.EVENT)[first],), split=False)
