"""What judged answers say, which skills hurt, and what the writer without a model makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.asking import Mode, Subtask, SubtaskState
from domain.skills import ComparedAnswer, ComparisonKey, Pattern, Signal, Tone, Topic
from retrieval.terms import content_words
from skills.learn import is_harmful, shares
from skills.writer import ADVICE, Course, Example, LocalSkillWriter, review, signals, winning_modes

DONE, STUCK = SubtaskState.RESOLVED, SubtaskState.PARTIAL


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
    output = {"+": True, "-": False, "?": None}
    alike = ComparisonKey(kind, run=run)
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
        ("???---", "", True),
        ("-?-", "+++", False),
        ("+---", "++++++++", False),
        ("+----", "++++++++", True),
        ("++---", "+---", False),
        ("++---", "++--", True),
        ("++---", "", False),
        ("+++++", "+", False),
        ("++++-", "+" * 20, True),
    ],
)
def test_a_skill_that_does_worse_than_its_type_is_banned(
    given_: str, others: str, banned: bool
) -> None:
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


def test_a_refined_skill_keeps_its_name() -> None:
    pattern = Pattern(signal=Signal.ERROR, question_type="who")
    known = LocalSkillWriter().write(pattern, QUESTIONS, None, content_words)
    renamed = known.model_copy(update={"name": "mine"})
    assert LocalSkillWriter().write(pattern, QUESTIONS[:1], renamed, content_words).name == "mine"
