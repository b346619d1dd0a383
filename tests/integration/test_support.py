"""Citations support what they are cited for, and subtasks are settled by what bears on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit

from agent.reasoners.port import Assessment, Conclusion, DecisionContext
from domain.asking import Action, Standing, SubtaskState, Support
from domain.errors import InputError
from domain.media import Video
from domain.time import TimeSpan
from domain.trajectory import Assessed, Resolution, RoundClosed, SupportScored
from store.database import Store
from tests.support.machine import (
    Ran,
    ScriptedMemory,
    ScriptedReasoner,
    evidence,
    found,
    run,
    search,
)
from ui import evidence as moments

DOOR, CAT = "Ann opens the door of the house", "the cat sleeps in the sun"
BOTH = found(evidence(1, DOOR), evidence(2, CAT))
LOOK = search("Ann opens something")
OPTIONS = ("a red door", "a gate")


def asked(store: Store, supports: dict[str, float], **scripts: Any) -> Ran:
    options = scripts.pop("options", ())
    memory = ScriptedMemory([BOTH], supports=supports)
    scripts.setdefault("act", [LOOK, Action(kind="answer", answer="the door", citations=("m1",))])
    return run(store, ScriptedReasoner(**scripts), memory, options=options)


def claims(*refs: str, support: tuple[Support, ...] = ()) -> Any:
    def claim(turn: DecisionContext) -> Assessment:
        assert turn.current is not None
        made = Resolution(subtask=turn.current.id, answer="the door", refs=refs, support=support)
        return Assessment(resolved=(made,))

    return claim


def state_after_the_first_round(ran: Ran) -> SubtaskState:
    return SubtaskState(ran.of(RoundClosed)[0].subtasks[0].state)


def test_what_does_not_bear_on_a_subtask_leaves_it_partial(watched_store: Store) -> None:
    ran = asked(watched_store, {CAT: 0.001}, assess=[claims("m2")])
    assert state_after_the_first_round(ran) is SubtaskState.PARTIAL
    (first, *_) = ran.of(Assessed)
    assert first.resolved == ()
    assert "bears on it" in first.refused[0]


def test_what_bears_on_a_subtask_settles_it_without_the_rest(watched_store: Store) -> None:
    ran = asked(watched_store, {CAT: 0.001}, assess=[claims("m1", "m2")])
    assert state_after_the_first_round(ran) is SubtaskState.RESOLVED
    assert ran.of(Assessed)[0].resolved[0].refs == ("m1",)


def test_a_model_that_says_how_well_evidence_supports_needs_no_other(watched_store: Store) -> None:
    output = (Support(ref="m1", score=0.8),)
    said = Conclusion(text="the door", refs=("m1",), support=output)
    settled = [claims("m1", support=output)]
    ran = asked(watched_store, {}, act=[LOOK], assess=settled, conclude=[lambda _: said])
    assert (ran.of(SupportScored), ran.memory.claims) == ([], [])
    assert [c.support for c in ran.asked.answer.citations] == [0.8]


@pytest.mark.parametrize(
    ("support", "standing"), [(0.9, Standing.SUPPORTED), (0.1, Standing.WEAK), (0.0, Standing.WEAK)]
)
def test_an_open_answer_says_how_well_it_is_supported(
    watched_store: Store, support: float, standing: Standing
) -> None:
    ran = asked(watched_store, {DOOR: support})
    assert ran.asked.answer.standing is standing
    assert [c.support for c in ran.asked.answer.citations] == [support]


@pytest.mark.parametrize(
    ("support", "standing"),
    [(0.9, Standing.SUPPORTED), (0.1, Standing.WEAK), (0.0, Standing.GUESS)],
)
def test_an_option_may_be_a_guess(watched_store: Store, support: float, standing: Standing) -> None:
    chosen = Conclusion(text="A", option="A", refs=("m1",))
    ran = asked(
        watched_store, {DOOR: support}, act=[LOOK], options=OPTIONS, conclude=[lambda _: chosen]
    )
    assert ran.asked.answer.option == "A"
    assert ran.asked.answer.standing is standing


# Which moments the app saves as files, whose content its server holds in memory.


VIDEO = Video(id="ab" * 8, title="a day", path=None, duration_ms=3_600_000)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], bytes]]:
    found: list[Callable[[], bytes]] = []
    monkeypatch.setattr(moments, "is_playable", lambda *_: True)
    monkeypatch.setattr(
        streamlit, "download_button", lambda _label, cut, *_, **__: found.append(cut)
    )
    return found


def test_a_chapter_is_no_moment(drawn: list[Callable[[], bytes]], store: Store) -> None:
    moments.save_button(store, VIDEO, TimeSpan.of(0, 60_000), "a")
    assert len(drawn) == 1
    moments.save_button(store, VIDEO, TimeSpan.of(0, 3_600_000), "b")
    assert len(drawn) == 1


def test_a_large_file_is_not_read_into_memory(
    drawn: list[Callable[[], bytes]], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 1_000

    def cut(_store: Store, _video: str, _span: TimeSpan, out: Path) -> None:
        with out.open("wb") as file:
            file.truncate(size)

    monkeypatch.setattr(moments, "cut_moment", cut)
    moments.save_button(store, VIDEO, TimeSpan.of(0, 60_000), "a")
    assert len(drawn[0]()) == 1_000
    size = moments.MOST_BYTES + 1
    with pytest.raises(InputError, match="larger than 1 GB"):
        drawn[0]()
