"""Which window of clips is due for a patch: once all of it is settled, in order, the rest last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.patch_window import DueWindow, due_window
from store.queries import events as stored
from store.queries.clips import ClipStates
from store.queries.events import PatchAt

EVERY = 3


class Rows:
    """The states of a video's clips (``d`` done, ``f`` failed, ``p`` not tried) and its patches."""

    def __init__(self, states: str) -> None:
        self.states = states
        self.patches: list[PatchAt] = []

    def settled(
        self, _: object, __: str, start: int, stop: int, also: tuple[int, ...]
    ) -> ClipStates:
        wanted = [n for n in range(len(self.states)) if start <= n < stop or n in also]
        pending = [n for n in range(start, len(self.states)) if self.states[n] == "p"]
        return ClipStates(
            done=tuple(n for n in wanted if self.states[n] == "d"),
            failed=tuple(n for n in wanted if self.states[n] == "f"),
            first_pending=pending[0] if pending else None,
            highest=len(self.states) - 1,
        )

    def last(self, *_: object) -> PatchAt | None:
        return self.patches[-1] if self.patches else None

    def apply(self, due: DueWindow, covered: bool = True) -> None:
        left = set(due.unsettled) | (set() if covered else set(due.new))
        applied = {"steps": [], "unsettled": list(due.unsettled)}
        patch = PatchAt(0, due.at_clip, due.first_clip, 0, applied, [], tuple(sorted(left)))
        self.patches = [one for one in self.patches if one.at_clip != due.at_clip] + [patch]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Rows:
    kept = Rows("")
    monkeypatch.setattr("memory.patch_window.clip_states", kept.settled)
    monkeypatch.setattr(stored, "last_patch", kept.last)
    return kept


def due(rows: Rows, final: bool = False) -> DueWindow | None:
    return due_window(None, "v", EVERY, final)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("states", "final", "at_clip"),
    [
        ("", False, None),
        ("", True, None),
        ("dd", False, None),
        ("dd", True, 1),
        ("ddp", True, None),
        ("ddd", False, 2),
        ("dfd", False, 2),
        ("fff", False, 2),
        ("dpd", False, None),
        ("dddp", False, 2),
        ("dddp", True, 2),
        ("pddddd", False, None),
    ],
)
def test_windows_are_due_settled(rows: Rows, states: str, final: bool, at_clip: int | None) -> None:
    rows.states = states
    found = due(rows, final)
    assert (found.at_clip if found else None) == at_clip
    if found:
        assert found.new == tuple(n for n in range(found.at_clip + 1) if states[n] == "d")
        assert found.unsettled == tuple(n for n in range(found.at_clip + 1) if states[n] == "f")


@given(st.text(alphabet="df", max_size=14), st.lists(st.booleans(), min_size=14, max_size=14))
def test_every_clip_is_offered_until_covered_and_no_more(states: str, covers: list[bool]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        rows = Rows(states)
        patch.setattr("memory.patch_window.clip_states", rows.settled)
        patch.setattr(stored, "last_patch", rows.last)
        ends, offered = [], list[int]()
        for covered in covers:
            found = due(rows, final=True)
            if found is None:
                break
            ends.append(found.at_clip)
            assert list(found.new) == sorted(set(found.new))
            assert not set(found.new) & (set(offered) if covered else set())
            rows.apply(found, covered)
            offered += found.new if covered else ()
        assert ends == sorted(set(ends))
        wanted = list(range(EVERY - 1, len(states), EVERY))
        assert ends == [*wanted, *([len(states) - 1] if states and len(states) % EVERY else [])]


def test_clips_that_come_late_after_the_last_window_have_a_patch_of_their_own(rows: Rows) -> None:
    rows.states = "dfd"
    first = due(rows, final=True)
    assert first is not None
    rows.apply(first)
    assert due(rows, final=True) is None
    rows.states = "ddd"
    late = due(rows, final=True)
    assert late is not None
    assert (late.at_clip, late.new, late.earlier_patch) == (2, (1,), rows.patches[0])
    assert due(rows, final=False) is None
    rows.apply(late)
    assert due(rows, final=True) is None


def test_clips_that_come_late_before_another_window_go_along_with_it(rows: Rows) -> None:
    rows.states = "dfdppp"
    first = due(rows)
    assert first is not None
    rows.apply(first)
    rows.states = "dddddd"
    second = due(rows)
    assert second is not None
    assert (second.first_clip, second.at_clip, second.new) == (3, 5, (1, 3, 4, 5))
