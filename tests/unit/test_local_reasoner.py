"""The reasoner without a language model: its modes, quotations, options and conclusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agent.reasoners.local import NOTE, LocalReasoner
from agent.reasoners.port import CompletedSearch, DecisionContext
from agent.state import Focus
from domain.asking import Evidence, Ledger, Mode, Question, Subtask
from domain.memories import MemoryView, Scope
from domain.search import Asks, Extract, Finding, StructurePart, VideoQuote, Weighed
from domain.skills import Policy, RoutedSkill, Tone
from domain.time import TimeSpan
from domain.trajectory import EvidenceRetrieved, Neighbour
from tests.support.machine import VIDEO, evidence

VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
FOCUS = Focus(id=1, video=VIDEO, label="arrival")
OPTIONS = ("a door", "a gate", "a box")


def turn(
    text: str = "What does Ann open?", options: Sequence[str] = (), **more: Any
) -> DecisionContext:
    asked = Question(text=text, videos=(VIDEO,), options=tuple(options))
    return DecisionContext(question=asked, view=VIEW, **more)


def after(
    *found: tuple[str, EvidenceRetrieved],
    text: str = "What does Ann open?",
    options: Sequence[str] = (),
) -> DecisionContext:
    """A turn after these searches, each for a subtask; what was close is in the ledger."""
    tasks: dict[str, Subtask] = {}
    for name, one in found:
        known = tasks.get(name, Subtask(id=f"t{len(tasks) + 1}", text=name, options=one.options))
        refs = () if one.nothing_close else tuple(e.ref for e in one.evidence)
        tasks[name] = known.model_copy(update={"evidence": (*known.evidence, *refs)})
    return turn(
        text,
        options,
        ledger=Ledger(subtasks=tuple(tasks.values())),
        evidence=tuple({e.ref: e for _, one in found for e in one.evidence}.values()),
        searches=tuple(CompletedSearch(subtask=tasks[name].id, found=one) for name, one in found),
    )


def on(task: str, attempts: int = 1, **more: Any) -> DecisionContext:
    """A turn that works on a subtask."""
    current = Subtask(id="t1", text=task, attempts=attempts)
    return turn(current=current, ledger=Ledger(subtasks=(current,)), **more)


def cause(outgoing: bool, relation: str = "causes") -> Neighbour:
    return Neighbour(ref="s2", label="rain", relation=relation, outgoing=outgoing)


@pytest.mark.parametrize(
    ("made", "mode", "query"),
    [
        (on("What does Ann open?"), Mode.EVENT, "Ann open"),
        (on("What does Ann open?", focus=FOCUS), Mode.EVENT, "Ann open"),
        (on("What does Ann open?", 2, focus=FOCUS), Mode.VIDEO, "Ann open"),
        (on("What does Ann open?", 2), Mode.VIDEO, "Ann open"),
        (on("What colour is the door?", 3, focus=FOCUS), Mode.KEYFRAME, "colour is the door"),
        (on("What does Ann open?", 3, focus=FOCUS), Mode.EVENT, "Ann open"),
        (
            on("The cause: Ann leave", focus=FOCUS, neighbours=(cause(outgoing=False),)),
            Mode.NEIGHBOR,
            "rain",
        ),
        (
            on("The cause: Ann leave", focus=FOCUS, neighbours=(cause(outgoing=True),)),
            Mode.EVENT,
            "Ann leave",
        ),
        (
            on("The cause: Ann leave", focus=FOCUS, neighbours=(cause(False, "before"),)),
            Mode.EVENT,
            "Ann leave",
        ),
        (on("What does Ann open?", forced=Mode.KEYFRAME), Mode.KEYFRAME, "Ann open"),
        (
            on("What?", forced=Mode.NEIGHBOR, neighbours=(cause(True),)),
            Mode.NEIGHBOR,
            "rain",
        ),
        (on("What does Ann open?", forced=Mode.NEIGHBOR), Mode.EVENT, "Ann open"),
    ],
)
def test_first_the_event_then_a_closer_look_a_cause_along_its_edge(
    made: DecisionContext, mode: Mode, query: str
) -> None:
    action = LocalReasoner().act(made)
    assert (action.kind, action.mode, action.query) == ("search", mode, query)


@pytest.mark.parametrize(("attempts", "mode"), [(1, Mode.VIDEO), (2, Mode.EVENT), (3, Mode.EVENT)])
def test_a_skills_modes_are_taken_one_an_attempt_and_then_the_last(
    attempts: int, mode: Mode
) -> None:
    policy = Policy(modes=(Mode.VIDEO, Mode.EVENT))
    skill = RoutedSkill(
        name="a", version=1, tone=Tone.POSITIVE, score=0.9, instructions=("Look.",), policy=policy
    )
    made = on("What does Ann open?", attempts, focus=FOCUS, skills=(skill,))
    assert LocalReasoner().act(made).mode is mode


def seen(mode: Mode, *items: Evidence, **more: Any) -> EvidenceRetrieved:
    return EvidenceRetrieved(mode=mode, query="q", evidence=items, **more)


def test_a_closer_look_answers_its_subtask_with_the_best_lines_in_time() -> None:
    lines = (evidence(3, "later", 0.8), evidence(1, "earlier", 0.7), evidence(2, "weak", 0.2))
    made = LocalReasoner().assess(on("what", found=seen(Mode.VIDEO, *lines)))
    claim = made.resolved[0]
    assert claim.subtask == "t1"
    assert claim.refs == ("m3", "m1")
    assert claim.answer == "[00:05-00:10] earlier [00:15-00:20] later"


def test_at_most_three_lines_are_quoted() -> None:
    lines = [evidence(i, score=0.9) for i in range(1, 7)]
    made = LocalReasoner().assess(on("what", found=seen(Mode.VIDEO, *lines)))
    assert made.resolved[0].refs == ("m1", "m2", "m3")


def test_an_event_answers_only_a_broad_subtask() -> None:
    reasoner = LocalReasoner()
    events = seen(Mode.EVENT, evidence(1))
    assert reasoner.assess(on("What does Ann open?", found=events)).resolved == ()
    assert reasoner.assess(on("What is it mainly about?", found=events)).resolved
    assert reasoner.assess(on("what", found=seen(Mode.VIDEO))).resolved == ()
    assert reasoner.assess(on("what")).resolved == ()


def weighing(letter: str, *lines: tuple[Evidence, Sequence[float]]) -> EvidenceRetrieved:
    """A search for an option, and how strongly what it found speaks for each."""
    return seen(
        Mode.EVENT,
        *(line for line, _ in lines),
        options=(letter,) if letter else (),
        weighed=tuple(Weighed(ref=line.ref, scores=tuple(scores)) for line, scores in lines),
    )


def test_an_option_is_answered_by_any_search_that_weighed_what_it_found() -> None:
    found = weighing("A", (evidence(1), (1, 2, 3)))
    assert LocalReasoner().assess(on("Evidence for A: a door", found=found)).resolved


def test_the_option_that_the_searches_speak_for_is_chosen_with_what_speaks_for_it() -> None:
    one = weighing("A", (evidence(1, score=0.9), (2, 1, 0)))
    two = weighing("B", (evidence(2, score=0.8), (0, 4, 0)), (evidence(3, score=0.75), (0, 3, 1)))
    made = LocalReasoner().conclude(after(("A", one), ("B", two), options=OPTIONS))
    assert (made.option, made.refs) == ("B", ("m2", "m3", "m1"))
    assert made.share == pytest.approx(0.85, abs=0.01)
    assert made.ranked[:2] == ("m2", "m3")


def test_repeated_support_counts_and_lines_of_one_clip_count_once() -> None:
    many = [(evidence(n), (0.0, 3.0)) for n in (1, 2, 3)]
    same = [(evidence(n, clip=9), (3.5, 0.0)) for n in (4, 5, 6, 7)]
    made = LocalReasoner().conclude(
        after(("A", weighing("A", *same)), ("B", weighing("B", *many)), options=OPTIONS[:2])
    )
    assert made.option == "B"


def test_what_is_not_in_the_ledger_decides_nothing() -> None:
    far = weighing("A", (evidence(1), (9, 0))).model_copy(update={"nothing_close": True})
    near = weighing("B", (evidence(2), (0, 1)))
    made = LocalReasoner().conclude(after(("A", far), ("B", near), options=OPTIONS[:2]))
    assert (made.option, made.refs) == ("B", ("m2",))


def test_what_a_person_put_into_a_search_speaks_for_its_option() -> None:
    one = weighing("A", (evidence(1), (3, 0)), (evidence(2), (1, 0)))
    put = seen(Mode.EVENT, evidence(5, score=1.0), evidence(6, score=0.9), options=("B",))
    made = LocalReasoner().conclude(after(("A", one), ("B", put), options=OPTIONS[:2]))
    assert (made.option, made.refs) == ("B", ("m5", "m6"))


def test_with_nothing_in_memory_the_first_option_is_a_guess_and_its_share_says_so() -> None:
    made = LocalReasoner().conclude(after(options=OPTIONS))
    assert (made.option, made.refs) == ("A", ())
    assert made.share == pytest.approx(1 / 3)


def extract(text: str, *refs: str) -> Extract:
    return Extract(text=text, refs=refs, video=VIDEO, span=TimeSpan.of(0, 9_000), score=0.8)


def test_an_open_question_is_answered_with_the_whole_sentence_that_memory_holds() -> None:
    quote = extract("Ann opens the gate.", "m1", "m2")
    found = seen(Mode.EVENT, evidence(1), evidence(4), evidence(2, score=0.5), extract=quote)
    made = LocalReasoner().conclude(after(("what", found)))
    assert made.text == "Ann opens the gate."
    assert made.refs == ("m1", "m2")
    assert made.ranked == ("m1", "m4", "m2")


def test_a_sentence_of_which_the_ledger_lacks_a_line_is_not_quoted() -> None:
    found = seen(Mode.EVENT, evidence(4), extract=extract("Ann opens the gate.", "m1"))
    assert LocalReasoner().conclude(after(("what", found))).refs == ("m4",)


def test_without_such_a_sentence_the_best_line_is_quoted() -> None:
    found = seen(Mode.VIDEO, evidence(2, score=0.5), evidence(1))
    made = LocalReasoner().conclude(after(("what", found)))
    assert (made.text, made.refs) == ("Ann opens the door of the house", ("m1",))


def test_the_search_that_found_what_is_closest_answers() -> None:
    far = seen(Mode.EVENT, evidence(4), extract=extract("Nobody knows.", "m4"))
    near = seen(Mode.VIDEO, evidence(1, score=0.9))
    assert LocalReasoner().conclude(after(("what", far), ("what", near))).refs == ("m1",)


def test_a_question_of_two_parts_is_answered_part_by_part() -> None:
    one = seen(Mode.VIDEO, evidence(1, score=0.5))
    two = seen(Mode.VIDEO, evidence(2, score=0.9), evidence(1, score=0.4))
    made = LocalReasoner().conclude(after(("Who came", one), ("what did they bring?", two)))
    assert made.text == "Ann opens the door of the house Bob pours coffee into a blue cup"
    assert made.refs == ("m1", "m2")
    assert made.ranked == ("m2", "m1")


def test_what_leads_up_to_a_cause_is_no_answer_to_why() -> None:
    event, cause = seen(Mode.VIDEO, evidence(1, score=0.9)), seen(Mode.VIDEO, evidence(2))
    found = (("What happened: Ann leave", event), ("The cause: Ann leave", cause))
    assert LocalReasoner().conclude(after(*found, text="Why did Ann leave?")).refs == ("m2",)


def test_a_part_that_memory_does_not_hold_is_left_out() -> None:
    one = seen(Mode.VIDEO, evidence(1))
    two = seen(Mode.VIDEO, evidence(2, score=0.1), nothing_close=True)
    made = LocalReasoner().conclude(after(("Who came", one), ("why?", two)))
    assert made.refs == ("m1",)
    assert not made.not_in_memory


def test_where_nothing_is_close_the_answer_is_not_in_memory() -> None:
    found = seen(Mode.VIDEO, evidence(1, score=0.1), nothing_close=True)
    made = LocalReasoner().conclude(after(("what", found)))
    assert made.not_in_memory
    assert made.refs == ()


def test_a_broad_question_is_answered_by_its_event() -> None:
    text = "What is the video mainly about?"
    event = evidence(3, "arrival: Ann opens the gate.").model_copy(update={"ref": "s3"})
    found = seen(Mode.EVENT, event, evidence(1, score=0.9))
    made = LocalReasoner().conclude(after((text, found), text=text))
    assert made.text == "arrival: Ann opens the gate."
    assert made.refs == ("s3",)
    assert made.ranked == ("s3", "m1")


def test_it_never_repairs_a_plan_and_says_that_it_is_no_language_model() -> None:
    reasoner = LocalReasoner()
    assert reasoner.replan(turn(), ("stalled",)).rewrite == ()
    assert "without a language model" in reasoner.note == NOTE
    assert [d.text for d in reasoner.plan(turn("Who came?"))] == ["Who came?"]


def test_a_broad_question_is_answered_by_the_best_event_of_each_of_a_few_videos() -> None:
    arrival = evidence(1, "They arrive", 0.4).model_copy(update={"ref": "s1"})
    dinner = evidence(2, "They dine", 0.9).model_copy(update={"ref": "s2", "video": "b" * 16})
    quotes = tuple(
        VideoQuote(video=video, title=title, close=False, event=event)
        for video, title, event in (
            (VIDEO, "day", "s1"),
            ("b" * 16, "night", "s2"),
            ("c" * 16, "street", ""),
        )
    )
    found = seen(Mode.EVENT, dinner, arrival, by_video=quotes)
    text = "What are they mainly doing?"
    made = LocalReasoner().conclude(after((text, found), text=text))
    assert made.text.splitlines() == [
        "day: They arrive",
        "night: They dine",
        "street: nothing close was found.",
    ]
    assert made.refs == ("s1", "s2")


def test_a_part_beside_structure_is_quoted_of_each_of_a_few_videos() -> None:
    ends = Finding(asks=Asks.END, parts=(StructurePart(label="", text="They leave", refs=("m1",)),))
    quotes = tuple(
        VideoQuote(video=video, title=title, close=True, extract=_extract(video))
        for video, title in (("a" * 16, "day"), ("b" * 16, "night"))
    )
    structure = seen(Mode.EVENT, evidence(1), finding=ends)
    ordinary = seen(Mode.VIDEO, evidence(2), extract=_extract("a" * 16), by_video=quotes)
    made = LocalReasoner().conclude(
        after(("How does it end", structure), ("what is said?", ordinary))
    )
    first, *rest = made.text.replace("They leave ", "They leave\n").splitlines()
    assert first.endswith("They leave")
    assert rest == ["day: What it says", "night: What it says"]


def _extract(video: str) -> Extract:
    return Extract(
        text="What it says", refs=("m2",), video=video, span=TimeSpan.of(0, 1_000), score=0.9
    )
