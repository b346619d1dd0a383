"""What an action must be, and how little new it may bring before the search is forced on."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.harness.constrain import ActionBounds, check, chosen_letter, letter
from agent.harness.verify_and_correct import (
    RoundGain,
    after_round,
    forced_mode,
    harness_search,
    increment,
    is_low,
    keywords,
    payload_words,
    replan_reasons,
)
from agent.state import Focus, ProgressLedger
from domain.asking import Action, Ledger, Mode, Subtask
from domain.ledger import SubtaskDraft, abandon, begin_attempt, new_ledger
from domain.settings import AskSettings
from domain.trajectory import EvidenceRetrieved
from tests.support.machine import answer, evidence

ASK = AskSettings()
FOUR = ("a red car", "a blue bus", "Option D of all", "nobody")
SEARCHED = (EvidenceRetrieved(mode=Mode.EVENT, query="car at the gate"),)
FOCUS = Focus(id=1, video="0123456789abcdef", label="breakfast")
GOOD = RoundGain(empty=False, new_evidence=True, low=False, same_focus=False)
STUCK = RoundGain(empty=False, new_evidence=False, low=False, same_focus=True)


def search(query: str, mode: Mode | None = Mode.EVENT) -> Action:
    return Action(kind="search", mode=mode, query=query)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("C", "C"),
        (" (c) ", "C"),
        ("[B]", "B"),
        ("The answer is B.", "B"),
        ("Option E", "E"),
        ("a blue bus", "B"),
        ("B) a blue bus", "B"),
        ("B: A blue bus.", "B"),
        ("nice", "F"),
        ("G", None),
        ("", None),
        ("A nice guess is C", None),
        ("A or B", None),
        ("B) a red car", None),
        ("B. because it is a red car", None),
        ("a red", None),
        ("I think it is a red car", None),
    ],
)
def test_an_answer_is_an_option_only_if_it_says_just_that(said: str, expected: str | None) -> None:
    assert chosen_letter(said, (*FOUR, "a dog", "nice")) == expected


def test_options_of_the_same_words_are_not_told_apart_by_their_text() -> None:
    assert chosen_letter("yes", ("yes", "Yes.")) is None
    assert chosen_letter("B", ("yes", "Yes.")) == "B"


@given(st.integers(1, 26), st.integers(0, 25))
def test_every_letter_from_a_to_z_is_an_option_where_there_are_that_many(n: int, at: int) -> None:
    options = tuple(f"thing {i} of many" for i in range(n))
    assert chosen_letter(letter(at), options) == (string.ascii_uppercase[at] if at < n else None)


@given(st.text(max_size=40))
def test_whatever_is_said_is_an_option_of_the_question_or_none(said: str) -> None:
    assert chosen_letter(said, FOUR) in (None, "A", "B", "C", "D")


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (None, "format"),
        (answer("", "m1"), "format"),
        (answer("maybe A", "m1"), "option"),
        (answer("E", "m1"), "option"),
        (answer("", missing=True), "not in memory"),
        (answer("A"), "citation"),
        (answer("A", "m1", "m5"), "citation"),
        (search("red car", None), "mode"),
        (search("next door", Mode.NEIGHBOR), "mode"),
        (search("car"), "query"),
        (search("a red car?"), "query"),
        (search("what does the car do"), "query"),
        (search("The colour of the CAR"), "query"),
        (answer("A", "m1"), None),
        (search("a red car at a gate"), None),
        (search("the car is red", Mode.VIDEO), None),
    ],
)
def test_the_first_broken_rule_is_named_and_explained(action: Action | None, rule: str) -> None:
    bounds = ActionBounds(
        options=FOUR,
        subtask="the colour of the car",
        searched=SEARCHED,
        evidence=frozenset({"m1", "m2"}),
    )
    verdict = check(action, bounds, ASK)
    assert (verdict.accepted, verdict.rule) == (rule is None, rule)
    assert bool(verdict.complaint) != verdict.accepted


@pytest.mark.parametrize(
    ("query", "accepted"),
    [("안이 문을 연다", True), ("アンがドアを開ける", True), ("アン？", False), ("文", False)],
)
def test_a_query_without_spaces_has_words_too(query: str, accepted: bool) -> None:
    assert check(search(query), ActionBounds(), ASK).accepted is accepted
    again = (EvidenceRetrieved(mode=Mode.EVENT, query=query),) * 2
    assert not check(search(query), ActionBounds(searched=again), ASK).accepted


def test_a_person_who_was_never_shown_is_nobody_to_answer_with() -> None:
    bounds = ActionBounds(
        searched=SEARCHED, evidence=frozenset({"m1"}), tags=frozenset({"<face_1>"})
    )
    assert check(answer("<face_1> waves", "m1"), bounds, ASK).accepted
    verdict = check(answer("<face_1> and <character_99> wave", "m1"), bounds, ASK)
    assert verdict.rule == "tag"
    assert "<character_99>" in verdict.complaint
    assert "<face_1>" not in verdict.complaint


def test_an_open_question_may_be_answered_with_not_in_memory_after_searching() -> None:
    assert check(answer("", missing=True), ActionBounds(searched=SEARCHED), ASK).accepted
    assert not check(answer("", missing=True), ActionBounds(), ASK).accepted


def test_a_forced_mode_is_the_only_one_taken_but_an_answer_is_never_forbidden() -> None:
    bounds = ActionBounds(searched=SEARCHED, forced=Mode.VIDEO, evidence=frozenset({"m1"}))
    assert check(search("a car moves"), bounds, ASK).rule == "mode"
    assert check(search("a car moves", Mode.VIDEO), bounds, ASK).accepted
    assert check(answer("red", "m1"), bounds, ASK).accepted


def test_a_mode_that_is_switched_off_is_refused_and_not_suggested() -> None:
    bounds = ActionBounds(modes=(Mode.VIDEO,))
    refused = check(search("a car moves"), bounds, ASK)
    assert refused.rule == "mode"
    assert refused.complaint == "There is no mode event here: search in mode video."
    twice = (EvidenceRetrieved(mode=Mode.VIDEO, query="a car moves"),) * 2
    again = bounds.model_copy(update={"searched": twice})
    output = check(search("a car moves", Mode.VIDEO), again, ASK).complaint
    assert output.endswith("in mode video: search for something else.")


def test_a_third_near_duplicate_in_the_same_mode_is_blocked_but_not_in_another() -> None:
    twice = (
        EvidenceRetrieved(mode=Mode.EVENT, query="the red car at the gate"),
        EvidenceRetrieved(mode=Mode.EVENT, query="a red car at the gate"),
    )
    again = "red car at the gate"
    for past, mode, accepted in (
        (twice[:1], Mode.EVENT, True),
        (twice, Mode.EVENT, False),
        (twice, Mode.VIDEO, True),
    ):
        verdict = check(search(again, mode), ActionBounds(searched=past, focused=True), ASK)
        assert verdict.accepted is accepted


def test_moving_twice_to_the_same_neighbour_is_no_duplicate() -> None:
    moves = tuple(EvidenceRetrieved(mode=Mode.NEIGHBOR, query="lunch") for _ in range(3))
    bounds = ActionBounds(searched=moves, focused=True)
    assert check(search("lunch", Mode.NEIGHBOR), bounds, ASK).accepted
    assert check(search(" ", Mode.NEIGHBOR), bounds, ASK).rule == "query"


@pytest.mark.parametrize(
    ("subtask", "example"),
    [
        ("Where is the red car", ', such as "red car"'),
        ("Where is the car", ""),
        ("red car", ""),
        (
            "Who carries the red box, the blue bag and the green hat up the steep stairs",
            ', such as "carries red box blue bag green hat steep"',
        ),
    ],
)
def test_a_query_that_is_too_short_gets_example_made_of_subtask(subtask: str, example: str) -> None:
    verdict = check(search("car"), ActionBounds(subtask=subtask), ASK)
    assert verdict.complaint == f"The query needs at least two words{example}."


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
