"""The forms that a model is held to allow what the guard would accept, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from agent.reasoners.port import CompletedRound, DecisionContext
from agent.reasoners.replies import ActReply, ConcludeReply, PlanReply
from agent.reasoners.reply_schemas import (
    LONGEST,
    act_form,
    assess_form,
    conclude_form,
    with_short_texts,
)
from agent.state import Focus
from domain.asking import Action, Ledger, Mode, Question
from domain.ledger import SubtaskDraft, begin_attempt, bind_evidence, new_ledger
from domain.memories import MemoryView, Scope
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved
from tests.support.machine import VIDEO, evidence, search

FOCUS = Focus(id=1, video=VIDEO, label="arrival")
STEP = CompletedRound(round=1, subtask="t1", action=search("a door opens"), lines=())


def ledger() -> Ledger:
    made, _ = new_ledger([SubtaskDraft(text="what"), SubtaskDraft(text="why")], "q", AskSettings())
    return bind_evidence(begin_attempt(made, "t1"), "t1", ["m1", "s3"], 0.5)


def turn(options: tuple[str, ...] = (), **more: Any) -> DecisionContext:
    view = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
    question = Question(text="What?", videos=(VIDEO,), options=options)
    return DecisionContext(question=question, view=view, ledger=ledger(), **more)


def field(form: type[Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = form.model_json_schema()["properties"][name]
    return found


def test_before_any_search_there_is_no_answer_and_no_move() -> None:
    first = act_form(turn(), narrow=False)
    assert field(first, "action")["enum"] == ["search"]
    assert "answer" not in first.model_json_schema()["properties"]
    assert field(first, "mode")["enum"] == ["event", "keyframe", "video"]
    later = act_form(turn(steps=(STEP,), focus=FOCUS), narrow=False)
    assert field(later, "action")["enum"] == ["search", "answer"]
    assert "neighbor" in field(later, "mode")["enum"]


@pytest.mark.parametrize("count", [2, 5, 26])
def test_an_answer_is_one_of_the_options_however_many(count: int) -> None:
    asked = turn(tuple(f"thing {i}" for i in range(count)), steps=(STEP,))
    last = chr(ord("A") + count - 1)
    answers = field(act_form(asked, narrow=False), "answer")["enum"]
    assert (answers[0], answers[-1], len(answers)) == ("", last, count + 1)
    conclusion = conclude_form(asked, narrow=False)
    assert field(conclusion, "option")["enum"][-1] == last
    assert field(conclusion, "not_in_memory")["enum"] == [False]
    assert "enum" not in field(conclude_form(turn(), narrow=False), "option")


def test_a_model_in_this_process_may_cite_only_what_there_is_and_must_be_brief() -> None:
    asked = turn(steps=(STEP,), evidence=(evidence(1), evidence(4)))
    asked = asked.model_copy(
        update={"found": EvidenceRetrieved(mode=Mode.VIDEO, query="q", evidence=(evidence(4),))}
    )
    act = field(act_form(asked, narrow=True), "citations")
    assert (act["items"]["enum"], act["maxItems"]) == (["m1", "s3"], 2)
    assert field(conclude_form(asked, narrow=True), "citations")["items"]["enum"] == ["m1", "m4"]
    claim = assess_form(asked, narrow=True).model_json_schema()["$defs"]["ResolutionReply"]
    assert claim["properties"]["evidence"]["items"]["enum"] == ["m4"]
    assert claim["properties"]["subtask"]["enum"] == ["t1", "t2"]
    assert claim["properties"]["answer"]["maxLength"] == LONGEST
    plan = with_short_texts(PlanReply, narrow=True).model_json_schema()
    assert plan["$defs"]["SubtaskReply"]["properties"]["text"]["maxLength"] == LONGEST
    nothing = act_form(turn(steps=(STEP,)).model_copy(update={"ledger": Ledger()}), narrow=True)
    assert "maxLength" in field(nothing, "answer")
    assert field(nothing, "citations")["maxItems"] == 0


def test_what_comes_back_is_read_as_ever_whatever_was_told() -> None:
    form = act_form(turn(("a", "b")), narrow=True)
    said = form.model_validate({"action": "Answer", "answer": "maybe", "citations": "m77"})
    assert isinstance(said, ActReply)
    assert said.decision() == Action(kind="answer", answer="maybe", citations=("m77",))
    assert form.__name__ == "ActReply"
    assert isinstance(conclude_form(turn(), True).model_validate({}), ConcludeReply)
