"""Strategies: their limits, where they are named, and which suits a type of question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from domain.settings import AskSettings
from domain.skills import Pattern, Signal, Tone, Topic
from skills.strategies import LEAST_QUESTIONS, best_strategy, strategy_skill
from skills.writer import review
from store.queries.learning import JudgedRun
from strategies.registry import find_strategy, strategy_names
from tests.support.packages import ROOT

LONG = replace(find_strategy("plain-rag"), rounds=13, retries=1)


@pytest.mark.parametrize(
    ("settings", "rounds", "retries"),
    [
        (AskSettings(), 13, 1),
        (AskSettings(rounds=4), 4, 1),
        (AskSettings(rounds=20, retries=0), 13, 0),
    ],
)
def test_limits_are_own_or_lower(settings: AskSettings, rounds: int, retries: int) -> None:
    made = LONG.settings_from(settings)
    assert (made.rounds, made.retries, made.strategy) == (rounds, retries, "plain-rag")
    assert LONG.settings_from(AskSettings.model_validate(made.model_dump())) == made


def test_a_strategy_without_limits_of_its_own_takes_those_of_the_settings() -> None:
    made = replace(LONG, rounds=None, retries=None).settings_from(AskSettings(rounds=7))
    assert (made.rounds, made.retries) == (7, AskSettings().retries)
    assert made.tokens == AskSettings().tokens


def test_a_token_budget_is_the_strategys_unless_one_is_set() -> None:
    long = replace(LONG, tokens=80_000)
    assert long.settings_from(AskSettings()).tokens == 80_000
    assert long.settings_from(AskSettings(tokens=9_000)).tokens == 9_000
    assert long.settings_from(AskSettings(tokens=200_000)).tokens == 200_000


PRODUCT = "homer"
"""Also the name of the program, and of the default strategy."""


@pytest.mark.parametrize("name", [name for name in strategy_names() if name != PRODUCT])
def test_a_strategy_is_named_in_its_own_folder_only(name: str) -> None:
    folder = name.replace("-", "_")
    named = re.compile(rf"\b({re.escape(name)}|{re.escape(folder)})\b", re.IGNORECASE)
    measuring = {".venv", "tests", "benchmarks"}
    files = [one for one in ROOT.rglob("*.py") if not measuring & {*one.parts}]
    others = [one for one in files if (ROOT / "strategies" / folder) not in one.parents]
    assert [str(one) for one in others if named.search(one.read_text())] == []


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


@pytest.mark.parametrize("count", [LEAST_QUESTIONS - 1, LEAST_QUESTIONS])
def test_strategies_are_compared_on_enough_questions_only(count: int) -> None:
    runs = [*answers("a", [True] * count), *answers("b", [False] * count)]
    assert (best_strategy(runs, "a") is not None) == (count == LEAST_QUESTIONS)


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
