"""Where somebody was last seen: the time, the video and the picture, over all videos."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from domain.asking import Mode, Question
from domain.trajectory import EvidenceRetrieved, ForkEdit
from graphs.ask_result import AskResult
from graphs.replay import replay
from people.across_videos import join, rename
from retrieval import retrievers
from store.database import Store
from store.queries.trajectories import events_of
from tests.support.asking import StructureByWords, WordToolbox
from tests.support.machine import FINDS, ScriptedMemory, ScriptedReasoner, run, search, watched
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import recording
from tests.support.runs import ask, fork
from tests.support.several_videos import INTERVIEW, LECTURE, TALK, watch_people

ALL = (TALK, INTERVIEW, LECTURE)


@pytest.fixture(autouse=True)
def structure_by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrievers, "StructureQuestions", StructureByWords)


@pytest.fixture
def three(store: Store) -> Store:
    """Ada is in all videos; her name is known of the first, in which she comes second."""
    watch_people(store, TALK, {2: 0.9, 1: 0.9})
    watch_people(store, INTERVIEW, {1: 0.9}, {1: 0.9})
    watch_people(store, LECTURE, {3: 0.9, 4: 0.9, 1: 0.9})
    for video in ALL:
        recording(store, video, [1.0, 9.0])
    rename(store, TALK, "1", "Ada")
    return store


def asked(store: Store, question: str, videos: tuple[str, ...] = ALL) -> AskResult:
    made = ask(store, WordToolbox(), Question(text=question, videos=videos))
    assert replay(store, made.trajectory_id).divergence is None
    return made


def test_it_is_the_newest_video_that_the_person_is_joined_across(three: Store) -> None:
    first = asked(three, "Where was Ada last seen?").answer
    assert first.text.startswith('Ada was last seen at 00:04-00:07 of "talk".')
    join(three, TALK, "1", INTERVIEW, "0")
    second = asked(three, "Where was Ada last seen?").answer
    assert second.text.startswith('Ada was last seen at 00:00-00:03 of "interview".')
    join(three, INTERVIEW, "0", LECTURE, "2")
    third = asked(three, "When and where was Ada last seen?").answer
    assert third.text.startswith('Ada was last seen at 00:08-00:11 of "lecture".')
    assert {cited.video for cited in third.citations} == {LECTURE}
    assert [cited.ref[0] for cited in third.citations][:1] == ["k"]


@pytest.mark.parametrize(
    ("images", "cited"), [([1.0, 9.0, 20.0], [9_000]), ([1.0, 5.0, 6.0, 9.0], [5_000, 6_000])]
)
def test_images_of_that_time_are_cited_else_the_nearest(
    store: Store, images: list[float], cited: list[int]
) -> None:
    watch_people(store, TALK, {2: 0.9, 1: 0.9})
    recording(store, TALK, images)
    rename(store, TALK, "1", "Ada")
    answer = asked(store, "Where was Ada last seen?", (TALK,)).answer
    assert answer.text.startswith('Ada was last seen at 00:04-00:07 of "talk".')
    assert [one.span.start_ms for one in answer.citations] == cited


def test_only_what_is_in_view_counts(three: Store) -> None:
    join(three, TALK, "1", LECTURE, "2")
    answer = asked(three, "Where was Ada last seen?", (TALK, INTERVIEW)).answer
    assert answer.text.startswith('Ada was last seen at 00:04-00:07 of "talk".')


def test_two_of_one_name_are_both_told(three: Store) -> None:
    rename(three, LECTURE, "0", "Ada")
    answer = asked(three, "In which video was Ada last seen?").answer
    assert 'of "lecture". Ada was last seen at' in answer.text
    assert {cited.video for cited in answer.citations} == {LECTURE, TALK}


def test_a_language_model_reads_it_in_the_first_search_for_the_person(three: Store) -> None:
    join(three, TALK, "1", LECTURE, "2")
    with OpenAIServer(_searches_for("Ada's last appearance")) as server:
        question = Question(text="Where was Ada last seen?", videos=ALL)
        made = ask(three, LlmToolbox(server), question)
        assert replay(three, made.trajectory_id).divergence is None
        shown = [json.dumps(one["messages"]) for one in server.requests]
    read = [one for one in shown if 'Ada was last seen at 00:08-00:11 of \\"lecture\\".' in one]
    assert read
    found = next(one for one in made.answer.retrieved if one.ref[0] == "k")
    assert f'id=\\"[{found.ref}' in read[0]
    assert found.video == LECTURE


def test_a_language_model_reads_what_a_person_put_in_place_of_it(three: Store) -> None:
    with OpenAIServer(_searches_for("Ada's last appearance")) as server:
        toolbox = LlmToolbox(server)
        made = ask(three, toolbox, Question(text="Where was Ada last seen?", videos=ALL))
        with three.begin() as session:
            events = events_of(session, made.trajectory_id)
        at = next(one for one in events if isinstance(one, EvidenceRetrieved) and one.quotes)
        put = tuple(one.model_copy(update={"text": "Ada waves"}) for one in at.evidence)
        before = len(server.requests)
        forked = fork(three, toolbox, made.trajectory_id, at.round, ForkEdit(evidence=put))
        shown = [json.dumps(one["messages"]) for one in server.requests[before:]]
    assert replay(three, forked.trajectory_id).divergence is None
    assert any("Ada waves" in one for one in shown)


@pytest.mark.parametrize("whose", ["Ada's car", "the man behind Ada", "the book that Ada wrote"])
def test_a_thing_or_somebody_else_with_a_name_in_it_is_not_person(three: Store, whose: str) -> None:
    assert "Ada was last seen" not in asked(three, f"Where was {whose} last seen?").answer.text


def test_a_neighbour_is_walked_to_whatever_its_label_names(store: Store) -> None:
    watched(store)
    label, question = "Ada at the gate", "Where was Ada last seen?"
    memory = ScriptedMemory(FINDS, labels=(label,))
    acts = [search("a gate"), search(label, Mode.NEIGHBOR), search(label)]
    run(store, ScriptedReasoner(act=acts), memory, question=question)
    assert len(memory.aims) >= 3


def _searches_for(query: str) -> Callable[[dict[str, Any]], Any]:
    """Reply as an obedient model, with queries of its own."""

    def reply(request: dict[str, Any]) -> Any:
        said = obedient(request)
        return said | {"query": query} if isinstance(said, dict) and "query" in said else said

    return reply
