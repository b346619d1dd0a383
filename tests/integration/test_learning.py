"""A learner with planted patterns: exactly those become skills, and the harmful one is banned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from domain.asking import Mode, Question
from domain.errors import InputError, NotFound
from domain.skills import JudgedTrajectory, Policy, Tone
from domain.trajectory import Ended, Event, EvidenceRetrieved, Planned, SkillsRouted
from flows.learning import learn_in_batches, skill_writer
from flows.workspace import Workspace
from graphs.replay import replay
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from retrieval.terms import content_words
from skills.learn import BATCH, LearningResult, judge, learn
from skills.library import (
    find_skill,
    list_skills,
    read_skills,
    set_banned,
    store_skills,
    trajectories_given,
    write_skills,
)
from skills.writer import LocalSkillWriter
from store.database import Store
from store.queries.learning import source_trajectories
from store.queries.skills import skill_versions
from tests.support.asking import PARTY, WordToolbox
from tests.support.judged_answers import answered
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of
from tests.support.openai_server import OpenAIServer
from tests.support.runs import ask, of
from tests.support.skills import a_skill

WRITER = LocalSkillWriter()


def learned(store: Store) -> LearningResult:
    return learn(store, WRITER, content_words)


def test_the_eighth_observation_makes_a_skill_and_no_sooner(watched_store: Store) -> None:
    for n in range(7):
        answered(watched_store, f"w{n}", "who", right=True, rounds=1)
    assert learned(watched_store).written == ()
    answered(watched_store, "w7", "who", right=True, rounds=1)
    (skill,) = learned(watched_store).written
    assert (skill.name, skill.version, skill.tone) == ("search-win-who", 1, Tone.POSITIVE)
    assert (skill.policy.modes, set(skill.triggers)) == ((Mode.VIDEO,), {"opens", "gate"})
    with watched_store.begin() as session:
        assert source_trajectories(session, skill.name) == [f"w{n}" for n in range(8)]


def test_a_batch_is_of_64_answers_and_each_is_learned_from_once(watched_store: Store) -> None:
    for n in range(BATCH + 3):
        answered(watched_store, f"t{n:02d}", "where", right=True, rounds=2)
    assert [learned(watched_store).answers for _ in range(3)] == [BATCH, 3, 0]


@pytest.mark.full
def test_observations_of_two_batches_are_not_added_up(watched_store: Store) -> None:
    for n in range(2 * BATCH):
        kind = "who" if n % BATCH < 7 else f"odd {n}"
        answered(watched_store, f"t{n:03d}", kind, right=True, rounds=1)
    assert [learned(watched_store).written for _ in range(2)] == [(), ()]


def test_a_skill_is_compared_with_the_same_profile_only(watched_store: Store) -> None:
    for n in range(8):
        answered(watched_store, f"w{n}", "who", right=True, rounds=1)
    (skill,) = learned(watched_store).written
    for n in range(5):
        answered(watched_store, f"x{n}", "who", right=n == 0, given=[skill], profile="small")
    assert learned(watched_store).banned == ()
    for n in range(3):
        answered(watched_store, f"y{n}", "who", right=True, profile="small")
    assert learned(watched_store).banned == (skill.name,)


def test_a_verdict_that_changes_is_learned_from_again(watched_store: Store) -> None:
    answered(watched_store, "a", "who", right=True, rounds=1)
    assert learned(watched_store).observations == 1
    judge(watched_store, JudgedTrajectory(trajectory="a", question_type="who", right=True))
    assert learned(watched_store).answers == 0
    judge(watched_store, JudgedTrajectory(trajectory="a", question_type="who", right=False))
    batch = learned(watched_store)
    assert (batch.answers, batch.observations) == (1, 2)


def llm_workspace(watched_store: Store, server: OpenAIServer) -> Workspace:
    spec = ChatSpec(model="openai:test", base_url=server.base_url)
    profile = Profile(name="test", reasoner="llm", chat={"default": spec})
    return Workspace(
        watched_store.home, watched_store, profile, Toolbox(profile, watched_store.home.weights)
    )


GOOD = {
    "description": "Questions about who does something",
    "triggers": ["who"],
    "instructions": ["Search for the deed first, then for the one who did it."],
}


def test_a_model_words_the_advice_and_its_call_is_recorded(watched_store: Store) -> None:
    for n in range(8):
        answered(watched_store, f"w{n}", "who", right=True, rounds=1, text="Who <b>opens</b> it?")
    with OpenAIServer([GOOD]) as server:
        (batch,) = list(learn_in_batches(llm_workspace(watched_store, server)))
        (sent,) = server.texts()
    (skill,) = batch.written
    assert (skill.instructions, skill.policy.modes) == (tuple(GOOD["instructions"]), (Mode.VIDEO,))
    assert "<question>Who (b)opens(/b) it?</question>" in sent


def test_what_a_model_writes_is_reviewed_and_asked_for_again_next_time(
    watched_store: Store,
) -> None:
    for n in range(8):
        answered(watched_store, f"w{n}", "who", right=True, rounds=1)
    bad = GOOD | {"instructions": ["Answer: a box of old letters."]}
    with OpenAIServer([bad, GOOD]) as server:
        workspace = llm_workspace(watched_store, server)
        (refused,) = learn(watched_store, skill_writer(workspace), content_words).refused
        assert "is the answer of a question" in refused
        assert list_skills(watched_store) == []
        assert learn(watched_store, skill_writer(workspace), content_words).written


def test_a_model_that_cannot_be_reached_loses_nothing(watched_store: Store) -> None:
    for n in range(8):
        answered(watched_store, f"w{n}", "who", right=True, rounds=1)
    with OpenAIServer([{"instructions": []}]) as server:
        (batch,) = list(learn_in_batches(llm_workspace(watched_store, server)))
    assert "does not fit" in batch.refused[0]
    assert [one.name for one in learned(watched_store).written] == ["search-win-who"]


# The skill library over a real database, and the questions that are given from it.


GATE = Question(text="Who opens the gate before the party?", videos=(PARTY,))
LIKE_IT = {"description": "Who opens the gate before the party", "triggers": ()}


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
    assert (find_skill(party, "gates").uses, find_skill(party, "cups").uses) == (1, 0)
    assert trajectories_given(party, "gates", 5) == [name]
    assert replay(party, name).whole


def test_a_banned_skill_is_given_to_nobody(party: Store) -> None:
    store_skills(party, [a_skill("gates", **LIKE_IT)])
    set_banned(party, "gates", banned=True)
    _, events = asked(party, WordToolbox())
    assert of(events, SkillsRouted)[0].skills == ()


def test_an_answer_is_replayed_with_the_skills_that_it_had(party: Store) -> None:
    store_skills(party, [a_skill("gates", **LIKE_IT, policy=Policy(modes=(Mode.VIDEO,)))])
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
