"""A plan is written as lines for a person to change, and read back as what was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError
from domain.trajectory import PlanLine
from graphs.forks import plan_text, read_plan

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
TEXTS = st.one_of(
    st.lists(PIECES, min_size=1, max_size=5).map(" ".join), st.text(min_size=1, max_size=20)
).filter(str.strip)


@st.composite
def plans(draw: st.DrawFn) -> tuple[PlanLine, ...]:
    """Plans as a ledger has them: ids in order, which depend on earlier ones."""
    ids = [f"t{n}" for n in range(1, draw(st.integers(1, 5)) + 1)]
    depends = st.lists(st.sampled_from(ids), unique=True, max_size=3).map(tuple)
    return tuple(PlanLine(id=name, text=draw(TEXTS), depends=draw(depends)) for name in ids)


def test_a_line_has_the_words_and_what_they_wait_for() -> None:
    assert plan_text(WAS) == SHOWN


def test_what_nobody_touched_is_as_it_was_to_the_last_space() -> None:
    assert read_plan(SHOWN, WAS) == WAS


@given(plans())
def test_any_plan_that_is_sent_back_unchanged_is_the_same(plan: tuple[PlanLine, ...]) -> None:
    assert read_plan(plan_text(plan), plan) == plan


@given(plans(), st.data())
def test_lines_that_are_taken_out_leave_the_others_alone(
    plan: tuple[PlanLine, ...], data: st.DataObject
) -> None:
    kept = [one for one in plan if data.draw(st.booleans())]
    assert read_plan(plan_text(kept), plan) == tuple(kept)


def test_a_line_without_an_id_is_a_new_subtask() -> None:
    found = read_plan("t1: who sings\nwhere they stand (after t1)\nhow loud", WAS)
    assert found[1:] == (
        PlanLine(text="where they stand", depends=("t1",)),
        PlanLine(text="how loud"),
    )


def test_words_and_what_they_wait_for_are_changed_by_writing_over_them() -> None:
    reworded, freed = read_plan("t1: who hums\nt2: what they sing", WAS)
    assert reworded == PlanLine(id="t1", text="who hums")
    assert freed == PlanLine(id="t2", text="what they sing")


@pytest.mark.parametrize(
    "text", ["  t1 :  who sings  ", "t1:who sings", "\n\n t1: who sings\n \n", "t1: who sings\r\n"]
)
def test_spaces_and_empty_lines_do_not_matter(text: str) -> None:
    assert read_plan(text, WAS) == WAS[:1]


def test_an_empty_text_is_an_empty_plan() -> None:
    assert read_plan(" \n\t\n", WAS) == ()
    assert plan_text(()) == ""


@pytest.mark.parametrize("text", ["t1:", "t1:   ", "t2: (after t1)", "(after t1, t2)"])
def test_a_line_without_words_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="without words"):
        read_plan(text, WAS)


@pytest.mark.parametrize("text", ["t4: who claps", "t10: who sings", "t4: x (after t1)"])
def test_an_id_that_the_plan_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="leave the id out"):
        read_plan(text, WAS)


@pytest.mark.parametrize("words", ["t0: zero", "T1: who", "(after lunch) who sings", "see (t1)"])
def test_what_only_looks_like_an_id_is_words(words: str) -> None:
    assert read_plan(words, WAS) == (PlanLine(text=words),)
