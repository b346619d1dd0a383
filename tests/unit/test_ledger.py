"""The task ledger stays legal, and is written as lines for a person to change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.asking import Ledger
from domain.errors import InputError
from domain.ledger import (
    Edits,
    Rewrite,
    SubtaskDraft,
    abandon,
    apply_edits,
    begin_attempt,
    bind_evidence,
    confidence,
    find_subtask,
    is_open,
    is_stalled,
    new_ledger,
    next_subtask,
    reopen_subtask,
    resolve_subtask,
)
from domain.settings import AskSettings
from domain.trajectory import PlanLine, Resolution
from graphs.forks import plan_text, read_plan
from tests.support.event_graph_invariants import check_kept, check_legal
from tests.support.full_suite import examples

ASK = AskSettings()


def plan(*texts: str, chain: bool = False) -> Ledger:
    drafts = [
        SubtaskDraft(text=text, depends=(f"t{i}",) if chain and i else ())
        for i, text in enumerate(texts)
    ]
    return new_ledger(drafts, "the question", ASK)[0]


def claim(name: str, *support: str, answer: str = "the door") -> Resolution:
    return Resolution(subtask=name, answer=answer, refs=support)


def test_a_plan_keeps_five_subtasks_and_says_what_it_dropped() -> None:
    ledger, dropped = new_ledger([SubtaskDraft(text=f"fact {i}") for i in range(7)], "q", ASK)
    assert [s.id for s in ledger.subtasks] == ["t1", "t2", "t3", "t4", "t5"]
    assert len(dropped) == 2
    assert "at most 5" in dropped[0]


def test_a_plan_drops_empty_and_repeated_subtasks_and_forward_dependencies() -> None:
    drafts = [
        SubtaskDraft(text="who came", depends=("t1", "t2", "t9")),
        SubtaskDraft(text="  "),
        SubtaskDraft(text="WHO  came"),
        SubtaskDraft(text="why", depends=("t1", "t1", "t2")),
    ]
    ledger, dropped = new_ledger(drafts, "q", ASK)
    assert [s.text for s in ledger.subtasks] == ["who came", "why"]
    assert [s.depends for s in ledger.subtasks] == [(), ("t1",)]
    assert len(dropped) == 2


def test_a_dependency_still_means_the_same_subtask_when_one_before_it_is_dropped() -> None:
    drafts = [
        SubtaskDraft(text="who came"),
        SubtaskDraft(text=""),
        SubtaskDraft(text="Who came"),
        SubtaskDraft(text="why", depends=("t3",)),
        SubtaskDraft(text="when", depends=("t4", "t2")),
    ]
    ledger, _ = new_ledger(drafts, "q", ASK)
    found = [(s.id, s.text, s.depends) for s in ledger.subtasks]
    assert found == [("t1", "who came", ()), ("t2", "why", ("t1",)), ("t3", "when", ("t2",))]
    adds = (
        SubtaskDraft(text="why"),
        SubtaskDraft(text="where"),
        SubtaskDraft(text="how", depends=("t5", "t1")),
    )
    ledger, refused = apply_edits(ledger, Edits(add=adds), ASK)
    assert [(s.id, s.depends) for s in ledger.subtasks][3:] == [("t4", ()), ("t5", ("t4", "t1"))]
    assert len(refused) == 1


def test_without_a_usable_plan_the_question_is_the_plan() -> None:
    assert new_ledger([], "Who came?", ASK)[0].subtasks[0].text == "Who came?"


def test_a_dependent_subtask_waits_for_the_answer_it_needs() -> None:
    ledger = bind_evidence(begin_attempt(plan("one", "two", chain=True), "t1"), "t1", ["m1"], 0.5)
    assert next_subtask(ledger, ASK) == find_subtask(ledger, "t1")
    ledger, _ = resolve_subtask(ledger, claim("t1", "m1"))
    assert next_subtask(ledger, ASK) == find_subtask(ledger, "t2")


@pytest.mark.parametrize(
    ("made", "complaint"),
    [
        (claim("t9", "m1"), "no subtask"),
        (claim("t1", "m1", answer=" "), "without an answer"),
        (claim("t1"), "without evidence"),
        (claim("t1", "m77"), "without evidence"),
        (claim("t2", "m1"), "abandoned"),
    ],
)
def test_a_claim_without_answer_or_evidence_resolves_none(made: Resolution, complaint: str) -> None:
    before = abandon(bind_evidence(plan("one", "two"), "t1", ["m1"], 0.5), "t2")
    after, said = resolve_subtask(before, made)
    assert after == before
    assert complaint in said


def test_support_may_come_from_another_subtasks_evidence_but_unknown_ids_are_left_out() -> None:
    ledger = bind_evidence(plan("one", "two"), "t1", ["m1"], 0.5)
    ledger, said = resolve_subtask(ledger, claim("t2", "m1", "m99"))
    assert said == ""
    assert find_subtask(ledger, "t2") is not None
    assert ledger.subtasks[1].support == ("m1",)


def test_a_repair_does_not_touch_what_is_resolved() -> None:
    before, _ = resolve_subtask(bind_evidence(plan("one"), "t1", ["m1"], 0.5), claim("t1", "m1"))
    edits = Edits(rewrite=(Rewrite(id="t1", text="other"),), abandon=("t1",))
    after, refused = apply_edits(before, edits, ASK)
    assert after == before
    assert len(refused) == 2


def test_a_repair_adds_at_most_three_and_never_more_than_five_subtasks_stand() -> None:
    adds = tuple(SubtaskDraft(text=f"new {i}") for i in range(5))
    ledger, refused = apply_edits(plan("one"), Edits(add=adds), ASK)
    assert len(ledger.subtasks) == 4
    assert refused == ["a repair may add at most 3"]
    ledger, refused = apply_edits(plan(*"abcde"), Edits(add=adds[:1]), ASK)
    assert len(ledger.subtasks) == 5
    assert "at most 5" in refused[0]


@pytest.mark.parametrize(
    ("best", "pieces", "expected"),
    [(0.0, 0, 0.0), (0.8, 0, 0.4), (0.8, 1, 0.6), (0.5, 2, 0.57), (1.0, 20, 0.95)],
)
def test_confidence_follows_the_formula(best: float, pieces: int, expected: float) -> None:
    assert confidence(best, pieces) == pytest.approx(expected)


NAMES = st.sampled_from(["t1", "t2", "t3", "t4", "t5", "t6", "t8", "tx", ""])
REFS = st.lists(st.sampled_from(["m1", "m2", "s3", "k4", "m99"]), max_size=4)
TEXTS = st.sampled_from(["a", "b", "who came", "", " ", "Ann's door", "WHO CAME"])
DRAFTS = st.lists(
    st.builds(SubtaskDraft, text=TEXTS, depends=st.lists(NAMES, max_size=3).map(tuple)), max_size=7
)
EDITS = st.builds(
    Edits,
    rewrite=st.lists(st.builds(Rewrite, id=NAMES, text=TEXTS), max_size=4).map(tuple),
    add=DRAFTS.map(tuple),
    abandon=st.lists(NAMES, max_size=7).map(tuple),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("round"), REFS, st.floats(-1, 2)),
        st.tuples(st.just("claim"), NAMES, TEXTS, REFS),
        st.tuples(st.just("edit"), EDITS),
        st.tuples(st.just("abandon"), NAMES),
        st.tuples(st.just("reopen"), NAMES),
    ),
    max_size=25,
)


def taken(ledger: Ledger, step: tuple[object, ...]) -> Ledger:
    match step:
        case ("round", list(found), float(best)):
            task = next_subtask(ledger, ASK)
            return (
                bind_evidence(begin_attempt(ledger, task.id), task.id, found, best)
                if task
                else ledger
            )
        case ("claim", str(name), str(text), list(support)):
            made = Resolution(subtask=name, answer=text, refs=tuple(support))
            return resolve_subtask(ledger, made)[0]
        case ("edit", Edits() as edits):
            return apply_edits(ledger, edits, ASK)[0]
        case ("abandon", str(name)):
            return abandon(ledger, name)
        case ("reopen", str(name)):
            return reopen_subtask(ledger, name)
    raise AssertionError(step)


@given(DRAFTS, STEPS)
@settings(max_examples=examples(50, 200), deadline=None)
def test_no_sequence_of_plans_claims_and_repairs_makes_the_ledger_illegal_or_loses_evidence(
    drafts: list[SubtaskDraft], steps: list[tuple[object, ...]]
) -> None:
    ledger, _ = new_ledger(drafts, "the question", ASK)
    check_legal(ledger, ASK)
    for step in steps:
        before, ledger = ledger.subtasks, taken(ledger, step)
        check_legal(ledger, ASK)
        check_kept(before, ledger)
        assert Ledger.model_validate(ledger.model_dump(mode="json")) == ledger


@given(DRAFTS)
def test_every_plan_is_worked_off(drafts: list[SubtaskDraft]) -> None:
    ledger, _ = new_ledger(drafts, "the question", ASK)
    rounds = 0
    while (task := next_subtask(ledger, ASK)) is not None:
        assert is_open(task)
        ledger, rounds = begin_attempt(ledger, task.id), rounds + 1
        assert rounds <= ASK.subtasks * ASK.attempts
    assert all(is_stalled(s, ASK) for s in ledger.subtasks)


WAS = (
    PlanLine(id="t1", text="who sings"),
    PlanLine(id="t2", text="what they sing", depends=("t1",)),
    PlanLine(id="t3", text="who  listens\nto it", depends=("t1", "t2")),
)
SHOWN = """\
t1: who sings
t2: what they sing (after t1)
t3: who listens to it (after t1, t2)"""
PIECES = st.sampled_from(
    ["who", "sings", "t1:", "t2: ", "(after t1)", " (after t1, t2)", "(after", ")", ":", "\n", "\t"]
)
TEXTS_OF_LINES = st.one_of(
    st.lists(PIECES, min_size=1, max_size=5).map(" ".join), st.text(min_size=1, max_size=20)
).filter(str.strip)


@st.composite
def plans(draw: st.DrawFn) -> tuple[PlanLine, ...]:
    """Plans as a ledger has them: ids in order, which depend on earlier ones."""
    ids = [f"t{n}" for n in range(1, draw(st.integers(1, 5)) + 1)]
    depends = st.lists(st.sampled_from(ids), unique=True, max_size=3).map(tuple)
    return tuple(
        PlanLine(id=name, text=draw(TEXTS_OF_LINES), depends=draw(depends)) for name in ids
    )


def test_a_line_has_the_words_and_what_they_wait_for() -> None:
    assert plan_text(WAS) == SHOWN


@given(plans())
def test_any_plan_that_is_sent_back_unchanged_is_the_same(plan: tuple[PlanLine, ...]) -> None:
    assert read_plan(plan_text(plan), plan) == plan


@given(plans(), st.data())
def test_lines_taken_out_leave_others_be(plan: tuple[PlanLine, ...], data: st.DataObject) -> None:
    kept = [one for one in plan if data.draw(st.booleans())]
    assert read_plan(plan_text(kept), plan) == tuple(kept)


def test_a_line_without_an_id_is_a_new_subtask() -> None:
    assert read_plan("t1: who sings\nwhere they stand (after t1)\nhow loud", WAS)[1:] == (
        PlanLine(text="where they stand", depends=("t1",)),
        PlanLine(text="how loud"),
    )


def test_words_and_what_they_wait_for_are_changed_by_writing_over_them() -> None:
    reworded, freed = read_plan("t1: who hums\nt2: what they sing", WAS)
    assert reworded == PlanLine(id="t1", text="who hums")
    assert freed == PlanLine(id="t2", text="what they sing")


@pytest.mark.parametrize("text", ["t1:", "t1:   ", "t2: (after t1)", "(after t1, t2)"])
def test_a_line_without_words_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="without words"):
        read_plan(text, WAS)


@pytest.mark.parametrize("text", ["t4: who claps", "t10: who sings", "t4: x (after t1)"])
def test_an_id_that_the_plan_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="leave the id out"):
        read_plan(text, WAS)
