"""Whatever a language model says, in whatever form, the machine ends with a legal answer.

The real reasoner, calls and chat over a scripted model; only the memory and the store are not real.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.model_calls import Calls, RunBudget
from agent.reasoners.llm import LlmReasoner
from domain.asking import Ledger, Question
from domain.calls import CallRecord
from domain.settings import AskSettings
from domain.trajectory import (
    AnswerProposed,
    Ended,
    EvidenceRetrieved,
    Guarded,
    ModelCalled,
    RoundClosed,
    RoundOpened,
)
from models.chat import Replay, Sink, StructuredChat
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from tests.support.event_graph_invariants import check_kept, check_legal
from tests.support.full_suite import examples
from tests.support.in_memory_machine import InMemoryRecorder, context_of, run_machine
from tests.support.machine import VIDEO, ScriptedMemory, evidence, found, fresh
from tests.support.scripted_chat import scripted

PLAIN = ("a red car", "", "who?", "the door opens", "B", "t1", "not in memory", "x" * 9_000)
WILD = ("\x00nul\x00", "\ud800 half", "\u202e", "[m1]", "</memory> answer B", "<character_99> did")
TEXTS = st.sampled_from([*PLAIN, *WILD])
IDS = st.sampled_from(["t1", "t2", "t9", "T3", 1, "", None, "m1", "nonsense"])
REFS = st.lists(st.sampled_from(["m1", "[m2]", "m1, m2", "m950", "s1", "k4", "", 7, None]))
ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SUBTASK = st.fixed_dictionaries({"text": TEXTS}, optional={"depends": st.lists(IDS) | IDS})
CLAIM = st.fixed_dictionaries({"subtask": IDS, "answer": TEXTS, "evidence": REFS})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "subtasks": st.lists(SUBTASK | TEXTS, max_size=9),
    "action": st.sampled_from(["search", "answer", "Search", "event", "dance", ""]),
    "mode": st.sampled_from(["event", "video", "neighbor", "KEYFRAME", "radar", None]),
    "query": TEXTS,
    "answer": TEXTS,
    "citations": REFS,
    "not_in_memory": st.sampled_from([True, False, None, "no"]),
    "resolved": st.lists(CLAIM, max_size=3),
    "reopened": st.lists(IDS, max_size=3),
    "rewrite": st.lists(st.fixed_dictionaries({"id": IDS, "text": TEXTS}), max_size=3),
    "add": st.lists(SUBTASK, max_size=6),
    "abandon": st.lists(IDS, max_size=9),
    "option": st.sampled_from(["A", "b", "Z", "A nice guess", None, ""]),
    "comparison": TEXTS,
}
FITTING = st.fixed_dictionaries({}, optional=FIELDS)
ALMOST = st.fixed_dictionaries({}, optional={name: FIELDS[name] | ODD for name in FIELDS})
DRESSES = st.sampled_from(
    ["{}", "Sure!\n```json\n{}\n```", "<think>{{</think>{}", "{} and so on }}", "[{}]", "'{}'"]
)
JSON = st.builds(json.dumps, FITTING | ALMOST | ODD)
REPLIES = st.one_of(
    st.builds(json.dumps, FITTING),
    JSON,
    st.builds(
        "Reason: {}\nAction: {}\nContent: {}".format,
        TEXTS,
        st.sampled_from(["Search", "Answer", "Dance", ""]),
        st.sampled_from(["event: a red car", "B [m1]", "[m950]", "not in memory", "", "x" * 9_000]),
    ),
    st.builds(lambda dress, text: dress.replace("{}", text), DRESSES, JSON),
    st.builds(lambda text, cut: text[:cut], JSON, st.integers(0, 60)),
    st.builds(lambda text: text.replace('"', "'"), JSON),
    st.text(max_size=60),
    st.sampled_from(["", "{" * 500, "[" * 9_000, "null", "{}", '{"action"', "x" * 50_000]),
)
FINDS = st.sampled_from(
    [fresh(9), [found(evidence(1))], [found(focus=None, close=False)], [found(evidence(950))]]
)
SETTINGS = st.sampled_from(
    [AskSettings(), AskSettings(tokens=9_000), AskSettings(tokens=700), AskSettings(rounds=1)]
)


class QuietCalls(Calls):
    """Calls without a store."""

    def _check_not_deleted(self) -> None:
        """There is no store."""

    def _store_call(self, call: CallRecord) -> None:
        json.dumps(call.reply).encode()


@pytest.mark.parametrize("options", [(), ("a car", "the gate", "B", "nothing")])
@given(replies=st.lists(REPLIES, min_size=1, max_size=25), finds=FINDS, ask=SETTINGS)
@example(replies=["\x00"], finds=fresh(3), ask=AskSettings())
@example(replies=['{"subtasks": [{"text": "\\ud800"}]}'], finds=fresh(3), ask=AskSettings())
@settings(max_examples=examples(4, 60))
def test_no_reply_of_a_language_model_breaks_the_machine(
    options: tuple[str, ...], replies: list[str], finds: list[Any], ask: AskSettings
) -> None:
    chat = scripted(lambda _: replies.pop(0) if len(replies) > 1 else replies[0])
    spec = ChatSpec(model="openai:odd", base_url="http://127.0.0.1:9/v1", retries=0, images=False)
    profile = Profile(name="odd", reasoner="llm", chat={"default": spec})
    toolbox = Toolbox(profile, Path("absent"), chat)

    def open_chat(sink: Sink, replay: Replay) -> StructuredChat:
        return toolbox.chat("reasoner", sink, replay, live=True)

    meter, recorder = RunBudget(ask), InMemoryRecorder()
    calls = QuietCalls(None, recorder, meter, open_chat)  # type: ignore[arg-type]
    workspace = context_of(LlmReasoner(calls, ask), ScriptedMemory(finds), ask, meter, recorder)
    _, events = run_machine(
        workspace, Question(text="What opens?", videos=(VIDEO,), options=options)
    )
    (ended,) = [e for e in events if isinstance(e, Ended)]
    assert ended is events[-1]
    assert ended.answer is not None
    answer = ended.answer
    if options:
        assert answer.option in ("A", "B", "C", "D")
        assert answer.text == options["ABCD".index(answer.option)]
    else:
        assert answer.option is None
        assert answer.text
        assert answer.not_in_memory == (not answer.citations)
        assert "character_99" not in answer.text
    seen = {x.ref for e in events if isinstance(e, EvidenceRetrieved) for x in e.evidence}
    assert {c.ref for c in answer.citations} <= seen
    assert len([e for e in events if isinstance(e, AnswerProposed) and e.accepted]) == 1
    rounds = [e.round for e in events if isinstance(e, RoundOpened)]
    assert rounds == list(range(1, len(rounds) + 1))
    assert len(rounds) <= ask.rounds
    assert meter.tokens <= ask.tokens
    assert meter.tokens == sum(
        e.tokens_in + e.tokens_out for e in events if isinstance(e, ModelCalled)
    )
    for number in rounds:
        refused = [e for e in events if isinstance(e, Guarded) and e.round == number]
        assert sum(not e.accepted for e in refused) <= ask.retries + 2
    before: tuple[Any, ...] = ()
    for closed in (e for e in events if isinstance(e, RoundClosed)):
        ledger = Ledger(subtasks=closed.subtasks)
        check_legal(ledger, ask)
        check_kept(before, ledger)
        before = closed.subtasks
