"""What the benchmark of joined people counts as right."""

from __future__ import annotations

from benchmarks.persons import compare_pairs
from domain.people import CharacterRef

A, B, C, STRANGER = (CharacterRef(video=video, number=0) for video in "abcd")
PEOPLE = {A: "ada", B: "ada", C: "omar"}


def test_pairs_of_one_person_are_right_and_pairs_with_strangers_wrong() -> None:
    right, wrong, strange = frozenset((A, B)), frozenset((A, C)), frozenset((A, STRANGER))
    assert [
        line.ours.median for line in list(compare_pairs("joined", {right}, PEOPLE, bar=1.0))
    ] == [100.0, 100.0]
    precision, recall = compare_pairs("joined", {right, wrong, strange}, PEOPLE, bar=1.0)
    assert (round(precision.ours.median), recall.ours.median) == (33, 100.0)
    assert (precision.reached, recall.reached) == (False, None)


def test_pairs_within_a_video_do_not_count() -> None:
    same = CharacterRef(video="a", number=1)
    (precision, recall) = compare_pairs("joined", set(), {A: "ada", same: "ada"})
    assert (precision.ours.median, recall.ours.median) == (100.0, 100.0)
