"""A trajectory that goes on from one of its rounds with something changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from domain.asking import Action, Mode
from domain.errors import InputError, ModelError, NotFound
from domain.trajectory import (
    Acted,
    Event,
    EvidenceRetrieved,
    Forked,
    ForkEdit,
    ModelCalled,
    PlanLine,
    QuestionAsked,
    RoundOpened,
)
from graphs.ask_result import AskResult
from graphs.forks import editable
from graphs.replay import replay
from library.rounds import compare_trajectories, load_history
from library.trajectories import usage_in
from store.database import Store
from store.queries.trajectories import calls_of, events_of, find_trajectory, list_trajectories
from tests.support.asking import WordToolbox
from tests.support.full_suite import in_full
from tests.support.library_templates import FilledLibraries
from tests.support.obedient_model import LlmToolbox
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.runs import fork, resume
from tests.support.searching_model import PLAY, ask_at_party, searching


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(searching) as running:
        yield running


@pytest.fixture
def parent(party: Store, libraries: FilledLibraries) -> AskResult:
    return libraries.fill(party, ask_at_party)


def events(store: Store, trajectory: str) -> list[Event]:
    with store.begin() as session:
        return events_of(session, trajectory)


def later(store: Store, trajectory: str) -> list[Event]:
    output = events(store, trajectory)
    return output[next(at for at, e in enumerate(output) if isinstance(e, Forked)) :]


def forked_at(
    store: Store, server: OpenAIServer, parent: AskResult, number: int, edit: ForkEdit | None = None
) -> AskResult:
    made = fork(store, LlmToolbox(server), parent.trajectory_id, number, edit or ForkEdit())
    again = replay(store, made.trajectory_id)
    assert again.divergence is None, again.divergence
    return made


@pytest.mark.parametrize("number", [1, in_full(2), in_full(3)])
def test_a_fork_takes_over_what_came_before_and_calls_models_from_there_on(
    party: Store, server: OpenAIServer, parent: AskResult, number: int
) -> None:
    before, paid = events(party, parent.trajectory_id), len(server.requests)
    made = forked_at(party, server, parent, number)
    output = events(party, made.trajectory_id)
    at, mark = next((at, e) for at, e in enumerate(output) if isinstance(e, Forked))
    assert output[1:at] == before[1:at]
    assert isinstance(output[at - 1], RoundOpened)
    assert output[at - 1].round == number
    assert output[at] == Forked(
        round=number, parent=parent.trajectory_id, at=number, edit=ForkEdit(), start=mark.start
    )
    own = [e for e in output[at:] if isinstance(e, ModelCalled)]
    assert len(own) == len(server.requests) - paid
    assert "plan" not in {e.purpose for e in own}
    with party.begin() as session:
        assert len(calls_of(session, made.trajectory_id)) == len(own)
        row = find_trajectory(session, made.trajectory_id)
    assert (row.state, row.question) == ("done", PLAY)
    assert (usage_in(output).total.calls, made.answer) == (len(own), parent.answer)
    assert output[at + 1 :] == [e for e in before[at:] if not isinstance(e, ModelCalled)] or own
    assert events(party, parent.trajectory_id) == before


def test_an_edited_action_is_taken(party: Store, server: OpenAIServer, parent: AskResult) -> None:
    action = Action(kind="search", mode=Mode.VIDEO, query="Ann opens the wooden gate")
    made = forked_at(party, server, parent, 2, ForkEdit(action=action))
    own = later(party, made.trajectory_id)
    first = next(e for e in own if isinstance(e, Acted))
    found = next(e for e in own if isinstance(e, EvidenceRetrieved))
    assert first.action == action
    assert (found.mode, found.query) == (Mode.VIDEO, action.query)
    assert "act" not in [e.purpose for e in own if isinstance(e, ModelCalled) and e.round == 2]


def test_edited_evidence_is_found(party: Store, server: OpenAIServer, parent: AskResult) -> None:
    was = editable(events(party, parent.trajectory_id), 2)
    assert was.evidence
    kept = was.evidence[-1:]
    made = forked_at(party, server, parent, 2, ForkEdit(evidence=kept))
    own = later(party, made.trajectory_id)
    assert next(e for e in own if isinstance(e, Acted)).action == was.action
    assert next(e for e in own if isinstance(e, EvidenceRetrieved)).evidence == kept
    assert next(e.purpose for e in own if isinstance(e, ModelCalled)) == "assess"
    found = compare_trajectories(
        load_history(party, parent.trajectory_id), load_history(party, made.trajectory_id)
    )
    assert (found.evidence and found.evidence.round) == 2


@pytest.mark.full
def test_an_edited_plan_opens_anew(party: Store, server: OpenAIServer, parent: AskResult) -> None:
    plan = (PlanLine(id="t2", text="who washes the plates", depends=("t1",)), PlanLine(text="why"))
    made = forked_at(party, server, parent, 2, ForkEdit(plan=plan))
    opened = [e for e in later(party, made.trajectory_id) if isinstance(e, RoundOpened)]
    assert opened[0].round == 2
    assert "t1" not in {e.subtask for e in opened}
    assert {e.text for e in opened} == {"who washes the plates", "why"}


@pytest.mark.full
def test_unchanged_is_no_edit(party: Store, server: OpenAIServer, parent: AskResult) -> None:
    same = editable(events(party, parent.trajectory_id), 2)
    fork_event = later(party, forked_at(party, server, parent, 2, same).trajectory_id)[0]
    assert isinstance(fork_event, Forked)
    assert fork_event.edit == ForkEdit()


def test_another_model_goes_on(party: Store, server: OpenAIServer, parent: AskResult) -> None:
    paid = len(server.requests)
    made = fork(party, WordToolbox(), parent.trajectory_id, 2, ForkEdit(profile="local"))
    assert len(server.requests) == paid
    first = events(party, made.trajectory_id)[0]
    assert isinstance(first, QuestionAsked)
    assert (first.profile, first.reasoner, first.setup.model) == ("local", "local", "")
    assert "without a language model" in made.answer.note
    assert replay(party, made.trajectory_id).whole


@pytest.mark.full
def test_a_fork_of_a_fork(party: Store, server: OpenAIServer, parent: AskResult) -> None:
    action = Action(kind="search", mode=Mode.VIDEO, query="Ann opens the wooden gate")
    child = forked_at(party, server, parent, 2, ForkEdit(action=action))
    grandchild = forked_at(party, server, child, 3)
    output = [e for e in events(party, grandchild.trajectory_id) if isinstance(e, Forked)]
    assert [(e.parent, e.at) for e in output] == [
        (parent.trajectory_id, 2),
        (child.trajectory_id, 3),
    ]
    plan = (PlanLine(id="t1", text="what anybody plays"),)
    forked_at(party, server, grandchild, 2, ForkEdit(plan=plan))


def test_broken_fork_keeps_its_edit(party: Store, server: OpenAIServer, parent: AskResult) -> None:
    found = editable(events(party, parent.trajectory_id), 2).evidence
    assert found is not None
    kept = found[:1]
    whole = forked_at(party, server, parent, 2, ForkEdit(evidence=kept))
    failing = iter([Answer({"error": {"message": "no"}}, status=500)])
    with OpenAIServer(lambda r: next(failing, None) or searching(r)) as shaky:
        with pytest.raises(ModelError):
            fork(party, LlmToolbox(shaky), parent.trajectory_id, 2, ForkEdit(evidence=kept))
        with party.begin() as session:
            left = list_trajectories(session)[0]
        assert left.state == "failed"
        made = resume(party, LlmToolbox(shaky), left.id)
    assert made.answer == whole.answer
    assert len(events(party, left.id)) == len(events(party, whole.trajectory_id))
    assert replay(party, left.id).whole


@pytest.mark.parametrize(
    ("number", "edit", "output"),
    [
        (99, ForkEdit(), "no round 99"),
        (1, ForkEdit(plan=(PlanLine(id="t7", text="what"),)), "t7"),
        (1, ForkEdit(plan=(PlanLine(id="t2", text="who sings"),)), "dependencies"),
        (1, ForkEdit(plan=tuple(PlanLine(text=f"fact {i}") for i in range(9))), "at most 5"),
    ],
)
def test_what_cannot_be_forked_is_said_and_leaves_nothing(
    party: Store, server: OpenAIServer, parent: AskResult, number: int, edit: ForkEdit, output: str
) -> None:
    with pytest.raises(InputError, match=output):
        fork(party, LlmToolbox(server), parent.trajectory_id, number, edit)
    with party.begin() as session:
        assert len(list_trajectories(session)) == 1


def test_a_round_that_is_not_there_cannot_be_shown(party: Store, parent: AskResult) -> None:
    with pytest.raises(NotFound, match="no round 12"):
        editable(events(party, parent.trajectory_id), 12)
