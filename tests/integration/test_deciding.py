"""What the searches found decides: plans, modes, forks and skills change answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from domain.asking import Action, Mode, Question
from domain.errors import InputError
from domain.settings import AskSettings
from domain.skills import JudgedTrajectory, Policy
from domain.trajectory import Event, EvidenceRetrieved, Forced, ForkEdit, Planned
from graphs.ask_result import AskResult
from graphs.forks import editable
from graphs.runner import Runner
from retrieval.terms import content_words
from skills.learn import judge, learn
from skills.library import store_skills
from skills.writer import LocalSkillWriter
from store.database import Store
from store.queries.trajectories import events_of, list_trajectories
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.runs import ask, fork
from tests.support.skills import a_skill
from tests.support.wrong_day_house import OTHER_DAY, STORM, house

V = "abcdefabcdefabcd"
BOTH = Question(text="What is opened and what is washed?", videos=(PARTY,))


@pytest.fixture
def asked(store: Store) -> Question:
    return house(store, V)


def events(store: Store, made: AskResult) -> list[Event]:
    with store.begin() as session:
        return events_of(session, made.trajectory_id)


def searches(output: Sequence[Event]) -> list[EvidenceRetrieved]:
    return [event for event in output if isinstance(event, EvidenceRetrieved)]


def look_closer(store: Store, made: AskResult, number: int) -> AskResult:
    """The same, but round ``number`` looks into the event alone."""
    was = editable(events(store, made), number).action
    assert was is not None
    action = was.model_copy(update={"mode": Mode.VIDEO})
    return fork(store, WordToolbox(), made.trajectory_id, number, ForkEdit(action=action))


def test_each_option_has_its_search_and_no_more_is_seen(store: Store, asked: Question) -> None:
    output = events(store, ask(store, WordToolbox(), asked))
    (plan,) = (event for event in output if isinstance(event, Planned))
    assert [task.options for task in plan.subtasks] == [("A",), ("B",)]
    found = searches(output)
    assert [(one.round, one.options) for one in found] == [(1, ("A",)), (2, ("B",))]
    assert [one.query.split()[-1] for one in found] == ["attic", "cellar"]


def test_fork_that_finds_the_right_moment_changes_the_answer(store: Store, asked: Question) -> None:
    made = ask(store, WordToolbox(), asked)
    assert made.answer.option == OTHER_DAY
    twice = look_closer(store, look_closer(store, made, 1), 2)
    assert twice.answer.option == STORM
    assert [c.text for c in twice.answer.citations] == ["she takes the lantern down to the cellar"]


def test_a_person_may_choose_a_mode_where_the_harness_forced_one(store: Store) -> None:
    remember_party(store)
    toolbox = WordToolbox()
    more = toolbox.profile.settings.ask.model_copy(update={"attempts": 5})
    settings = toolbox.profile.settings.model_copy(update={"ask": more})
    toolbox.profile = toolbox.profile.model_copy(update={"settings": settings})
    made = ask(store, toolbox, Question(text="Why was the submarine sold?", videos=(PARTY,)))
    number = next(event.round for event in events(store, made) if isinstance(event, Forced)) + 1
    action = Action(kind="search", mode=Mode.EVENT, query="Ann shows the old piano")
    other = fork(store, WordToolbox(), made.trajectory_id, number, ForkEdit(action=action))
    assert action.query in [one.query for one in searches(events(store, other))]


def test_what_a_person_takes_out_of_a_search_decides_no_more(store: Store, asked: Question) -> None:
    made = ask(store, WordToolbox(), asked)
    for number in (1, 2):
        was = editable(events(store, made), number).evidence
        assert was is not None
        kept = tuple(e for e in was if e.span.start_ms < 60_000)
        made = fork(store, WordToolbox(), made.trajectory_id, number, ForkEdit(evidence=kept))
    assert made.answer.option == STORM


def test_action_that_the_harness_would_drop_cannot_be_forked(store: Store, asked: Question) -> None:
    made = ask(store, WordToolbox(), asked)
    action = Action(kind="search", mode=Mode.VIDEO, query="cellar")
    with pytest.raises(InputError, match="at least two words"):
        fork(store, WordToolbox(), made.trajectory_id, 1, ForkEdit(action=action))
    with store.begin() as session:
        assert len(list_trajectories(session)) == 1


def test_a_skill_that_changes_the_mode_changes_the_answer(store: Store, asked: Question) -> None:
    assert ask(store, WordToolbox(), asked).answer.option == OTHER_DAY
    closer = Policy(modes=(Mode.VIDEO,))
    about = "Questions about where somebody carries a lantern in the storm"
    store_skills(store, [a_skill(description=about, triggers=(), policy=closer)])
    made = ask(store, WordToolbox(), asked)
    assert made.answer.option == STORM
    assert {one.mode for one in searches(events(store, made))} == {Mode.VIDEO}


def test_a_skill_that_leaves_a_question_whole_changes_the_answer(store: Store) -> None:
    remember_party(store)
    parts = ask(store, WordToolbox(), BOTH).answer.text
    whole = Policy(split=False)
    store_skills(store, [a_skill(description=BOTH.text, triggers=(), policy=whole)])
    made = ask(store, WordToolbox(), BOTH)
    assert "gate" in parts
    assert "wash" in parts
    assert made.answer.text != parts


@pytest.mark.full
def test_what_forks_showed_is_learned_and_answers_what_comes_later(store: Store) -> None:
    things = "lantern violin basket candle mirror hammer bottle pillow ladder teapot"
    questions = [house(store, f"{n:016x}", thing) for n, thing in enumerate(things.split())]
    practised, held_out = questions[:8], questions[8:]
    for question in practised:
        made = ask(store, WordToolbox(), question)
        assert made.answer.option == OTHER_DAY
        for number in (1, 2):
            made = look_closer(store, made, number)
        assert made.answer.option == STORM
        judge(
            store,
            JudgedTrajectory(trajectory=made.trajectory_id, question_type="where", right=True),
        )
    (skill,) = learn(store, LocalSkillWriter(), content_words).written
    assert skill.policy.modes == (Mode.VIDEO, Mode.VIDEO)
    plain = AskSettings(skills=False)
    with (
        Runner(store, WordToolbox(), settings=plain) as without,
        Runner(store, WordToolbox()) as now,
    ):
        assert {without.ask(one).answer.option for one in held_out} == {OTHER_DAY}
        assert {now.ask(one).answer.option for one in held_out} == {STORM}
