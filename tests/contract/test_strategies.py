"""Every strategy passes the same suite, and so does one in a folder that Homer does not know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import strategies
from agent.strategy import Strategy
from domain.asking import Action, Question
from domain.errors import InputError, NotFound
from domain.trajectory import (
    Acted,
    Ended,
    Event,
    EvidenceRetrieved,
    Failed,
    ForkEdit,
    ModelCalled,
    QuestionAsked,
    RoundClosed,
    RunEvent,
    canonical_event,
)
from graphs.ask_result import StoppedEarly
from graphs.replay import replay
from graphs.runner import Runner
from store.database import Store
from store.queries.trajectories import events_of, list_trajectories
from strategies.registry import find_strategy, strategy_names
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.caption_evaluations import build_all
from tests.support.full_suite import in_full, sample
from tests.support.library_templates import FilledLibraries
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer
from tests.support.prompted_models import obedient_to_all
from tests.support.runs import fork, resume

EXTRA = Path(__file__).parents[1] / "support" / "extra_strategies"
NAMES = ("next-lines", "first-lines-without-rest", *strategy_names())
OPEN = Question(text="What does Bob play on the piano?", videos=(PARTY,))
CHOICE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))
some = pytest.mark.parametrize("strategy", sample(NAMES[::3], NAMES), indirect=True)
"""What machines share is tried with some strategies in the short suite."""


@pytest.fixture(autouse=True)
def extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the folder of another strategy, and nothing else."""
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(EXTRA)])


@pytest.fixture
def party(store: Store, libraries: FilledLibraries) -> Store:
    libraries.fill(store, build_party)
    return store


def build_party(store: Store) -> None:
    """A party that was watched, of which every strategy has built its memory."""
    remember_party(store)
    build_all(store, PARTY, *map(find_strategy, NAMES))


@pytest.fixture(params=NAMES)
def strategy(request: pytest.FixtureRequest) -> Strategy:
    return find_strategy(request.param)


def test_a_strategy_takes_sixty_lines_in_a_folder_of_its_own() -> None:
    """All that is tried here with each strategy holds for it, and nothing else names it."""
    files = (EXTRA / "next_lines").glob("*.py")
    lines = [line for file in files for line in file.read_text().splitlines() if line.strip()]
    assert 0 < len(lines) <= 60


def asked(store: Store, strategy: Strategy, question: Question) -> tuple[str, list[Event]]:
    with Runner(store, WordToolbox()) as runner:
        trajectory = runner.ask(question, strategy=strategy.name).trajectory_id
    with store.begin() as session:
        return trajectory, events_of(session, trajectory)


def searches(events: list[Event]) -> Iterator[EvidenceRetrieved]:
    return (event for event in events if isinstance(event, EvidenceRetrieved))


@pytest.mark.parametrize("question", [in_full(OPEN), CHOICE], ids=["open", "options"])
def test_it_answers_from_its_tools(party: Store, strategy: Strategy, question: Question) -> None:
    _, events = asked(party, strategy, question)
    first, last = events[0], events[-1]
    assert isinstance(first, QuestionAsked)
    assert isinstance(last, Ended)
    assert (first.machine, first.version) == (strategy.name, strategy.version)
    assert {search.mode for search in searches(events)} <= {tool.name for tool in strategy.tools}
    found = {piece.ref for search in searches(events) for piece in search.evidence}
    assert last.answer is not None
    assert {citation.ref for citation in last.answer.citations} <= found
    assert last.answer.option in (*("ABC" if question.options else ()), None)
    assert (last.answer.option is not None) == bool(question.options)


@some
def test_it_is_replayed_without_searching(party: Store, strategy: Strategy) -> None:
    for question in (OPEN, CHOICE):
        trajectory, events = asked(party, strategy, question)
        made = replay(party, trajectory)
        assert made.divergence is None
        assert made.events == len(events)


@some
def test_nothing_later_than_the_moment_is_found(party: Store, strategy: Strategy) -> None:
    _, events = asked(party, strategy, OPEN.model_copy(update={"as_of_ms": 60_000}))
    spans = [piece.span for search in searches(events) for piece in search.evidence]
    assert all(span.end_ms <= 60_000 for span in spans)


@some
def test_a_fork_starts_from_a_round_and_is_replayed(party: Store, strategy: Strategy) -> None:
    trajectory, events = asked(party, strategy, OPEN)
    first = next(event.action for event in events if isinstance(event, Acted) and event.action)
    edit = ForkEdit(action=first.model_copy(update={"query": "the old piano"}))
    made = fork(party, WordToolbox(), trajectory, 1, edit)
    with party.begin() as session:
        events = events_of(session, made.trajectory_id)
    assert isinstance(events[0], QuestionAsked)
    assert events[0].machine == strategy.name
    assert "the old piano" in {search.query for search in searches(events)}
    assert replay(party, made.trajectory_id).divergence is None


@some
def test_an_answered_question_is_not_asked_again(party: Store, strategy: Strategy) -> None:
    trajectory, events = asked(party, strategy, OPEN)
    resume(party, WordToolbox(), trajectory)
    with party.begin() as session:
        assert events_of(session, trajectory) == events


@some
def test_search_that_broke_off_is_resumed_to_same_events(party: Store, strategy: Strategy) -> None:
    _, whole = asked(party, strategy, OPEN)

    def broken(event: RunEvent) -> None:
        if isinstance(event, Acted):
            raise RuntimeError("the power went out")

    with Runner(party, WordToolbox()) as runner, pytest.raises(RuntimeError):
        runner.ask(OPEN, broken, strategy=strategy.name)
    with party.begin() as session:
        broken_off = list_trajectories(session)[0]
    assert broken_off.answer is None
    made = resume(party, WordToolbox(), broken_off.id)
    with party.begin() as session:
        resumed = [e for e in events_of(session, made.trajectory_id) if not isinstance(e, Failed)]
    assert list(map(canonical_event, resumed)) == list(map(canonical_event, whole))


