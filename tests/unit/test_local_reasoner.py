"""The reasoner without a language model: its modes, quotations, options and conclusions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from domain.asking import Evidence, Ledger, Mode, Question, Subtask
from domain.ranking import Extract, OptionSupport, Ranking
from domain.time import TimeSpan
from domain.trajectory import Neighbour, Retrieved
from domain.view import MemoryView, Scope
from nodes.reasoners.local import NOTE, LocalReasoner
from nodes.reasoners.port import Turn
from nodes.state import Focus
from tests.support.machine import VIDEO, evidence

VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
FOCUS = Focus(id=1, video=VIDEO, label="arrival")
OPTIONS = ("a door", "a gate", "a box")


class FixedRanker:
    """Ranks by a table from question text to ranking."""

    def __init__(self, *rankings: Ranking) -> None:
        self._by_text = {r.question: r for r in rankings}
        self.asked: list[Question] = []

    def rank(self, view: MemoryView, question: Question, limit: int = 10) -> Ranking:
        self.asked.append(question)
        return self._by_text[question.text]


def turn(text: str = "What does Ann open?", options: Sequence[str] = (), **more: Any) -> Turn:
    asked = Question(text=text, videos=(VIDEO,), options=tuple(options))
    return Turn(question=asked, view=VIEW, **more)


def on(task: str, attempts: int = 1, **more: Any) -> Turn:
    """A turn that works on a subtask."""
    current = Subtask(id="t1", text=task, attempts=attempts)
    return turn(current=current, ledger=Ledger(subtasks=(current,)), **more)


def ranked(*items: Evidence, text: str = "What does Ann open?", **more: Any) -> Ranking:
    return Ranking(question=text, evidence=items, **more)


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
    made: Turn, mode: Mode, query: str
) -> None:
    action = LocalReasoner(FixedRanker()).act(made)
    assert (action.kind, action.mode, action.query) == ("search", mode, query)


def seen(mode: Mode, *items: Evidence) -> Retrieved:
    return Retrieved(mode=mode, query="q", evidence=items)


def test_a_closer_look_answers_its_subtask_with_the_best_lines_in_time() -> None:
    lines = (evidence(3, "later", 0.8), evidence(1, "earlier", 0.7), evidence(2, "weak", 0.2))
    made = LocalReasoner(FixedRanker()).assess(on("what", found=seen(Mode.VIDEO, *lines)))
    claim = made.resolved[0]
    assert claim.subtask == "t1"
    assert claim.refs == ("m3", "m1")
    assert claim.answer == "[00:05-00:10] earlier [00:15-00:20] later"


def test_at_most_three_lines_are_quoted() -> None:
    lines = [evidence(i, score=0.9) for i in range(1, 7)]
    made = LocalReasoner(FixedRanker()).assess(on("what", found=seen(Mode.VIDEO, *lines)))
    assert made.resolved[0].refs == ("m1", "m2", "m3")


def test_an_event_answers_only_a_broad_subtask() -> None:
    reasoner = LocalReasoner(FixedRanker())
    events = seen(Mode.EVENT, evidence(1))
    assert reasoner.assess(on("What does Ann open?", found=events)).resolved == ()
    assert reasoner.assess(on("What is it mainly about?", found=events)).resolved
    assert reasoner.assess(on("what", found=seen(Mode.VIDEO))).resolved == ()
    assert reasoner.assess(on("what")).resolved == ()


def supports(*shares: float, refs: Sequence[Sequence[str]] = ()) -> tuple[OptionSupport, ...]:
    return tuple(
        OptionSupport(
            letter="ABC"[i],
            text=OPTIONS[i],
            score=share,
            share=share,
            evidence=tuple(refs[i]) if refs else (),
        )
        for i, share in enumerate(shares)
    )


def test_the_option_with_the_largest_share_is_chosen_with_what_speaks_for_it() -> None:
    lines = (evidence(1, score=0.9), evidence(2, score=0.8), evidence(3, score=0.75))
    given = ranked(*lines, options=supports(0.2, 0.5, 0.3, refs=(["m1"], ["m3", "m2"], [])))
    made = LocalReasoner(FixedRanker(given)).conclude(turn(options=OPTIONS))
    assert (made.option, made.share) == ("B", 0.5)
    assert made.refs == ("m2", "m3")
    assert made.found == lines


def test_an_option_without_lines_among_the_moments_cites_the_best_moments() -> None:
    given = ranked(evidence(1, score=0.9), options=supports(0.1, 0.2, 0.7, refs=([], [], ["m8"])))
    made = LocalReasoner(FixedRanker(given)).conclude(turn(options=OPTIONS))
    assert (made.option, made.refs) == ("C", ("m1",))


def test_with_nothing_in_memory_the_first_option_is_a_guess_and_its_share_says_so() -> None:
    empty = ranked(nothing_close=True)
    made = LocalReasoner(FixedRanker(empty)).conclude(turn(options=OPTIONS))
    assert (made.option, made.refs) == ("A", ())
    assert made.share == pytest.approx(1 / 3)


def extract(text: str, *refs: str) -> Extract:
    return Extract(text=text, refs=refs, video=VIDEO, span=TimeSpan.of(0, 9_000), score=0.8)


def test_an_open_question_is_answered_with_the_whole_sentence_that_memory_holds() -> None:
    given = ranked(evidence(1), evidence(4), extract=extract("Ann opens the gate.", "m1", "m2"))
    made = LocalReasoner(FixedRanker(given)).conclude(turn())
    assert made.text == "Ann opens the gate."
    assert made.refs == ("m1", "m2")
    assert [e.ref for e in made.found] == ["m1", "m4", "m2"]


def test_without_such_a_sentence_the_best_line_is_quoted() -> None:
    made = LocalReasoner(FixedRanker(ranked(evidence(1), evidence(2)))).conclude(turn())
    assert (made.text, made.refs) == ("Ann opens the door of the house", ("m1",))


def test_a_question_of_two_parts_is_answered_part_by_part() -> None:
    one = ranked(evidence(1, score=0.5), text="Who came")
    two = ranked(evidence(2, score=0.9), evidence(1, score=0.4), text="what did they bring?")
    ranker = FixedRanker(one, two)
    made = LocalReasoner(ranker).conclude(turn("Who came and what did they bring?"))
    assert made.text == "Ann opens the door of the house Bob pours coffee into a blue cup"
    assert made.refs == ("m1", "m2")
    assert [(e.ref, e.score) for e in made.found] == [("m2", 0.9), ("m1", 0.5)]


def test_a_part_that_memory_does_not_hold_is_left_out() -> None:
    one = ranked(evidence(1), text="Who came")
    two = ranked(evidence(2, score=0.1), text="why?", nothing_close=True)
    made = LocalReasoner(FixedRanker(one, two)).conclude(turn("Who came and why?"))
    assert made.refs == ("m1",)
    assert not made.not_in_memory


def test_where_nothing_is_close_the_answer_is_not_in_memory() -> None:
    given = ranked(evidence(1, score=0.1), nothing_close=True)
    made = LocalReasoner(FixedRanker(given)).conclude(turn())
    assert made.not_in_memory
    assert made.refs == ()
    assert made.found


def test_a_broad_question_is_answered_by_its_event() -> None:
    text = "What is the video mainly about?"
    event = evidence(3, "arrival: Ann opens the gate.").model_copy(update={"ref": "s3"})
    other = evidence(1, score=0.9)
    made = LocalReasoner(FixedRanker(ranked(other, text=text))).conclude(
        turn(text, evidence=(other, event))
    )
    assert made.text == "arrival: Ann opens the gate."
    assert made.refs == ("s3",)
    assert [e.ref for e in made.found] == ["s3", "m1"]


def test_it_never_repairs_a_plan_and_says_that_it_is_no_language_model() -> None:
    reasoner = LocalReasoner(FixedRanker())
    assert reasoner.replan(turn(), ("stalled",)).rewrite == ()
    assert "without a language model" in reasoner.note == NOTE
    assert [d.text for d in reasoner.plan(turn("Who came?"))] == ["Who came?"]
