"""How much of the memory is searched can be cut down, as in the paper's ablation."""

from __future__ import annotations

from domain.asking import Mode, Question
from domain.evaluation_options import AblationStage
from domain.settings import AskSettings
from domain.trajectory import Event, EvidenceRetrieved, Prompted, QuestionAsked
from graphs.runner import Runner
from store.database import Store
from store.queries.trajectories import events_of
from tests.support.asking import PARTY, WordToolbox
from tests.support.obedient_model import LlmToolbox, texts_of
from tests.support.openai_server import OpenAIServer
from tests.support.searching_model import searching

WHY = Question(text="Why did they move inside, and what does Bob play?", videos=(PARTY,))


def events(store: Store, settings: AskSettings, question: Question = WHY) -> list[Event]:
    with Runner(store, WordToolbox(), settings=settings) as runner:
        asked = runner.ask(question)
    with store.begin() as session:
        return events_of(session, asked.trajectory_id)


def searches(store: Store, stage: AblationStage) -> list[EvidenceRetrieved]:
    output = events(store, AskSettings(memory=stage))
    found = [event for event in output if isinstance(event, EvidenceRetrieved) and event.round]
    assert found, "nothing was searched"
    return found


def test_the_entity_graph_alone_has_no_events(party: Store) -> None:
    found = searches(party, AblationStage.ENTITY)
    assert {event.mode for event in found} == {Mode.VIDEO}
    assert all(event.focus is None and not event.neighbours for event in found)
    assert all(e.ref.startswith("m") for event in found for e in event.evidence)


def test_event_nodes_alone_have_no_neighbours(party: Store) -> None:
    found = searches(party, AblationStage.EVENTS)
    assert Mode.EVENT in {event.mode for event in found} <= {Mode.EVENT, Mode.VIDEO}
    assert any(event.focus for event in found)
    assert not any(event.neighbours for event in found)


def test_the_record_says_with_how_much_it_was_searched(party: Store) -> None:
    first = events(party, AskSettings(memory=AblationStage.EVENTS))[0]
    assert isinstance(first, QuestionAsked)
    assert first.setup.settings.memory is AblationStage.EVENTS


def test_a_model_is_reported_which_modes_there_are_and_held_to_them(party: Store) -> None:
    settings = AskSettings(memory=AblationStage.ENTITY)
    with OpenAIServer(searching) as server:
        with Runner(party, LlmToolbox(server), settings=settings) as runner:
            asked = runner.ask(WHY)
        output = "\n".join(text for request in server.requests for text in texts_of(request))
    with party.begin() as session:
        left = events_of(session, asked.trajectory_id)
    assert any(isinstance(event, Prompted) for event in left)
    assert "The only modes there are now: video." in output
    assert "There is no mode event here: search in mode video." in output
    modes = {event.mode for event in left if isinstance(event, EvidenceRetrieved) and event.round}
    assert modes == {Mode.VIDEO}
