"""Questions over videos of which a strategy's memory is built of some only, or of none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sqlalchemy import update

from domain.asking import Question
from domain.errors import InputError
from domain.trajectory import EvidenceRetrieved
from graphs.context_factory import StrategyTools
from graphs.replay import replay
from graphs.runner import Runner
from library.search import found_of
from store.database import Store
from store.queries.trajectories import events_of, list_trajectories
from store.tables.schema import VideoRow
from strategies.named_tools import find_tool, use_once
from strategies.registry import find_strategy
from tests.support.asking import WordToolbox
from tests.support.caption_evaluations import build_all
from tests.support.remembered import Said, watch

TITLES = {"0" * 16: "garden", "1" * 16: "garage", "2" * 16: "silence"}
LINES: Mapping[str, list[list[Said]]] = {
    "0" * 16: [[Said("Ann paints the fence", 3, source="caption")]],
    "1" * 16: [[Said("Bob fixes the red bike", 3, source="caption")]],
    "2" * 16: [[]],
}
GARDEN, GARAGE, SILENCE = TITLES


@pytest.fixture
def library(store: Store) -> Store:
    """Three videos, of which nothing is built; in one nothing happens."""
    for video, lines in LINES.items():
        watch(store, video, lines)
        with store.begin() as session:
            row = update(VideoRow).where(VideoRow.id == video)
            session.execute(row.values(title=TITLES[video], state="done"))
    return store


def built(store: Store, *videos: str) -> None:
    for video in videos:
        build_all(store, video, find_strategy("worldmm"))


QUESTION = Question(text="Who paints the fence?", videos=tuple(TITLES))


def test_the_videos_that_are_built_are_asked_and_the_others_named(library: Store) -> None:
    built(library, GARDEN, SILENCE)
    with Runner(library, WordToolbox()) as runner:
        made = runner.ask(QUESTION, strategy="worldmm")
    assert {citation.video for citation in made.answer.citations} == {GARDEN}
    said = "Left out, since worldmm's memory of them is not built: garage. 'homer build VIDEO"
    assert said in made.answer.note
    assert made.answer.note.count("garage") == 1
    with library.begin() as session:
        events = events_of(session, made.trajectory_id)
    searches = [event for event in events if isinstance(event, EvidenceRetrieved)]
    assert {event.unbuilt for event in searches} == {("garage",)}
    assert replay(library, made.trajectory_id).divergence is None


def test_without_any_that_is_built_the_question_is_refused_with_the_command(library: Store) -> None:
    with Runner(library, WordToolbox()) as runner:
        refusal = (
            "nothing was built of garden, garage, silence for worldmm yet: "
            f"homer build {GARDEN} --memory worldmm"
        )
        with pytest.raises(InputError, match=refusal):
            runner.ask(QUESTION, strategy="worldmm")
        assert "Left out" not in runner.ask(QUESTION, strategy="plain-rag").answer.note
    with library.begin() as session:
        assert len(list_trajectories(session)) == 1


def test_a_tool_that_is_used_once_says_what_it_left_out(library: Store) -> None:
    run, named = StrategyTools(library, WordToolbox()), find_tool("episodic")
    with pytest.raises(InputError, match="nothing was built of"):
        use_once(library, run, named, "the fence", {})
    built(library, GARDEN)
    found, _ = use_once(library, run, named, "the fence", {})
    assert found.unbuilt == ("garage", "silence")
    (note,) = found_of(library, found, unbuilt=named.unbuilt_note).notes
    assert note.startswith("Left out, since worldmm's memory of them is not built")
