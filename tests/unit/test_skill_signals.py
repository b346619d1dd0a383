"""What judged answers teach, which skills are let in, given, measured and banned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.asking import Mode, Subtask, SubtaskState
from domain.skills import (
    ComparedAnswer,
    ComparisonKey,
    Pattern,
    Policy,
    RoutedSkill,
    Share,
    Signal,
    Skill,
    Tone,
    Topic,
    combined_policy,
)
from library.skills import expected_right, tally_unit
from retrieval.terms import content_words
from skills.learn import is_harmful, shares
from skills.library import route
from skills.writer import (
    ADVICE,
    INSTRUCTION,
    Course,
    Example,
    LocalSkillWriter,
    review,
    signals,
    tokens_of,
    winning_modes,
)
from tests.support.skills import a_skill

DONE, STUCK = SubtaskState.RESOLVED, SubtaskState.PARTIAL
QUESTION = np.array([1.0, 0.0], np.float32)
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def course(rounds: int = 2, queries: int = 2, sure: float = 0.5, *states: SubtaskState) -> Course:
    tasks = [Subtask(id=f"t{i}", text="x", state=s, attempts=3) for i, s in enumerate(states, 1)]
    return Course(rounds=rounds, queries=queries, confidence=sure, subtasks=tuple(tasks))


@pytest.mark.parametrize(
    ("went", "right", "expected"),
    [
        (course(2, 2, 0.5, DONE), True, set()),
        (course(1, 1, 0.9, DONE), True, {Signal.SEARCH_WIN}),
        (course(3, 2, 0.9, DONE), True, {Signal.HARD_WIN}),
        (course(3, 1, 0.9, DONE), True, set()),
        (course(2, 2, 0.5, DONE, DONE), True, {Signal.DECOMPOSE_WIN}),
        (course(2, 2, 0.5, DONE, STUCK), True, set()),
        (course(3, 3, 0.79, DONE), False, {Signal.ERROR, Signal.DECOMPOSE_MISS}),
        (course(3, 3, 0.8, DONE), False, {Signal.ERROR, Signal.CALIBRATION, Signal.DECOMPOSE_MISS}),
        (course(4, 3, 0.1, DONE), False, {Signal.ERROR, Signal.SEARCH_FAIL, Signal.DECOMPOSE_MISS}),
        (course(2, 2, 0.1, DONE, DONE), False, {Signal.ERROR, Signal.DECOMPOSE_FAIL}),
        (
            course(2, 2, 0.1, DONE, STUCK),
            False,
            {Signal.ERROR, Signal.DECOMPOSE_FAIL, Signal.SUBTASK_STALL},
        ),
    ],
)
def test_the_signals_of_the_paper(went: Course, right: bool, expected: set[Signal]) -> None:
    assert set(signals(went, 3, right=right)) == expected


def test_what_a_signal_teaches_has_a_topic_and_a_tone() -> None:
    assert Signal.CALIBRATION.topic is Topic.CALIBRATION
    assert Signal.SUBTASK_STALL.topic is Topic.DECOMPOSITION
    assert Signal.SEARCH_FAIL.topic is Topic.MODE
    wins = {signal for signal in Signal if signal.tone is Tone.POSITIVE}
    assert wins == {Signal.HARD_WIN, Signal.SEARCH_WIN, Signal.DECOMPOSE_WIN, Signal.STRATEGY}


def judged(rights: str, kind: str = "who", first: int = 0, run: str = "") -> list[ComparedAnswer]:
    output, alike = {"+": True, "-": False, "?": None}, ComparisonKey(kind, run=run)
    return [
        ComparedAnswer(f"{kind}{first + i}", alike, output[mark]) for i, mark in enumerate(rights)
    ]


def does_harm(given_: list[ComparedAnswer], others: list[ComparedAnswer]) -> bool:
    return is_harmful(given_, shares(given_), shares([*given_, *others]))


@pytest.mark.parametrize(
    ("given_", "others", "banned"),
    [
        ("--", "+", False),
        ("---", "", True),
        ("-?-", "+++", False),
        ("+---", "++++++++", False),
        ("+----", "++++++++", True),
        ("++---", "+---", False),
        ("++---", "++--", True),
        ("++---", "", False),
        ("++++-", "+" * 20, True),
    ],
)
def test_a_skill_that_does_worse_than_is_usual_goes(given_: str, others: str, banned: bool) -> None:
    assert does_harm(judged(given_), judged(others, first=99)) is banned


def test_a_skill_is_measured_by_the_types_that_it_was_given_to() -> None:
    hard = judged("+----", "why")
    assert not does_harm(hard, [*judged("+" * 20, "who"), *judged("+" + "-" * 9, "why", 50)])


def test_a_skill_is_measured_by_its_own_run() -> None:
    """It was given to hard questions, or to a weak profile: other runs say nothing of it."""
    given_, easy = judged("++---", run="hard"), judged("+" * 20, first=50, run="easy")
    assert not does_harm(given_, easy)
    assert not does_harm(given_, [*easy, *judged("+---", first=90, run="hard")])
    assert does_harm(given_, [*easy, *judged("++++", first=90, run="hard")])


def test_a_skill_that_all_are_given_does_not_hide_behind_its_own_uses() -> None:
    assert does_harm(judged("-" * 18 + "++"), judged("+-", first=50))


@given(st.text(alphabet="+-?", max_size=12), st.text(alphabet="+-?", max_size=12))
def test_a_skill_that_is_always_right_is_never_banned(given_: str, others: str) -> None:
    assert not does_harm(judged(given_.replace("-", "+")), judged(others, first=99))


def example(text: str, *modes: Mode) -> Example:
    return Example("t", text, course(), modes)


QUESTIONS = [
    example("Who opens the green gate?", Mode.VIDEO, Mode.EVENT),
    example("Who shuts the gate at night?", Mode.VIDEO, Mode.EVENT),
    example("Who paints the gate green?", Mode.EVENT),
]


@pytest.mark.parametrize("signal", list(Signal))
def test_every_signal_becomes_a_skill_that_passes_the_review(signal: Signal) -> None:
    pattern = Pattern(signal=signal, question_type="Cross-Modal (CM)")
    skill = LocalSkillWriter().write(pattern, QUESTIONS, None, content_words)
    assert review(skill) == ()
    assert skill.name == f"{signal.value.replace('_', '-')}-cross-modal-cm"
    assert "gate" in skill.triggers
    assert skill.instructions == ADVICE[signal]


def test_the_searches_that_most_winners_share_are_the_policy() -> None:
    assert winning_modes(QUESTIONS) == (Mode.VIDEO, Mode.EVENT)
    assert winning_modes(QUESTIONS[1:]) == ()
    assert winning_modes([]) == ()


def said(*instructions: str, **more: Any) -> Skill:
    return a_skill(instructions=instructions, **more)


@pytest.mark.parametrize(
    "line",
    [
        "Find both events first, then compare their times.",
        "Search in mode EVENT for the whole, then VIDEO for the words.",
        "If two searches bring nothing, look at the images (KEYFRAME).",
        "Say how sure you are: 2 of 3 sources must agree.",
        "Why-questions need the cause AND the effect.",
    ],
)
def test_plain_advice_passes(line: str) -> None:
    assert review(said(line)) == ()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("Use <think> before you answer.", "syntax"),
        ("Cite [m12] always.", "syntax"),
        ('Reply with {"action": "answer"}.', "syntax"),
        ("Call search_all(query) first.", "syntax"),
        ("Search with TIMELINE first.", "no search mode"),
        ("The answer is B.", "which option is right"),
        ("   ", "empty"),
        ("x" * (INSTRUCTION + 1), "longer than"),
    ],
)
def test_what_is_no_plain_advice_is_refused_and_why(line: str, fault: str) -> None:
    (complaint,) = review(said(line))
    assert fault in complaint


def test_all_of_a_skill_is_reviewed() -> None:
    assert review(a_skill(description="Questions with <tags>"))
    assert review(a_skill(triggers=("before", "{after}")))
    long = tuple("word " * 47 + str(i) for i in range(5))
    assert review(said(*long)) == ()
    assert "tokens" in review(said(*(f"{line} and" for line in long)))[0]


@pytest.mark.parametrize("line", ["Ask what Ann Lee did.", "ann lee's words matter", "ANN LEE!"])
def test_a_name_is_one_where_it_is_written_as_one(line: str) -> None:
    assert bool(review(said(line), names=["Ann Lee", "Will"])) is ("Ann Lee" in line)
    assert review(said("You will need both times."), names=["Will"]) == ()


def test_an_answer_of_a_question_is_no_advice() -> None:
    assert review(said("It was The Green Door in the end."), answers=["the green door"])
    assert review(said("Look for red things."), answers=["red"]) == ()


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


@pytest.mark.parametrize(
    ("days", "unit"), [(0, "day"), (60, "day"), (61, "week"), (400, "week"), (401, "month")]
)
def test_long_use_is_reported_coarsely(days: int, unit: str) -> None:
    assert tally_unit(BEGUN, BEGUN + timedelta(days=days)) == unit


def test_only_like_is_compared_with_like() -> None:
    mine, other = (
        ComparisonKey("who", "local", "set", "one"),
        ComparisonKey("who", "gemini", "set", "two"),
    )
    every = {mine: Share(4, 1), other: Share(9, 9)}
    assert expected_right({mine: Share(4, 1)}, every) == 1
    assert expected_right({mine: Share(2, 1)}, every) == 0


@given(st.dictionaries(st.text(), st.tuples(st.integers(1, 50), st.integers(0, 50))))
def test_what_all_did_is_what_is_expected_of_all(every: dict[str, tuple[int, int]]) -> None:
    shares = {
        ComparisonKey(kind): Share(judged, min(judged, right))
        for kind, (judged, right) in every.items()
    }
    rights = sum(one.right for one in shares.values())
    assert expected_right(shares, shares) == pytest.approx(rights)
