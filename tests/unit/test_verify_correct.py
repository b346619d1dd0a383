"""Increments, saturation, repairs of the plan, forced modes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.harness.correct import (
    RoundGain,
    after_round,
    forced_mode,
    harness_search,
    keywords,
    replan_reasons,
)
from agent.harness.verify import increment, is_low, payload_words
from agent.state import Focus, ProgressLedger
from domain.asking import Ledger, Mode, Subtask
from domain.ledger import SubtaskDraft, abandon, begin_attempt, new_ledger
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved
from tests.support.machine import evidence

ASK = AskSettings()
FOCUS = Focus(id=1, video="0123456789abcdef", label="breakfast")
GOOD = RoundGain(empty=False, new_evidence=True, low=False, same_focus=False)
STUCK = RoundGain(empty=False, new_evidence=False, low=False, same_focus=True)


def retrieved(
    *texts: str, mode: Mode = Mode.EVENT, query: str = "x", focus: int = 1
) -> EvidenceRetrieved:
    items = tuple(evidence(i, text) for i, text in enumerate(texts))
    return EvidenceRetrieved(mode=mode, query=query, evidence=items, focus=f"s{focus}")


def test_a_fingerprint_leaves_out_stop_words_and_the_words_of_the_query() -> None:
    found = retrieved("The Gate is red, and 2 cars wait", query="red gate")
    assert payload_words(found) == {"2", "cars", "wait"}


def test_words_without_spaces_between_them_have_a_fingerprint_too() -> None:
    assert payload_words(retrieved("猫が走る", query="猫が")) == {"が走", "走る"}
    assert 0 < increment(retrieved("猫が走る庭"), [retrieved("猫が走る")]) < 1


def test_the_increment_is_the_share_of_new_words() -> None:
    first = retrieved("cars wait gate")
    assert increment(first, []) == 1.0
    assert increment(retrieved("cars wait gate rain"), [first]) == 0.25
    assert increment(first, [first]) == 0.0


@given(
    st.lists(st.lists(st.sampled_from(["red", "car", "gate", "rain", "dog", "door"]), max_size=5))
)
def test_increments_are_shares_and_nothing_is_new_twice(texts: list[list[str]]) -> None:
    earlier: list[EvidenceRetrieved] = []
    for words in texts:
        found = retrieved(" ".join(words))
        assert 0 <= increment(found, earlier) <= 1
        earlier.append(found)
        assert increment(found, earlier) == 0


@pytest.mark.parametrize(
    ("share", "seen", "low"),
    [(0.14, False, True), (0.15, False, False), (0.29, True, True), (0.30, True, False)],
)
def test_the_bar_is_higher_on_a_segment_seen_before(share: float, seen: bool, low: bool) -> None:
    earlier = [retrieved("a", focus=1 if seen else 2)]
    assert is_low(retrieved("b", focus=1), earlier, share, ASK) is low


def play(
    *findings: RoundGain, progress: ProgressLedger | None = None
) -> tuple[ProgressLedger, list[str]]:
    warnings, counts = [], progress or ProgressLedger()
    for number, made in enumerate(findings, start=1):
        counts, warning = after_round(counts, number, made, [Mode.EVENT], ASK)
        warnings.append(warning)
    return counts, warnings


def plan() -> Ledger:
    return new_ledger(
        [SubtaskDraft(text="one"), SubtaskDraft(text="two", depends=("t1",))], "q", ASK
    )[0]


def test_stalled_subtasks_and_broken_dependencies_are_reasons_once() -> None:
    ledger = plan()
    for _ in range(ASK.attempts):
        ledger = begin_attempt(ledger, "t1")
    reasons = replan_reasons(ledger, ProgressLedger(), ASK)
    assert [r.text[:2] for r in reasons] == ["t1", "t2"]
    assert replan_reasons(ledger, ProgressLedger(told=tuple(r.key for r in reasons)), ASK) == ()
    assert len(replan_reasons(abandon(plan(), "t1"), ProgressLedger(), ASK)) == 1


def test_a_locked_search_is_forced_to_video_then_to_neighbor() -> None:
    counts, _ = play(STUCK)
    assert forced_mode(counts, FOCUS, ASK, 1) is None
    counts, _ = play(STUCK, STUCK)
    assert forced_mode(counts, FOCUS, ASK, 1) is Mode.VIDEO
    again = counts.model_copy(update={"forced": (Mode.VIDEO,)})
    assert forced_mode(again, FOCUS, ASK, 1) is Mode.NEIGHBOR
    assert forced_mode(again, FOCUS, ASK, 0) is Mode.EVENT
    moved = counts.model_copy(update={"forced": (Mode.VIDEO, Mode.EVENT)})
    assert forced_mode(moved, FOCUS, ASK, 0) is Mode.VIDEO
    assert forced_mode(counts, None, ASK, 1) is None


def test_something_new_unlocks_the_search() -> None:
    counts, _ = play(STUCK, GOOD, STUCK)
    assert forced_mode(counts, FOCUS, ASK, 1) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What did Ann put on the table?", "ann put table"),
        ("Who?", "scene with who"),
        ("the rain fell", "rain fell"),
        ("the rain", "scene with rain"),
        ("?!", "scene with people"),
    ],
)
def test_a_subtask_becomes_a_query_of_at_least_two_words(text: str, words: str) -> None:
    assert keywords(text) == words


@pytest.mark.parametrize(
    ("forced", "focus", "labels", "mode"),
    [
        (None, None, (), Mode.EVENT),
        (None, FOCUS, (), Mode.VIDEO),
        (Mode.KEYFRAME, FOCUS, (), Mode.KEYFRAME),
        (Mode.NEIGHBOR, FOCUS, ("lunch",), Mode.NEIGHBOR),
        (Mode.NEIGHBOR, FOCUS, (), Mode.EVENT),
    ],
)
def test_the_harness_searches_where_it_can(
    forced: Mode | None, focus: Focus | None, labels: tuple[str, ...], mode: Mode
) -> None:
    action = harness_search(Subtask(id="t1", text="Ann opens the door"), forced, focus, labels)
    assert action.mode is mode
    assert len(action.query.split()) >= (1 if mode is Mode.NEIGHBOR else 2)
