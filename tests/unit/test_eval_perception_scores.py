"""The scores of what is seen and heard: each beside a plain way to work it out."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.perception.metrics import (
    Cuts,
    Pairs,
    SpeakerErrors,
    SpeakerSpan,
    compare_cuts,
    count_pairs,
    speaker_errors,
    word_errors,
)

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=14)


@given(LABELS)
def test_pairs_are_counted_as_by_looking_at_each(sightings: list[tuple[int, int]]) -> None:
    every = list(combinations(sightings, 2))
    plain = Pairs(
        right=sum(a == b for a, b in every),
        joined=sum(a[1] == b[1] for a, b in every),
        same=sum(a[0] == b[0] for a, b in every),
    )
    assert count_pairs(sightings) == plain
    assert 0 <= plain.f1 <= 1


TURNS = st.lists(
    st.builds(
        lambda start, length, who: SpeakerSpan(start, start + length, who),
        st.integers(0, 20),
        st.integers(0, 8),
        st.sampled_from("abc"),
    ),
    max_size=6,
)


def by_the_millisecond(
    true: list[SpeakerSpan], output: list[SpeakerSpan], end: int, collar: int
) -> SpeakerErrors:
    """The same by looking at each millisecond under every mapping of names."""
    merged = {
        w: {t for s in true if s.who == w for t in range(s.start_ms, s.end_ms)} for w in "abc"
    }
    edges = [t for said in merged.values() for t in said if t - 1 not in said]
    edges += [t + 1 for said in merged.values() for t in said if t + 1 not in said]
    scored = [t for t in range(end) if not any(e - collar <= t < e + collar for e in edges)]
    heard = {
        w: {t for s in output if s.who == w for t in range(s.start_ms, s.end_ms)} for w in "abc"
    }
    options = []
    for names in permutations("abc"):
        mapping = dict(zip("abc", names, strict=True))
        total = SpeakerErrors()
        for t in scored:
            real = {w for w in "abc" if t in merged[w]}
            said = {mapping[w] for w in "abc" if t in heard[w]}
            common = min(len(real), len(said))
            total += SpeakerErrors(
                len(real), len(real) - common, len(said) - common, common - len(real & said)
            )
        options.append(total)
    return min(options, key=lambda one: one.confused_ms)


@given(TURNS, TURNS, st.integers(0, 2))
def test_speaker_errors_are_those_of_each_millisecond(
    true: list[SpeakerSpan], output: list[SpeakerSpan], collar: int
) -> None:
    assert speaker_errors(true, output, [(0, 25)], collar) == by_the_millisecond(
        true, output, 25, collar
    )


def test_what_is_not_marked_and_the_collar_are_left_out() -> None:
    true, output = (
        [SpeakerSpan(1_000, 2_000, "a")],
        [SpeakerSpan(800, 2_200, "x"), SpeakerSpan(5_000, 9_000, "y")],
    )
    assert speaker_errors(true, output, [(0, 4_000)], 250).rate == 0
    assert speaker_errors(true, output, [(0, 4_000)], 0).false_ms == 400
    assert speaker_errors([], [], [(0, 10)]).rate == 0
    assert speaker_errors([], output, [(0, 4_000)]).rate == 100


TEXT = st.lists(st.sampled_from(["ann", "opens", "the", "red", "door"]), max_size=6)


@given(TEXT, TEXT, TEXT)
def test_word_edits_are_a_distance(a: list[str], b: list[str], c: list[str]) -> None:
    def edits(one: list[str], other: list[str]) -> int:
        return word_errors(" ".join(one), " ".join(other)).edits

    assert (edits(a, b) == 0) == (a == b)
    assert edits(a, b) == edits(b, a) <= max(len(a), len(b))
    assert edits(a, c) <= edits(a, b) + edits(b, c)
    assert edits(a, b) >= abs(len(a) - len(b))


@pytest.mark.parametrize(
    ("said", "written", "rate"),
    [
        ("Hello? Oh, hello.", "hello oh hello", 0),
        ("It’s 327 — I'm going in", "its 327 i'm going in", 20),
        ("one two three four", "one two four", 25),
        ("one two", "one and two", 50),
        ("Müller", "MÜLLER!", 0),
        ("", "", 0),
        ("", "noise", 100),
    ],
)
def test_words_are_compared_without_case_or_marks(said: str, written: str, rate: float) -> None:
    assert word_errors(said, written).rate == rate


TIMES = st.lists(st.integers(0, 60), max_size=7, unique=True)


def most_pairs(true: list[int], output: list[int], tolerance: int) -> int:
    """The largest pairing, by trying all."""
    if not true:
        return 0
    first, rest = true[0], true[1:]
    best = most_pairs(rest, output, tolerance)
    for one in output:
        if abs(one - first) <= tolerance:
            left = [other for other in output if other != one]
            best = max(best, 1 + most_pairs(rest, left, tolerance))
    return best


@given(TIMES, TIMES, st.integers(0, 9))
def test_cuts_are_paired_at_most(true: list[int], output: list[int], tolerance: int) -> None:
    found = compare_cuts(true, output, tolerance)
    assert found == Cuts(len(true), len(output), most_pairs(true, output, tolerance))
    assert 0 <= found.f1 <= 1


def test_a_cut_told_twice_is_wrong_once_and_none_of_none_is_all() -> None:
    assert compare_cuts([1_000], [900, 1_100], 250) == Cuts(1, 2, 1)
    assert compare_cuts([], [], 250).f1 == 1
    assert compare_cuts([], [5], 250).f1 == 0
