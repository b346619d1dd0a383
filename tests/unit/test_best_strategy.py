"""Which strategy suits a type of question, from answers to the same questions."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from domain.skills import Pattern, Signal, Tone, Topic
from skills.strategies import LEAST_QUESTIONS, best_strategy, strategy_skill
from skills.writer import review
from store.queries.learning import JudgedRun


def answers(
    strategy: str, rights: Sequence[bool], rounds: int = 2, first: int = 0
) -> list[JudgedRun]:
    return [
        JudgedRun(
            trajectory=f"{strategy}-{n}",
            asked=f"q{n}",
            text=f"Who opens gate {n}?",
            question_type="who",
            strategy=strategy,
            right=right,
            rounds=rounds,
        )
        for n, right in enumerate(rights, start=first)
    ]


HALF = [True, False] * 4


def test_the_strategy_that_was_right_most_often_is_the_best() -> None:
    runs = [*answers("a", HALF), *answers("b", [True] * 7 + [False]), *answers("c", [False] * 8)]
    best = best_strategy(runs, "a")
    assert best is not None
    assert best.strategy == "b"
    assert {run.strategy for run in best.runs} == {"a", "b", "c"}


def test_of_equals_the_default_is_the_best_then_the_one_with_fewer_rounds() -> None:
    runs = [*answers("a", HALF, 1), *answers("b", HALF, 3), *answers("c", HALF, 2)]
    assert [getattr(best_strategy(runs, name), "strategy", None) for name in "abcd"] == [*"abca"]


def test_rounds_are_as_many_as_right_answers_took() -> None:
    slow_right = answers("a", [True], rounds=4)
    runs = [*slow_right, *answers("a", [False] * 7, 9, first=1), *answers("b", [False] * 8)]
    best = best_strategy(runs, "b")
    assert best is not None
    assert (best.strategy, best.rounds) == ("a", 4)


@pytest.mark.parametrize("count", [LEAST_QUESTIONS - 1, LEAST_QUESTIONS])
def test_strategies_are_compared_on_enough_questions_only(count: int) -> None:
    runs = [*answers("a", [True] * count), *answers("b", [False] * count)]
    assert (best_strategy(runs, "a") is not None) == (count == LEAST_QUESTIONS)


def test_answers_to_other_questions_say_nothing() -> None:
    runs = [*answers("a", HALF), *answers("b", [True] * 8, first=100)]
    assert best_strategy(runs, "a") is None


def test_a_strategy_with_few_answers_does_not_keep_the_others_from_being_compared() -> None:
    runs = [*answers("a", HALF), *answers("b", [True] * 8), *answers("c", [True], first=0)]
    best = best_strategy(runs, "a")
    assert best is not None
    assert best.strategy == "b"


def test_the_latest_judgement_of_a_question_counts() -> None:
    runs = [*answers("a", [False] * 8), *answers("b", HALF), *answers("a", [True] * 8)]
    best = best_strategy(runs, "b")
    assert best is not None
    assert (best.strategy, len(best.runs)) == ("a", 16)


def test_where_nobody_was_right_nothing_is_learned() -> None:
    assert best_strategy([*answers("a", [False] * 8), *answers("b", [False] * 8)], "a") is None


def test_what_was_learned_passes_the_review() -> None:
    best = best_strategy([*answers("a", HALF), *answers("b-c", [True] * 8)], "a")
    assert best is not None
    pattern = Pattern(signal=Signal.STRATEGY, question_type="who")
    skill = strategy_skill(pattern, best, lambda text: text.split()[1:3])
    assert review(skill) == ()
    assert (skill.name, skill.topic, skill.tone) == ("strategy-who", Topic.STRATEGY, Tone.POSITIVE)
    assert (skill.policy.strategy, skill.policy.rounds) == ("b-c", 2)
    assert skill.triggers == ("gate", "opens")
