"""Cosines of lines on the scales of the question, the statements and the options."""

from __future__ import annotations

import numpy as np

from retrieval.relevance import Relevance, SignalScale

PLAIN = SignalScale(mean=0.0, weight=1.0)


def relevance(lines: list[list[float]], *scales: SignalScale) -> Relevance:
    """Relevance of two cells, each with one line, for an open question or for options."""
    options = np.zeros(((len(lines) - 1) // 2, 2))
    return Relevance(
        question=np.zeros(2),
        options=options,
        support=options,
        lines=np.array(lines, dtype=np.float32),
        near=np.zeros(2, dtype=np.float32),
        scales=(scales[0], scales[1], scales[2]),
    )


def test_a_line_scores_by_question_statement_and_option_each_on_its_own_scale() -> None:
    cosines = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    scales = (SignalScale(0.0, 100.0), SignalScale(0.5, 10.0), SignalScale(0.0, 1.0))
    scores = relevance(cosines, *scales).cosine_scores(np.array([0, 1]))
    assert scores.tolist() == [[96.0, 5.0], [105.0, 6.0]]


def test_chosen_options_keep_their_lines_and_scores() -> None:
    cosines = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    whole = relevance(cosines, PLAIN, PLAIN, PLAIN)
    every = whole.cosine_scores(np.array([0, 1]))
    for option in (0, 1):
        chosen = whole.of_options([option]).cosine_scores(np.array([0, 1]))
        assert chosen.tolist() == [every[option].tolist()]
    assert whole.of_options([0, 1]) is whole
