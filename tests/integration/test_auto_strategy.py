"""Questions that are asked by the strategy that was learned for such questions."""

from __future__ import annotations

import pytest

from agent.strategy import AUTO
from domain.asking import Question
from domain.faults import FaultPoint
from domain.settings import AskSettings
from domain.skills import Policy, Skill, Topic
from domain.trajectory import ForkEdit, QuestionAsked, SkillsRouted
from graphs.ask_result import AskResult, answer_json
from graphs.replay import replay
from graphs.runner import Runner
from retrieval.terms import content_words
from skills.learn import ALL_WRONG, LearningResult, learn
from skills.library import find_skill, set_banned, store_skills, trajectories_learned_from
from skills.writer import LocalSkillWriter
from store.database import Store
from store.queries.trajectories import events_of, find_trajectory, list_trajectories
from strategies.registry import find_strategy
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.caption_evaluations import build_all
from tests.support.judged_answers import answered
from tests.support.killed_runs import killed_at
from tests.support.machine import watched
from tests.support.runs import ask, fork
from tests.support.skills import a_skill

GATE = Question(text="Who opens the gate before the party?", videos=(PARTY,))
DEFAULT = AskSettings().strategy


def choosing(strategy: str, name: str = "strategy-who", rounds: int | None = 1) -> Skill:
    """A skill that chooses a strategy for the question about the gate."""
    return a_skill(
        name,
        topic=Topic.STRATEGY,
        description="Who opens the gate before the party",
        triggers=(),
        policy=Policy(strategy=strategy, rounds=rounds),
    )


def asked(store: Store, question: Question = GATE) -> tuple[AskResult, QuestionAsked, list[str]]:
    """Ask by what was learned; return the result, the first event and the skills on record."""
    result = ask(store, WordToolbox(), question, strategy=AUTO)
    with store.begin() as session:
        events = events_of(session, result.trajectory_id)
    first = events[0]
    assert isinstance(first, QuestionAsked)
    routed = [skill.name for e in events if isinstance(e, SkillsRouted) for skill in e.skills]
    return result, first, routed


def test_a_question_is_asked_by_the_strategy_that_was_learned_for_it(party: Store) -> None:
    store_skills(party, [choosing("plain-rag"), a_skill()])
    result, first, routed = asked(party)
    assert (first.machine, first.setup.settings.rounds) == ("plain-rag", 1)
    assert result.choice == first.choice
    assert result.choice is not None
    assert "plain-rag answered questions like this best (skill strategy-who" in result.choice.why
    assert routed == ["strategy-who"]
    assert answer_json(result)["choice"]["skill"]["name"] == "strategy-who"
    with party.begin() as session:
        assert find_trajectory(session, result.trajectory_id).machine == "plain-rag"


