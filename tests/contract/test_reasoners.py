"""What every reasoner gives through the machine: one suite, both reasoners, real retrievers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from string import ascii_uppercase

import pytest

from domain.asking import Question
from domain.trajectory import (
    Acted,
    AnswerProposed,
    Ended,
    Event,
    EvidenceRetrieved,
    Guarded,
    Planned,
    QuestionAsked,
    RoundOpened,
)
from graphs.ask_result import AskResult
from library.rounds import load_history
from models.toolbox import Toolbox
from retrieval.quotes_and_citations import cite
from store.database import Store
from store.queries.clips import memory_view
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.full_suite import in_full, sample
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer
from tests.support.runs import ask

SEVEN = ("Bob", "a guest", "nobody", "a dog", "the neighbour", "a child", "Ann")
OPEN = (
    "What does Bob play?",
    "Why did the party move inside?",
    "Did Ann open the gate?",
    "Who washes the plates and what does Ann show?",
    "What is the video mainly about?",
)
Run = Callable[..., tuple[AskResult, list[Event]]]


@pytest.fixture(params=["local", "llm"])
def toolbox(request: pytest.FixtureRequest) -> Iterator[Toolbox]:
    if request.param == "local":
        yield WordToolbox()
        return
    with OpenAIServer(obedient) as server:
        yield LlmToolbox(server)


@pytest.fixture
def asking(store: Store, toolbox: Toolbox) -> Run:
    def run(
        text: str, options: tuple[str, ...] = (), as_of_ms: int | None = None, clips: int = 6
    ) -> tuple[AskResult, list[Event]]:
        with store.begin() as session:
            if not session.connection().exec_driver_sql("SELECT 1 FROM videos").first():
                remember_party(store, clips)
        events: list[Event] = []
        question = Question(text=text, videos=(PARTY,), options=options, as_of_ms=as_of_ms)
        return ask(store, toolbox, question, collect_events(events)), events

    return run


@pytest.mark.parametrize("text", sample(OPEN[3:4], OPEN))
def test_an_open_question_is_planned_searched_and_answered_with_rows_of_the_memory(
    asking: Run, store: Store, text: str
) -> None:
    asked, events = asking(text)
    answer = asked.answer
    assert answer.text.strip()
    assert answer.option is None
    assert answer.citations or answer.not_in_memory
    with store.begin() as session:
        found = cite(session, memory_view(session, [PARTY]), [c.ref for c in answer.citations])
    assert found.citations == tuple(c.unscored for c in answer.citations)
    assert found.unknown == ()
    plan = next(e for e in events if isinstance(e, Planned))
    assert all(s.text.strip() for s in plan.subtasks)
    assert plan.dropped == ()
    # Assert that it searches before it answers, with valid actions, in few rounds.
    kinds = [type(e) for e in events]
    assert kinds.index(EvidenceRetrieved) < kinds.index(AnswerProposed)
    assert 1 <= asked.rounds <= 10
    assert max([e.attempt for e in events if isinstance(e, RoundOpened)]) <= 3
    for before, after in pairwise(events):
        if isinstance(after, EvidenceRetrieved) and isinstance(before, Guarded):
            assert before.accepted
    acted = [e for e in events if isinstance(e, Acted)]
    assert acted
    assert all(e.attempt == 0 for e in acted)


@pytest.mark.parametrize("count", sample([7], [2, 5, 7]))
def test_one_option_and_a_complete_record(asking: Run, store: Store, count: int) -> None:
    options = SEVEN[-count:]
    asked, events = asking("Who opens the gate?", options)
    answer = asked.answer
    assert answer.option is not None
    assert answer.option in ascii_uppercase[:count]
    assert answer.text == options[ascii_uppercase.index(answer.option)]
    assert not answer.not_in_memory
    assert answer.citations
    assert isinstance(events[0], QuestionAsked)
    assert isinstance(events[-1], Ended)
    assert events[-1].answer == answer
    assert [e.round for e in events] == sorted(e.round for e in events)
    history = load_history(store, asked.trajectory_id)
    assert (list(history.events), len(history.rounds)) == (events, asked.rounds)
    assert 1 <= len(history.plan) <= 5
    assert 0 < answer.confidence <= 0.95
    assert answer.retrieved
    for moment in answer.retrieved:
        assert 0 <= moment.score <= 1
        assert moment.ref.startswith("s") or moment.span.length_ms <= 30_000


@pytest.mark.parametrize("options", [in_full(((),)), SEVEN[-4:]])
def test_the_answer_as_of_a_moment_is_the_same_bytes_after_more_was_watched(
    store: Store, toolbox: Toolbox, options: tuple[str, ...]
) -> None:
    question = Question(
        text="Who opens the gate?", videos=(PARTY,), options=options, as_of_ms=90_000
    )
    remember_party(store, 3)
    before = ask(store, toolbox, question)
    # The rest of the party, with a patch that tells more of what was known.
    from tests.support.asking import CLIPS, EVENTS
    from tests.support.remembered import add_event_graph, watch

    watch(store, PARTY, CLIPS[3:], first=3)
    later = [event for event in EVENTS if event.since >= 3]
    assert [event.number for event in later]
    add_event_graph(store, PARTY, later)
    after = ask(store, toolbox, question)
    assert after.answer.model_dump_json() == before.answer.model_dump_json()
    assert (after.rounds, after.tokens) == (before.rounds, before.tokens)


def test_nothing_watched_yet_is_nothing_in_memory(asking: Run) -> None:
    asked, _ = asking("What does Bob play?", as_of_ms=5_000)
    assert asked.answer.not_in_memory
    assert asked.answer.searched
    asked, _ = asking("What does Bob play?", SEVEN, as_of_ms=5_000)
    assert asked.answer.option is not None
    assert asked.answer.option in ascii_uppercase[: len(SEVEN)]
    assert asked.answer.citations == ()
