"""Spans as sets of moments, and what judges make of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.asking import Answer, Citation, Evidence
from domain.time import TimeSpan
from evals.attribution import (
    binned_iou,
    bins,
    covered_ms,
    iou,
    judge_citations,
    judge_moments,
    merge_spans,
    touches,
)
from evals.dataset import EvalQuestion
from evals.judging import judge_options

VIDEO, OTHER = "a" * 16, "b" * 16
SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 20)).map(
        lambda pair: TimeSpan.of(pair[0], pair[0] + pair[1])
    ),
    max_size=5,
)


def moments(spans: list[TimeSpan]) -> set[int]:
    return {ms for s in spans for ms in range(s.start_ms, max(s.end_ms, s.start_ms + 1))}


@given(SPANS, SPANS)
def test_spans_are_sets_of_moments(some: list[TimeSpan], others: list[TimeSpan]) -> None:
    ours, theirs = moments(some), moments(others)
    assert moments(merge_spans(some)) == ours
    assert covered_ms(some) == len(ours)
    assert iou(some, others) == pytest.approx(len(ours & theirs) / max(1, len(ours | theirs)))
    for one in some:
        assert touches(one, others) == bool(moments([one]) & theirs)


@given(SPANS, SPANS, st.integers(1, 9))
def test_bins_are_of_every_moment(some: list[TimeSpan], others: list[TimeSpan], width: int) -> None:
    ours, theirs = ({ms // width for ms in moments(spans)} for spans in (some, others))
    assert bins(some, width) == ours
    shared, either = len(ours & theirs), len(ours | theirs)
    assert binned_iou(some, others, width) == pytest.approx(shared / max(1, either))


def question(*spans: tuple[int, int], **more: str | tuple[str, ...]) -> EvalQuestion:
    given = {"id": "1", "video": "clip", "question": "Who?", "answer": "Ann"} | more
    marked = tuple(TimeSpan.of(start * 1000, end * 1000) for start, end in spans)
    return EvalQuestion.model_validate(given | {"spans": marked})


def cites(*spans: tuple[int, int], video: str = VIDEO) -> Answer:
    given = (
        Citation(ref=f"m{n}", video=video, span=TimeSpan.of(1000 * s, 1000 * e), text="x")
        for n, (s, e) in enumerate(spans, 1)
    )
    return Answer(text="Ann", confidence=0.5, citations=tuple(given))


def test_citations_are_right_where_they_share_a_moment_with_the_evidence() -> None:
    asked = question((10, 20), (40, 50))
    half = judge_citations(asked, cites((15, 16), (20, 40)), VIDEO)
    assert half == {"cited": 0.5, "top": True}
    assert judge_citations(asked, cites((20, 40), (49, 60)), VIDEO) == {"cited": 0.5, "top": False}
    assert judge_citations(asked, cites((15, 16), video=OTHER), VIDEO)["cited"] == 0
    assert judge_citations(asked, cites(), VIDEO) == {"cited": None, "top": False}
    assert judge_citations(question(), cites((1, 2)), VIDEO) == {}


def test_ref_300_is_the_overlap_of_bins_of_five_minutes() -> None:
    asked = question((1000, 1010))
    assert judge_moments(asked, cites((1005, 1015)), VIDEO) == {"iou": 5 / 15, "ref300": 1}
    assert judge_moments(asked, cites((900, 901)), VIDEO)["ref300"] == 1
    assert judge_moments(asked, cites((890, 900)), VIDEO)["ref300"] == 0
    assert judge_moments(asked, cites((890, 901)), VIDEO)["ref300"] == 1 / 2
    assert judge_moments(asked, cites((1005, 1015), (5000, 5001)), VIDEO)["ref300"] == 1 / 2
    long = question((0, 600), (3000, 3001))
    assert judge_moments(long, cites((10, 20)), VIDEO)["ref300"] == 1 / 3
    assert judge_moments(asked, cites((1005, 1015), video=OTHER), VIDEO)["ref300"] == 0
    assert judge_moments(asked, cites(), VIDEO) == {"iou": 0, "ref300": 0}
    assert judge_moments(question(), cites((1, 2)), VIDEO) == {}


def test_without_citations_the_first_retrieved_moment_counts() -> None:
    found = Evidence(ref="m1", video=VIDEO, span=TimeSpan.of(0, 9), text="x", score=0.5)
    answer = Answer(text="", confidence=0.1, retrieved=(found,))
    assert judge_moments(question((200, 201)), answer, VIDEO)["ref300"] == 1


@pytest.mark.parametrize(
    ("option", "reference", "right"),
    [("B", "B", True), ("A", "B", False), (None, "B", False), ("B", "", None)],
)
def test_options_go_by_letter(option: str | None, reference: str, right: bool | None) -> None:
    asked = question(options=("Bob", "Ann"), answer=reference)
    judged = judge_options(asked, Answer(text="Ann", option=option, confidence=0.9))
    assert judged.right is right
    assert judged.judge == "options"
