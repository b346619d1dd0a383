"""Confidence in words, and the curves that calibrate it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.asking import Calibration, ConfidenceLevel, Curve, level_of_confidence
from domain.errors import InputError, SetupError
from evals.calibration import curve, fit, is_fitted_on, reliability, save
from evals.tables import AnsweredQuestion
from models.profile import calibration_file, load_profile
from tests.unit.test_eval_reports import row

OPTIONS = ("a", "b")


def answers(count: int, seed: int = 1, confidence: bool = False) -> list[AnsweredQuestion]:
    """Answers that are right as often as the square of their raw confidence."""
    dice = random.Random(seed)
    made = []
    for number in range(count):
        raw = dice.random()
        output = {"confidence": raw} if confidence else {}
        made.append(
            row(f"{seed}-{number}", dice.random() < raw**2, raw=raw, options=OPTIONS, **output)
        )
    return made


def test_a_curve_learns_how_often_answers_are_right() -> None:
    fitted = fit(answers(4000)).options
    for raw in (0.2, 0.5, 0.8):
        assert fitted.at(raw) == pytest.approx(raw**2, abs=0.1)


def test_half_of_the_questions_are_fitted_on_and_the_others_judge() -> None:
    rows = answers(400, confidence=True)
    half = [one for one in rows if is_fitted_on(one.id)]
    assert 150 < len(half) < 250
    assert fit(rows) == fit(half)
    assert reliability(half) == ()
    assert sum(third.right.of for third in reliability(rows)) == len(rows) - len(half)


def test_reliability_tells_what_was_said_and_what_was_right() -> None:
    low, middle, high = reliability(answers(3000, confidence=True))
    assert low.most <= middle.least <= middle.most <= high.least
    assert low.said == pytest.approx(1 / 6, abs=0.05)
    assert not middle.true  # 50 % were said, 25 % were right.
    assert high.right.value > middle.right.value > low.right.value


def test_too_few_answers_are_refused_and_leave_a_curve_as_it_was() -> None:
    with pytest.raises(InputError, match="too few"):
        fit(answers(20))
    known = Calibration(open=Curve(raw=(0.1, 0.9), right=(0.2, 0.8)))
    assert fit(answers(400), known).open == known.open


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_any_judged_answers_make_a_curve(output: list[tuple[float, bool]]) -> None:
    made = curve([row(str(i), right, raw=raw) for i, (raw, right) in enumerate(output)])
    assert all(0 <= made.at(raw) <= 0.95 for raw, _ in output)


def test_a_fitted_curve_is_the_profiles_from_then_on(tmp_path: Path) -> None:
    config, fitted = tmp_path / "homer.toml", fit(answers(400))
    save(calibration_file(config, "local"), fitted)
    assert load_profile("local", config).calibration == fitted
    assert load_profile("gemini", config).calibration != fitted


def test_a_damaged_curve_says_what_to_do(tmp_path: Path) -> None:
    config = tmp_path / "homer.toml"
    path = calibration_file(config, "local")
    path.parent.mkdir()
    path.write_text('{"options": {"raw": [1, 0], "right": [0, 1]}}')
    with pytest.raises(SetupError, match="homer eval calibrate"):
        load_profile("local", config)


CURVE = Curve(raw=(0.2, 0.4, 0.8), right=(0.3, 0.5, 0.9))


@pytest.mark.parametrize(
    ("confidence", "word"),
    [
        (0.0, ConfidenceLevel.LOW),
        (0.39, ConfidenceLevel.LOW),
        (0.4, ConfidenceLevel.MEDIUM),
        (0.7, ConfidenceLevel.HIGH),
    ],
)
def test_confidence_has_a_word(confidence: float, word: ConfidenceLevel) -> None:
    assert level_of_confidence(confidence) is word


@pytest.mark.parametrize(
    ("raw", "share"),
    [(0.0, 0.3), (0.2, 0.3), (0.3, 0.4), (0.4, 0.5), (0.6, 0.7), (0.8, 0.9), (1.0, 0.9)],
)
def test_a_curve_is_straight_between_its_points_and_flat_beyond(raw: float, share: float) -> None:
    assert CURVE.at(raw) == pytest.approx(share)


@given(st.floats(0, 1))
def test_without_a_curve_raw_confidence_stays(raw: float) -> None:
    assert Curve().at(raw) == min(0.95, raw)


def test_nothing_is_surer_than_the_specification_allows() -> None:
    assert Curve(raw=(0.1, 0.9), right=(0.2, 1.0)).at(0.95) == 0.95


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ((0.1,), ()),
        ((0.2, 0.1), (0.3, 0.4)),
        ((0.1, 0.1), (0.3, 0.4)),
        ((0.1, 0.2), (0.4, 0.3)),
        ((0.1, 1.2), (0.3, 0.4)),
        ((0.1, float("nan")), (0.3, 0.4)),
    ],
)
def test_no_falling_curve_is_taken(raw: tuple[float, ...], right: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError):
        Curve(raw=raw, right=right)
