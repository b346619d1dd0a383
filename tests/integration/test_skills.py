"""The skill library over a real database, and the questions that are given from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.asking import Mode, Question
from domain.errors import InputError, NotFound
from domain.skills import Policy, Tone
from domain.trajectory import Ended, Event, EvidenceRetrieved, Planned, SkillsRouted
from graphs.replay import replay
from skills.library import (
    find_skill,
    list_skills,
    read_skills,
    set_banned,
    store_skills,
    trajectories_given,
    write_skills,
)
from store.database import Store
from store.queries.skills import skill_versions
from tests.support.asking import PARTY, WordToolbox
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of
from tests.support.openai_server import OpenAIServer
from tests.support.runs import ask
from tests.support.skills import a_skill

GATE = Question(text="Who opens the gate before the party?", videos=(PARTY,))
LIKE_IT = {"description": "Who opens the gate before the party", "triggers": ()}


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def asked(store: Store, toolbox: Any, question: Question = GATE) -> tuple[str, list[Event]]:
    events: list[Event] = []
    return ask(store, toolbox, question, collect_events(events)).trajectory_id, events


def test_a_changed_skill_is_a_new_version_and_the_old_one_stays(store: Store) -> None:
    first, other = a_skill(), a_skill("other")
    assert store_skills(store, [first, other]) == [first, other]
    assert store_skills(store, [first]) == []
    changed = a_skill(instructions=("Compare the times.",))
    (second,) = store_skills(store, [changed])
    assert second == changed.model_copy(update={"version": 2})
    assert [one.skill.name for one in list_skills(store)] == ["order-of-events", "other"]
    assert find_skill(store, "order-of-events").skill == second
    with store.begin() as session:
        assert skill_versions(session, "order-of-events") == [first, second]


def test_of_skills_that_do_not_all_pass_none_is_stored(party: Store) -> None:
    with pytest.raises(InputError, match=r"bad: .*syntax.*; worse: .*'Ann' is somebody"):
        store_skills(
            party,
            [
                a_skill(),
                a_skill("bad", instructions=("Use <tags>.",)),
                a_skill("worse", instructions=("Ask what Ann did.",)),
            ],
        )
    assert list_skills(party) == []


def test_a_ban_holds_for_later_versions_too_until_it_is_lifted(store: Store) -> None:
    store_skills(store, [a_skill()])
    set_banned(store, "order-of-events", banned=True)
    store_skills(store, [a_skill(instructions=("Compare.",))])
    assert find_skill(store, "order-of-events").banned
    set_banned(store, "order-of-events", banned=False)
    assert not find_skill(store, "order-of-events").banned
    with pytest.raises(NotFound, match="homer skills"):
        set_banned(store, "nothing", banned=True)


def test_a_question_is_given_the_skills_that_are_like_it(party: Store) -> None:
    store_skills(
        party, [a_skill("gates", **LIKE_IT), a_skill("cups", description="cups and plates")]
    )
    name, events = asked(party, WordToolbox())
    (given,) = of(events, SkillsRouted)
    assert [one.name for one in given.skills] == ["gates"]
    assert events.index(given) < events.index(of(events, Planned)[0])
    assert find_skill(party, "gates").uses == 1
    assert find_skill(party, "cups").uses == 0
    assert trajectories_given(party, "gates", 5) == [name]
    assert replay(party, name).whole


def test_a_banned_skill_is_given_to_nobody(party: Store) -> None:
    store_skills(party, [a_skill("gates", **LIKE_IT)])
    set_banned(party, "gates", banned=True)
    _, events = asked(party, WordToolbox())
    assert of(events, SkillsRouted)[0].skills == ()


def test_an_answer_is_replayed_with_the_skills_that_it_had(party: Store) -> None:
    policy = Policy(modes=(Mode.VIDEO,))
    store_skills(party, [a_skill("gates", **LIKE_IT, policy=policy)])
    name, events = asked(party, WordToolbox())
    set_banned(party, "gates", banned=True)
    assert of(events, EvidenceRetrieved)[0].mode is Mode.VIDEO
    assert replay(party, name).whole


def test_a_policy_steers_the_reasoner_that_follows_rules(party: Store) -> None:
    question = Question(text="Who opens the gate and who carries the cups?", videos=(PARTY,))
    _, before = asked(party, WordToolbox(), question)
    whole = a_skill("whole", description=question.text, triggers=(), policy=Policy(split=False))
    store_skills(party, [whole])
    _, after = asked(party, WordToolbox(), question)
    assert len(of(before, Planned)[0].subtasks) > 1
    assert [one.text for one in of(after, Planned)[0].subtasks] == [question.text]


def test_a_model_is_told_advice_at_once_and_warnings_once_it_goes_badly(party: Store) -> None:
    advice, warning = "Find the gate first.", "Do not search for the same thing again."
    store_skills(
        party,
        [
            a_skill("gates", **LIKE_IT, instructions=(advice,)),
            a_skill("again", **LIKE_IT, instructions=(warning,), tone=Tone.CAUTIONARY),
        ],
    )

    def stubborn(request: dict[str, Any]) -> Any:
        if purpose_of(request) == "assess":
            return {"resolved": []}
        return obedient(request)

    with OpenAIServer(stubborn) as server:
        _, events = asked(party, LlmToolbox(server))
        texts = server.texts()
    assert isinstance(events[-1], Ended)
    assert all(advice in text for text in texts)
    assert warning not in texts[0]
    assert warning in texts[-1]
    assert texts[0].index("</question>") > texts[0].index(advice)


def test_without_skills_nothing_is_said_of_them_and_no_embedding_is_made(party: Store) -> None:
    with OpenAIServer(obedient) as server:
        _, events = asked(party, LlmToolbox(server))
        assert "Advice" not in server.texts()[0]
    assert of(events, SkillsRouted) == [SkillsRouted()]


def test_a_file_that_is_not_there_or_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_skills(tmp_path / "absent.json")
    with pytest.raises(InputError, match="cannot be written"):
        write_skills(tmp_path, [a_skill()])
