"""Curves of an evaluation run: how it learned, and how right it is by type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import streamlit as st

from domain.evaluation import QuestionPart
from evals.layout import percent
from evals.tables import ALL, Point, RunReport, TypeScore
from ui import chart
from views.words import shortened

NAME = 40
"""Characters of a type's name in a chart."""


def show_curves(report: RunReport) -> None:
    """The share right over the answers with and without skills, and by type with intervals."""
    learned = list(_learned([one for one in report.curve if one.part is QuestionPart.TEST]))
    kinds = [one for one in report.scores if one.arm == report.main and one.right is not None]
    if len({row["answers"] for row in learned}) > 1:
        st.header("With and without skills", anchor=False)
        chart.lines(_told(report.curve), learned, "answers", "right so far", "arm", "evolution")
    if len(kinds) > 1:
        st.header("Right answers by type", anchor=False)
        chart.intervals(_by_type(kinds), [_kind(one) for one in kinds], "type", "right", "by_type")


def _learned(points: Sequence[Point]) -> Iterator[chart.Row]:
    """Each arm's share right so far, over the answers until then."""
    done: dict[str, int] = {}
    for one in points:
        done[one.arm] = done.get(one.arm, 0) + one.answers
        if one.so_far is not None:
            yield {
                "arm": one.arm,
                "answers": done[one.arm],
                "right so far": one.so_far.value,
                "low": one.so_far.low,
                "high": one.so_far.high,
            }


def _told(points: Sequence[Point]) -> str:
    """The end of each curve, in words."""
    last = {one.arm: one.so_far for one in points if one.part is QuestionPart.TEST}
    ends = "; ".join(f"{arm} {percent(found)} %" for arm, found in last.items())
    return (
        f"The share of right answers so far, over the answers tested on. At the end: {ends}. "
        "The table Evolution has every batch."
    )


def _kind(one: TypeScore) -> chart.Row:
    found = one.right
    assert found is not None  # noqa: S101 - only those with figures are drawn
    kind = "all questions" if one.type == ALL else shortened(one.type, NAME)
    return {"type": kind, "right": found.value, "low": found.low, "high": found.high}


def _by_type(kinds: Sequence[TypeScore]) -> str:
    ends = "; ".join(f"{shortened(one.type, NAME)} {percent(one.right)} %" for one in kinds[:12])
    more = f"; and {len(kinds) - 12} more in the table" if len(kinds) > 12 else ""
    return f"Lines are where 90 % of resamples lie. {ends}{more}."