def test_choice_survives_kill_before_it_runs(party: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store_skills(party, [choosing("plain-rag", rounds=1)])
    with killed_at(monkeypatch, FaultPoint.QUESTION_ADDED, 1), Runner(party, WordToolbox()) as one:
        one.ask(GATE, strategy=AUTO)
    set_banned(party, "strategy-who", banned=True)
    with party.begin() as session:
        (killed,) = list_trajectories(session)
    with Runner(party, WordToolbox()) as runner:
        result = runner.resume(killed.id)
    with party.begin() as session:
        first = events_of(session, killed.id)[0]
    assert isinstance(first, QuestionAsked)
    assert (first.machine, first.setup.settings.rounds) == ("plain-rag", 1)
    assert result.choice == first.choice
    assert result.choice is not None
    assert "plain-rag answered questions like this best" in result.choice.why
    assert replay(party, killed.id).whole


def test_rounds_that_were_learned_are_a_limit(party: Store) -> None:
    store_skills(party, [choosing(DEFAULT, rounds=2), choosing("plain-rag", "strategy-z")])
    result, first, _ = asked(party)
    assert (first.machine, first.setup.settings.rounds) == (DEFAULT, 2)
    assert result.rounds <= 2


def test_a_named_strategy_is_asked_whatever_was_learned(party: Store) -> None:
    store_skills(party, [choosing("plain-rag")])
    result = ask(party, WordToolbox(), GATE)
    with party.begin() as session:
        events = events_of(session, result.trajectory_id)
    assert isinstance(events[0], QuestionAsked)
    assert (events[0].machine, events[0].choice, result.choice) == (DEFAULT, None, None)
    assert [skill for e in events if isinstance(e, SkillsRouted) for skill in e.skills] == []
    assert "choice" not in answer_json(result)


def test_the_default_is_asked_where_nothing_was_learned_and_it_is_said(party: Store) -> None:
    result, first, routed = asked(party)
    assert (first.machine, routed) == (DEFAULT, [])
    assert result.choice is not None
    assert result.choice.skill is None
    assert result.choice.why == (
        f"{DEFAULT} is the default: no strategy was learned for questions like this"
    )


@pytest.mark.parametrize(
    ("strategy", "why"),
    [
        ("worldmm", "strategy-who: the memory of worldmm is not built of this video"),
        ("dreams", "strategy-who: there is no strategy 'dreams'"),
    ],
)
def test_one_that_cannot_be_asked_is_passed_over(party: Store, strategy: str, why: str) -> None:
    store_skills(party, [choosing(strategy)])
    result, first, _ = asked(party)
    assert first.machine == DEFAULT
    assert result.choice is not None
    assert why in result.choice.why


def test_a_strategy_whose_memory_is_built_is_asked(party: Store) -> None:
    build_all(party, PARTY, find_strategy("worldmm"))
    store_skills(party, [choosing("worldmm", rounds=3)])
    assert asked(party)[1].machine == "worldmm"


@pytest.mark.parametrize("strategy", ["plain-rag", DEFAULT])
def test_a_chosen_strategy_replays_and_is_forked(party: Store, strategy: str) -> None:
    store_skills(party, [choosing(strategy, rounds=2), a_skill(description="Who opens the gate")])
    result, first, _ = asked(party)
    set_banned(party, "strategy-who", banned=True)
    assert replay(party, result.trajectory_id).whole
    made = fork(party, WordToolbox(), result.trajectory_id, 1, ForkEdit())
    with party.begin() as session:
        begun = events_of(session, made.trajectory_id)[0]
    assert isinstance(begun, QuestionAsked)
    assert (begun.machine, begun.choice) == (strategy, first.choice)
    assert replay(party, made.trajectory_id).whole


def learned(store: Store) -> LearningResult:
    return learn(store, LocalSkillWriter(), content_words)


def judged_pairs(store: Store, better: str, worse: str, count: int = 8, start: int = 0) -> None:
    """Answers of two strategies to the same questions, of which only one is right."""
    for n in range(start, start + count):
        text = f"Who opens gate {n}?"
        for strategy in (better, worse):
            right = strategy == better
            name = f"{strategy}-{n}"
            answered(store, name, "who", right=right, rounds=3, text=text, strategy=strategy)


def test_the_strategy_that_answered_the_same_questions_best_is_learned(store: Store) -> None:
    watched(store)
    judged_pairs(store, "plain-rag", DEFAULT)
    assert "strategy-who" in {skill.name for skill in learned(store).written}
    skill = find_skill(store, "strategy-who").skill
    assert (skill.policy.strategy, skill.policy.rounds, skill.version) == ("plain-rag", 3, 1)
    assert len(trajectories_learned_from(store, "strategy-who")) == 16
    assert learned(store).written == ()
    judged_pairs(store, DEFAULT, "plain-rag", count=20, start=8)
    learned(store)
    skill = find_skill(store, "strategy-who").skill
    assert (skill.policy.strategy, skill.version) == (DEFAULT, 2)


@pytest.mark.full
def test_question_like_those_learned_from_is_asked_so_whatever_kind_is_called(store: Store) -> None:
    """The description of a kind, "questions of the kind c7", is close to no question."""
    remember_party(store)
    watched(store)
    for n in range(8):
        text = f"Who opens the gate before the party number{n}?"
        for strategy in ("plain-rag", DEFAULT):
            right, name = strategy == "plain-rag", f"{strategy}-{n}"
            answered(store, name, "c7", right=right, rounds=1, text=text, strategy=strategy)
    learned(store)
    chosen = find_skill(store, "strategy-c7").skill
    named = {"description": "Questions of the kind c7.", "triggers": ()}
    store_skills(store, [chosen.model_copy(update=named)])
    assert asked(store)[1].machine == "plain-rag"
    far = Question(text="Why is the harbour frozen?", videos=(PARTY,))
    assert asked(store, far)[1].machine == DEFAULT


def test_seven_questions_are_too_few_to_learn_a_strategy(store: Store) -> None:
    watched(store)
    judged_pairs(store, "plain-rag", DEFAULT, count=7)
    assert "strategy-who" not in {skill.name for skill in learned(store).written}


def test_a_choice_that_was_never_right_is_banned(store: Store) -> None:
    watched(store)
    store_skills(store, [choosing("plain-rag")])
    skill = find_skill(store, "strategy-who").skill
    for n in range(ALL_WRONG):
        answered(store, f"w{n}", "who", right=False, given=[skill], strategy="plain-rag")
    assert learned(store).banned == ("strategy-who",)
