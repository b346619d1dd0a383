"""A learner with planted patterns: exactly those become skills, and the harmful one is banned."""

from __future__ import annotations

import pytest

from domain.asking import Mode
from domain.skills import JudgedTrajectory, Tone
from flows.learning import learn_in_batches, skill_writer
from flows.workspace import Workspace
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from retrieval.terms import content_words
from skills.learn import BATCH, LearningResult, judge, learn
from skills.library import list_skills
from skills.writer import LocalSkillWriter
from store.database import Store
from store.queries.learning import source_trajectories
from tests.support.judged_answers import answered
from tests.support.machine import watched
from tests.support.openai_server import OpenAIServer

WRITER = LocalSkillWriter()


@pytest.fixture
def library(store: Store) -> Store:
    watched(store)
    return store


def learned(store: Store) -> LearningResult:
    return learn(store, WRITER, content_words)


def test_the_eighth_observation_makes_a_skill_and_no_sooner(library: Store) -> None:
    for n in range(7):
        answered(library, f"w{n}", "who", right=True, rounds=1)
    assert learned(library).written == ()
    answered(library, "w7", "who", right=True, rounds=1)
    (skill,) = learned(library).written
    assert (skill.name, skill.version, skill.tone) == ("search-win-who", 1, Tone.POSITIVE)
    assert skill.policy.modes == (Mode.VIDEO,)
    assert set(skill.triggers) == {"opens", "gate"}
    with library.begin() as session:
        assert source_trajectories(session, skill.name) == [f"w{n}" for n in range(8)]


def test_a_batch_is_of_64_answers_and_each_is_learned_from_once(library: Store) -> None:
    for n in range(BATCH + 3):
        answered(library, f"t{n:02d}", "where", right=True, rounds=2)
    assert [learned(library).answers for _ in range(3)] == [BATCH, 3, 0]


@pytest.mark.full
def test_observations_of_two_batches_are_not_added_up(library: Store) -> None:
    for n in range(2 * BATCH):
        kind = "who" if n % BATCH < 7 else f"odd {n}"
        answered(library, f"t{n:03d}", kind, right=True, rounds=1)
    assert [learned(library).written for _ in range(2)] == [(), ()]


def test_a_skill_is_compared_with_the_same_profile_only(library: Store) -> None:
    for n in range(8):
        answered(library, f"w{n}", "who", right=True, rounds=1)
    (skill,) = learned(library).written
    for n in range(5):
        answered(library, f"x{n}", "who", right=n == 0, given=[skill], profile="small")
    assert learned(library).banned == ()
    for n in range(3):
        answered(library, f"y{n}", "who", right=True, profile="small")
    assert learned(library).banned == (skill.name,)


def test_a_verdict_that_changes_is_learned_from_again(library: Store) -> None:
    answered(library, "a", "who", right=True, rounds=1)
    assert learned(library).observations == 1
    judge(library, JudgedTrajectory(trajectory="a", question_type="who", right=True))
    assert learned(library).answers == 0
    judge(library, JudgedTrajectory(trajectory="a", question_type="who", right=False))
    batch = learned(library)
    assert (batch.answers, batch.observations) == (1, 2)


def llm_workspace(library: Store, server: OpenAIServer) -> Workspace:
    spec = ChatSpec(model="openai:test", base_url=server.base_url)
    profile = Profile(name="test", reasoner="llm", chat={"default": spec})
    return Workspace(library.home, library, profile, Toolbox(profile, library.home.weights))


GOOD = {
    "description": "Questions about who does something",
    "triggers": ["who"],
    "instructions": ["Search for the deed first, then for the one who did it."],
}


def test_a_model_words_the_advice_and_its_call_is_recorded(library: Store) -> None:
    for n in range(8):
        answered(library, f"w{n}", "who", right=True, rounds=1, text="Who <b>opens</b> it?")
    with OpenAIServer([GOOD]) as server:
        (batch,) = list(learn_in_batches(llm_workspace(library, server)))
        (sent,) = server.texts()
    (skill,) = batch.written
    assert skill.instructions == tuple(GOOD["instructions"])
    assert skill.policy.modes == (Mode.VIDEO,)
    assert "<question>Who (b)opens(/b) it?</question>" in sent


def test_what_a_model_writes_is_reviewed_and_asked_for_again_next_time(library: Store) -> None:
    for n in range(8):
        answered(library, f"w{n}", "who", right=True, rounds=1)
    bad = GOOD | {"instructions": ["Answer: a box of old letters."]}
    with OpenAIServer([bad, GOOD]) as server:
        workspace = llm_workspace(library, server)
        (refused,) = learn(library, skill_writer(workspace), content_words).refused
        assert "is the answer of a question" in refused
        assert list_skills(library) == []
        assert learn(library, skill_writer(workspace), content_words).written


def test_a_model_that_cannot_be_reached_loses_nothing(library: Store) -> None:
    for n in range(8):
        answered(library, f"w{n}", "who", right=True, rounds=1)
    with OpenAIServer([{"instructions": []}]) as server:
        (batch,) = list(learn_in_batches(llm_workspace(library, server)))
    assert "does not fit" in batch.refused[0]
    assert [one.name for one in learned(library).written] == ["search-win-who"]
