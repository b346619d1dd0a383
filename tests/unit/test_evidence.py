"""Which face is which voice, by who is in view while somebody speaks."""

from __future__ import annotations

from people.face_voice_evidence import merge_close_spans, spans_alone, speaking_alone, visible_spans
from tests.support.memory import face, percept, span, voice


def test_sightings_close_to_each_other_are_one_stretch() -> None:
    assert merge_close_spans([span(3, 4), span(0, 1), span(1.5, 2)], 1_000) == [span(0, 4)]
    assert merge_close_spans([span(0, 1), span(2.1, 3)], 1_000) == [span(0, 1), span(2.1, 3)]
    assert merge_close_spans([], 1_000) == []


def test_a_face_seen_at_instants_is_visible_in_between() -> None:
    assert visible_spans(face(0, 1, *[(n / 5, n / 5) for n in range(11)])) == [span(0, 2)]


def test_a_face_is_alone_while_no_other_is_seen() -> None:
    found = spans_alone([face(0, 1, (0, 10)), face(1, 2, (4, 6))])
    assert found == {0: [span(0, 4), span(6, 10)], 1: []}


def test_seconds_of_speech_with_one_face_in_view_are_counted() -> None:
    seen = percept(
        0,
        faces=(face(0, 1, (0, 10)), face(1, 2, (8, 20))),
        voices=(voice(0, 1, (2, 9)), voice(1, 2, (15, 18))),
    )
    assert speaking_alone(seen) == [(0, 0, 6.0), (1, 1, 3.0)]


def test_a_word_says_nothing_and_neither_does_a_voice_nobody_is_seen_with() -> None:
    seen = percept(
        0, faces=(face(0, 1, (0, 1)),), voices=(voice(0, 1, (0.5, 1)), voice(1, 2, (9, 20)))
    )
    assert speaking_alone(seen) == []
