"""The limits of a strategy, and those that somebody set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.settings import AskSettings
from strategies.registry import find_strategy

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