@some
def test_ctrl_c_ends_with_what_was_found_so_far(party: Store, strategy: Strategy) -> None:
    def stop(event: RunEvent) -> None:
        if isinstance(event, RoundClosed):
            raise KeyboardInterrupt

    with Runner(party, WordToolbox()) as runner, pytest.raises(StoppedEarly) as stopped:
        runner.ask(OPEN, stop, strategy=strategy.name)
    early = stopped.value.asked
    assert "best answer so far" in early.answer.note
    assert replay(party, early.trajectory_id).divergence is None


def test_with_a_language_model_its_calls_are_on_record(party: Store, strategy: Strategy) -> None:
    heard: list[Event] = []
    with OpenAIServer(obedient_to_all) as server, Runner(party, LlmToolbox(server)) as runner:
        made = runner.ask(CHOICE, collect_events(heard), strategy=strategy.name)
    calls = sum(isinstance(event, ModelCalled) for event in heard)
    assert calls > 0
    replayed = replay(party, made.trajectory_id)
    assert replayed.divergence is None
    assert replayed.calls == calls


def test_calls_of_a_tool_are_on_record_and_repeated_by_the_record(party: Store) -> None:
    heard: list[Event] = []
    with OpenAIServer(obedient) as server, Runner(party, LlmToolbox(server)) as runner:
        made = runner.ask(OPEN, collect_events(heard), strategy="first-lines")
        asked_for = [event.purpose for event in heard if isinstance(event, ModelCalled)]
        assert asked_for[:2] == ["remark", "remark"]
        assert len(server.requests) == len(asked_for)
    assert [search.searched for search in searches(heard)] == ["no remark", "no remark"]
    again = replay(party, made.trajectory_id)
    assert again.divergence is None
    assert again.calls == len(asked_for)


def test_a_call_of_a_tool_that_was_paid_for_is_not_made_again(party: Store) -> None:
    def broken(event: RunEvent) -> None:
        if isinstance(event, EvidenceRetrieved):
            raise RuntimeError("the power went out")

    with OpenAIServer(obedient) as server:
        with Runner(party, LlmToolbox(server)) as runner, pytest.raises(RuntimeError):
            runner.ask(OPEN, broken, strategy="first-lines")
        paid = len(server.requests)
        with party.begin() as session:
            broken_off = list_trajectories(session)[0]
        made = resume(party, LlmToolbox(server), broken_off.id)
        with party.begin() as session:
            events = events_of(session, made.trajectory_id)
        calls = sum(isinstance(event, ModelCalled) for event in events)
        assert paid == 1
        assert len(server.requests) == calls
    assert replay(party, made.trajectory_id).divergence is None


def test_a_strategy_is_ablated_by_each_part_and_by_all_of_several() -> None:
    ablated = [one.name for one in find_strategy("memdreamer").ablations()]
    assert ablated == [f"memdreamer-without-{x}" for x in ("graph", "hierarchy", "graph-hierarchy")]
    assert [one.name for one in find_strategy("first-lines").ablations()] == [
        "first-lines-without-rest"
    ]
    assert [*find_strategy("plain-rag").ablations()] == []


def test_a_part_that_is_switched_off_finds_less_in_the_same_memory(party: Store) -> None:
    whole, less = (
        [
            piece
            for search in searches(asked(party, find_strategy(name), OPEN)[1])
            for piece in search.evidence
        ]
        for name in ("first-lines", "first-lines-without-rest")
    )
    assert len(less) == 2 < len(whole)
    assert {piece.ref for piece in less} < {piece.ref for piece in whole}
    with pytest.raises(NotFound, match="has no part 'wings' to switch off: it has rest"):
        find_strategy("first-lines-without-wings")


def test_a_fork_cannot_use_a_tool_that_the_strategy_has_not(party: Store) -> None:
    trajectory, _ = asked(party, find_strategy("first-lines"), OPEN)
    edit = ForkEdit(action=Action(kind="search", mode="telescope", query="stars"))
    with pytest.raises(InputError, match="has no tool 'telescope': use one of lines"):
        fork(party, WordToolbox(), trajectory, 1, edit)
    edit = ForkEdit(action=Action(kind="search", mode="lines", arguments={"last": 3}))
    with pytest.raises(InputError, match="lines: first: Field required"):
        fork(party, WordToolbox(), trajectory, 1, edit)


def test_a_fork_has_the_tools_of_its_profile(party: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    names, whole = ["lines"], find_strategy("first-lines")
    pages = replace(whole.tool("lines"), name="pages", needs=lambda _: "pages" in names)
    more = replace(whole, tools=(*whole.tools, pages))
    monkeypatch.setattr(import_module("strategies.first_lines.strategy"), "STRATEGY", more)
    trajectory, events = asked(party, whole, OPEN)
    assert isinstance(events[0], QuestionAsked)
    assert events[0].setup.tools == ("lines",)
    names.append("pages")
    made = fork(party, WordToolbox(), trajectory, 1, ForkEdit())
    with party.begin() as session:
        first = events_of(session, made.trajectory_id)[0]
    assert isinstance(first, QuestionAsked)
    assert first.setup.tools == ("lines", "pages")


def test_a_strategy_that_is_not_there_is_named(party: Store) -> None:
    with pytest.raises(NotFound, match=r"no strategy 'oracle': use one of .*first-lines, homer"):
        asked(party, find_strategy("oracle"), OPEN)
