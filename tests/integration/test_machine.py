"""The machine end to end: real graph, real Postgres, scripted decisions."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from agent.reasoners.port import Assessment, Conclusion, DecisionContext, Unreadable
from domain.asking import PICTURES_NOT_SEARCHED, Action, Mode, Question, SubtaskState
from domain.errors import BudgetExceeded, ModelError, NotFound
from domain.ledger import SubtaskDraft
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import (
    AnswerProposed,
    Ended,
    Failed,
    Guarded,
    Planned,
    Resolution,
    RoundClosed,
)
from graphs.ask_result import answer_json
from library.rounds import load_history
from store.database import Store
from store.driver import driver_of
from store.queries.trajectories import add_trajectory, append_events, events_of, find_trajectory
from tests.support.asking import latest
from tests.support.machine import (
    FINDS,
    VIDEO,
    Ran,
    ScriptedContexts,
    ScriptedMemory,
    ScriptedReasoner,
    answer,
    evidence,
    found,
    run,
    runner_for,
    search,
    varied,
)

FIVE = ("a red door", "a gate", "a window", "a box", "the kitchen door")
ONE = found(evidence(1), evidence(2))
NEW = [found(evidence(1), evidence(2), focus=1), *FINDS[2:]]


def asked(store: Store, memory: list[Any], **scripts: Any) -> Ran:
    more = {k: scripts.pop(k) for k in ("question", "options", "settings") if k in scripts}
    return run(store, ScriptedReasoner(**scripts), ScriptedMemory(memory), **more)


def resolved(turn: DecisionContext) -> Assessment:
    assert turn.current is not None
    claim = Resolution(subtask=turn.current.id, answer="the door", refs=(turn.evidence[-1].ref,))
    return Assessment(resolved=(claim,))


def test_an_answer_is_cited_recorded_streamed_and_shown_as_rounds(watched_store: Store) -> None:
    ran = asked(
        watched_store,
        [ONE],
        act=[search("Ann opens something"), answer("the door", "m1")],
        assess=[resolved],
        plan=[(SubtaskDraft(text="what Ann opens"), SubtaskDraft(text="whose it is"))],
    )
    made = ran.asked.answer
    assert [c.ref for c in made.citations] == ["m1"]
    assert made.citations[0].text == "Ann opens the door of the house"
    assert [e.ref for e in made.retrieved] == ["m1", "m2"]
    assert 0 < made.confidence <= 0.95
    with watched_store.begin() as session:
        row = find_trajectory(session, ran.asked.trajectory_id[:6])
        stored = events_of(session, row.id)
    assert stored == ran.events
    assert [e.kind for e in stored][:5] == ["question", "plan", "progress", "round", "act"]
    assert (row.state, row.answer, row.machine) == ("done", made, "homer")
    shown = load_history(watched_store, ran.asked.trajectory_id)
    assert [r.subtask for r in shown.rounds] == ["t1", "t2", "t2"]
    assert [r.number for r in shown.rounds] == [1, 2, 3]
    assert shown.rounds[0].found is not None
    assert shown.of(AnswerProposed)[0].round == 2
    assert shown.of(RoundClosed)[0].subtasks[0].state is SubtaskState.RESOLVED
    assert shown.row.answer == made


def test_the_answer_line_of_a_batch_has_exactly_the_fields_promised(watched_store: Store) -> None:
    line = answer_json(asked(watched_store, NEW, options=FIVE).asked, "q7")
    assert list(line) == [
        "id",
        "answer",
        "option",
        "confidence",
        "confidence_level",
        "standing",
        "not_in_memory",
        "citations",
        "retrieved",
        "rounds",
        "tokens",
        "seconds",
        "trajectory",
    ]
    assert (line["id"], line["option"], line["answer"]) == ("q7", "A", "a red door")
    assert line["citations"] == [
        {"start_s": 5.0, "end_s": 10.0, "text": "Ann opens the door of the house", "support": 0.9}
    ]
    assert list(line["retrieved"][0]) == ["start_s", "end_s", "score"]
    assert "option" not in answer_json(asked(watched_store, NEW).asked)


def test_a_citation_that_no_row_has_is_dropped_and_noted(watched_store: Store) -> None:
    ghost = found(evidence(950), evidence(1))
    ran = asked(watched_store, [ghost], conclude=[Conclusion(text="the door", refs=("m950", "m1"))])
    assert [c.ref for c in ran.asked.answer.citations] == ["m1"]
    assert "m950" in ran.of(Failed)[-1].message


def test_two_empty_rounds_saturate_and_open_question_may_be_missing(watched_store: Store) -> None:
    nothing = found(evidence(1, score=0.1), focus=None, close=False)
    drafts = [SubtaskDraft(text=f"fact {i}") for i in range(3)]
    ran = asked(
        watched_store, [nothing], plan=[drafts], conclude=[Conclusion(text="", not_in_memory=True)]
    )
    assert [e.warning[:5] for e in ran.of(RoundClosed)] == ["", "grace", "last ", ""]
    made = ran.asked.answer
    assert (made.not_in_memory, made.citations, made.confidence) == (True, (), 0.0)
    assert len(made.searched) == 4
    assert (made.text, made.note) == ("This is not in memory.", PICTURES_NOT_SEARCHED)


def test_a_forced_mode_that_is_ignored_is_used_anyway(watched_store: Store) -> None:
    ran = asked(
        watched_store,
        [ONE],
        plan=[[SubtaskDraft(text=f"fact {i}") for i in range(3)]],
        settings=AskSettings(saturated_after=20),
        act=[lambda t: search(f"word{t.round}a word{t.round}b")],
    )
    assert [e.rule for e in ran.of(Guarded)].count("mode") >= 3
    assert Mode.VIDEO in [mode for mode, _, _ in ran.memory.searches]


def test_reasoner_that_never_says_anything_readable_still_gets_answer(watched_store: Store) -> None:
    mute = Unreadable("no JSON in the reply")
    ran = asked(
        watched_store,
        NEW,
        options=("a green cup", "the door of the house", "a gate"),
        plan=[mute],
        act=[mute],
        assess=[mute],
        replan=[mute],
        conclude=[mute],
    )
    made = ran.asked.answer
    assert made.option == "B"
    assert made.citations
    assert "No readable answer came" in made.note
    assert ran.of(Planned)[0].subtasks[0].text == "What does Ann open?"
    assert [e.complaint for e in ran.of(Guarded)][:3] == ["no JSON in the reply"] * 3


@pytest.mark.parametrize(
    "said",
    [Conclusion(text="the gate", refs=("m77",)), Conclusion(text=""), Conclusion(text="the gate")],
)
def test_bare_conclusion_is_asked_again_then_quoted(watched_store: Store, said: Conclusion) -> None:
    ran = asked(watched_store, [ONE], conclude=[said])
    assert ran.asked.answer.citations
    assert "Ann opens the door" in ran.asked.answer.text
    assert len([e for e in ran.of(Failed) if e.where == "conclude"]) == 3


def test_once_a_budget_runs_out_the_answer_is_from_what_was_found(watched_store: Store) -> None:
    ran = asked(watched_store, [ONE], act=[varied, BudgetExceeded("the tokens are spent")])
    assert (ran.of(Ended)[0].why, ran.asked.rounds) == ("the tokens are spent", 2)
    assert ran.asked.answer.text == "Ann opens the door of the house"
    spent = BudgetExceeded("the tokens are spent")
    ran = asked(watched_store, [ONE], act=[varied, spent], conclude=[spent])
    assert "No readable answer came" in ran.asked.answer.note


def test_model_out_of_reach_ends_the_trajectory_as_failed_and_says_so(watched_store: Store) -> None:
    with pytest.raises(ModelError, match="refused"):
        asked(watched_store, [ONE], act=[varied, ModelError("the connection was refused")])
    with watched_store.begin() as session:
        row = find_trajectory(session, _only(watched_store))
        last = events_of(session, row.id)[-1]
    assert (row.state, row.answer) == ("failed", None)
    assert isinstance(last, Failed)
    assert "refused" in last.message


def _only(store: Store) -> str:
    with psycopg.connect(store.psycopg_url) as connection:
        (found_id,) = connection.execute("SELECT id FROM trajectories").fetchone() or ("",)
    return str(found_id)


def test_an_interrupted_question_is_stopped_not_failed(watched_store: Store) -> None:
    def interrupt(_: DecisionContext) -> Action:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked(watched_store, [ONE], act=[varied, interrupt])
    with watched_store.begin() as session:
        assert find_trajectory(session, _only(watched_store)).state == "stopped"


def test_an_unknown_video_or_trajectory_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound):
        asked(store, [ONE])
    for name in ("", "ffff"):
        with pytest.raises(NotFound, match="trajectory"):
            load_history(store, name)


def test_a_broken_off_question_goes_on_from_its_last_step(watched_store: Store) -> None:
    whole = asked(watched_store, NEW, plan=[[SubtaskDraft(text="one"), SubtaskDraft(text="two")]])
    power = iter([True, True, True, True, False])

    def act(turn: DecisionContext) -> Action:
        if not next(power, True):
            raise RuntimeError("the power went out")
        return varied(turn)

    reasoner = ScriptedReasoner(
        act=[act], plan=[[SubtaskDraft(text="one"), SubtaskDraft(text="two")]]
    )
    memory = ScriptedMemory(NEW)
    contexts = ScriptedContexts(reasoner, memory)
    with runner_for(watched_store, contexts) as runner:
        with pytest.raises(RuntimeError, match="power"):
            runner.ask(Question(text="What does Ann open?", videos=(VIDEO,)))
        left = latest(watched_store).id
    with runner_for(watched_store, contexts) as runner:
        result = runner.resume(left[:8])
        assert runner.resume(left).answer == result.answer
    assert result.answer == whole.asked.answer
    assert memory.searches == whole.memory.searches, "what is on record is not searched again"
    with watched_store.begin() as session:
        assert events_of(session, left) == whole.events
        assert find_trajectory(session, left).state == "done"


def test_question_that_was_killed_before_its_first_step_begins_there(watched_store: Store) -> None:
    whole = asked(watched_store, NEW, question="Who?")
    contexts = ScriptedContexts(ScriptedReasoner(), ScriptedMemory(NEW))
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
    asked_before = Question(text="Who?", videos=(VIDEO,))
    with watched_store.begin() as session:
        add_trajectory(session, "cc33", asked_before, view, "homer", "local")
        append_events(driver_of(session.connection()), "cc33", 0, whole.events[:1])
    with runner_for(watched_store, contexts) as runner:
        result = runner.resume("cc33")
    assert result.answer == whole.asked.answer
    with watched_store.begin() as session:
        assert events_of(session, "cc33") == whole.events
