"""Where the paper's released code fails, and what happens here instead.

Every test bears the name of a failure of that code and shows the machine doing better at it, for
the departures of section 2 of the specification that no test of a part of the machine has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent.reasoners.port import DecisionContext
from domain.asking import Mode, Question, SubtaskState
from domain.ledger import Edits, Rewrite, SubtaskDraft
from domain.settings import AskSettings
from domain.trajectory import (
    AnswerProposed,
    Assessed,
    Ended,
    EvidenceRetrieved,
    Forced,
    Replanned,
    RoundClosed,
    RoundOpened,
)
from graphs.ask_result import AskResult
from store.database import Store
from tests.support.asking import PARTY
from tests.support.in_memory_machine import play
from tests.support.machine import (
    Ran,
    ScriptedMemory,
    answer,
    claimed,
    edge,
    evidence,
    found,
    fresh,
    search,
    segment,
    varied,
)
from tests.support.obedient_model import LlmToolbox, obedient, purpose_of
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import Event, Said, add_event_graph, watch
from tests.support.runs import ask

CHAIN = (
    SubtaskDraft(text="who opens it"),
    SubtaskDraft(text="what is behind it", depends=("t1",)),
    SubtaskDraft(text="who comes out", depends=("t2",)),
)
FACTS = tuple(SubtaskDraft(text=f"fact {i}") for i in range(4))


def asked(memory: list[Any] | None = None, **scripts: Any) -> Ran:
    return play(ScriptedMemory(memory or fresh(14)), **scripts)


def tasks(ran: Ran) -> list[str]:
    return [e.subtask for e in ran.of(RoundOpened)]


# The ledger


def test_the_first_subtask_of_a_chain_stalls_and_the_others_are_never_searched() -> None:
    assert tasks(asked(plan=[CHAIN])) == ["t1"] * 3 + ["t2"] * 3 + ["t3"] * 3


def test_abandoning_a_subtask_kills_those_that_depend_on_it_unread() -> None:
    ran = asked(plan=[CHAIN], replan=[Edits(abandon=("t1",)), Edits()])
    assert ran.of(Replanned)[0].subtasks[0].state is SubtaskState.ABANDONED
    assert {"t2", "t3"} <= set(tasks(ran))
    output = " ".join(ran.of(Replanned)[0].reasons)
    assert "t2 waits for a subtask that will not be resolved" in output


def test_no_subtask_is_ever_resolved() -> None:
    ran = asked(plan=[CHAIN], assess=[claimed])
    assert tasks(ran) == ["t1", "t2", "t3"]
    last = ran.of(RoundClosed)[-1].subtasks
    assert {s.state for s in last} == {SubtaskState.RESOLVED}
    assert all(s.answer and s.support for s in last)
    assert ran.of(Ended)[0].why == "all subtasks are resolved"


def test_a_subtask_is_called_resolved_without_any_evidence() -> None:
    ran = asked(assess=[lambda t: claimed(t, "m4711")])
    assert all(not e.resolved and "evidence" in e.refused[0] for e in ran.of(Assessed))
    assert ran.asked.rounds == 3


def test_a_rewritten_subtask_has_no_attempts_left() -> None:
    other = Edits(rewrite=(Rewrite(id="t1", text="the thing that Ann opens"),))
    attempts = [(e.text[:9], e.attempt) for e in asked(replan=[other, Edits()]).of(RoundOpened)]
    assert attempts[3:] == [("the thing", 1), ("the thing", 2), ("the thing", 3)]


def test_an_empty_repair_uses_up_one_of_the_two() -> None:
    number = iter(range(9))

    def every_other(_: DecisionContext) -> Edits:
        at = next(number)
        if at % 2 == 0:
            return Edits()
        return Edits(rewrite=(Rewrite(id="t1", text=f"the thing number {at}"),))

    ran = asked([found(evidence(1))], plan=[FACTS], replan=[every_other], settings=PATIENT)
    repairs = [e.empty for e in ran.of(Replanned)]
    assert repairs[0]
    assert repairs.count(False) == 2


PATIENT = AskSettings(saturated_after=20, empty_rounds=20)


# Options and answers


def test_an_early_answer_leaves_subtasks_unread_without_a_word() -> None:
    ran = asked(plan=[CHAIN], act=[varied, answer("the door", "m1"), varied])
    first = ran.of(AnswerProposed)[0]
    assert not first.accepted
    assert all(text in first.complaint for text in ("t2 (what is behind it)", "t3 (who comes out)"))
    assert len(ran.of(EvidenceRetrieved)) > 1
    ran = asked(plan=[CHAIN], act=[varied, answer("the door", "m1")])
    assert [p.accepted for p in ran.of(AnswerProposed)] == [False, True]


# Queries and modes


def test_a_locked_search_is_only_advised_to_move() -> None:
    near = found(evidence(1), neighbours=(segment(2),), edges=(edge(1, 2),))
    stubborn = lambda turn: search(f"word{turn.round}a word{turn.round}b")  # noqa: E731
    ran = asked([near], plan=[FACTS], act=[stubborn], settings=PATIENT)
    assert [e.mode for e in ran.of(Forced)][:2] == [Mode.VIDEO, Mode.NEIGHBOR]
    for forced in ran.of(Forced)[:2]:
        after = [e.mode for e in ran.of(EvidenceRetrieved) if e.round == forced.round + 1]
        assert after == [forced.mode]


def test_an_unknown_neighbour_is_searched_for_as_if_it_were_there() -> None:
    near = found(evidence(1), neighbours=(segment(2),), edges=(edge(1, 2),))
    ran = asked([near], act=[varied, search("the harbour", Mode.NEIGHBOR), varied])
    tried = ran.of(EvidenceRetrieved)[1]
    assert (tried.evidence, tried.focus) == ((), "s1")
    card = [t for name, t in ran.reasoner.turns if name == "act"][2].steps[-1].card
    assert "no neighbour is called 'the harbour'" in card
    assert "segment 2" in card


# Budgets


# The modes, over a real memory


def test_lines_that_were_cut_off_count_as_shown(store: Store) -> None:
    lines = [Said(f"the guest number {i} sings in the garden", i / 4) for i in range(100)]
    watch(store, PARTY, [lines])
    add_event_graph(store, PARTY, [Event(0, "singing in the garden", "Guests sing.", (0,), 0)])
    wordings = ["a guest sings in the garden", "guests and their songs", "songs of a party"]
    _, events, _ = talk(store, searching(*(("video", words) for words in wordings)))
    seen = [e.ref for r in events if isinstance(r, EvidenceRetrieved) for e in r.evidence]
    lines_seen = [ref for ref in seen if ref.startswith("m")]
    assert len(lines_seen) == len(set(lines_seen)) == 100


PIANO = Question(text="What does Ann show?", videos=(PARTY,))


def searching(*searches: tuple[str, str]) -> Callable[[dict[str, Any]], Any]:
    """A model that makes these searches, each a mode and a query, and settles nothing."""
    left = list(searches)

    def said(request: dict[str, Any]) -> Any:
        match purpose_of(request):
            case "act" if left:
                mode, query = left.pop(0)
                return {"action": "search", "mode": mode, "query": query}
            case "act":
                return {"action": "answer", "answer": "", "not_in_memory": True}
            case "assess":
                return {"resolved": []}
            case _:
                return obedient(request)

    return said


def talk(
    store: Store,
    script: Callable[[dict[str, Any]], Any],
    question: Question = PIANO,
    ask_settings: dict[str, Any] | None = None,
) -> tuple[AskResult, list[Any], OpenAIServer]:
    """One question over the real retrievers and the real protocol."""
    events: list[Any] = []
    with OpenAIServer(script) as server:
        toolbox = LlmToolbox(server, ask=ask_settings, images=False)
        made = ask(store, toolbox, question, events.append)
    return made, events, server
