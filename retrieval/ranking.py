"""Ranking of cells: a weighted sum of standardised signals.

A signal's mean and deviation are taken over a fixed sample of the view's clips, so a score depends
neither on the other candidates nor on anything after the view.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.settings import SearchSettings
from retrieval import signals
from retrieval.heuristics import questions
from retrieval.heuristics.options import captioned_support
from retrieval.lines import Floats, Ints, LineSet, Matrix, Scores, search_text
from retrieval.people_in_query import NOBODY, ViewPeople
from retrieval.relevance import NOISE, Relevance, signal_scale, standardise
from retrieval.terms import database_words, terms

WINDOWS = 4
"""Minimum length of a view, in windows, for BM25 over windows of that width."""


@dataclass(frozen=True)
class PreparedQuestion:
    """A question with its search terms. ``now_s``: when it is asked, in seconds of video time.

    ``as_of``: whether it is asked as of a moment of the video, not afterwards. ``people``: the
    people of the view.
    """

    text: str
    options: tuple[str, ...] = ()
    now_s: float = 0.0
    as_of: bool = False
    people: ViewPeople = NOBODY

    @property
    def core(self) -> str:
        """The question without framing, time and order words."""
        return questions.core_question(self.text) or self.text

    @cached_property
    def english(self) -> bool:
        """Whether the rules for English apply."""
        return questions.is_english(self.text)

    @cached_property
    def timed(self) -> bool:
        return bool(self.options) and questions.are_times(self.options, self.now_s)

    @cached_property
    def words(self) -> list[str]:
        """The search terms of the question, with the tags of the people it names.

        Function words of its language are removed, unless nothing else is left.
        """
        all_terms = self.people.terms_of(self.core, english=self.english)
        common = questions.function_words(self.text)
        return [word for word in all_terms if word not in common] or all_terms

    @cached_property
    def option_words(self) -> tuple[tuple[str, ...], ...]:
        """The search terms of each option that the question lacks."""
        known = set(self.words)
        known |= questions.function_words(self.text)
        option_terms = (
            self.people.terms_of(option, english=self.english) for option in self.options
        )
        return tuple(tuple(word for word in words if word not in known) for words in option_terms)

    @cached_property
    def database_words(self) -> dict[str, str]:
        """Map every search term to a word or phrase for the database's full text."""
        texts = [self.core, *self.options]
        tags = " ".join(self.people.tags_in(" ".join(texts)))
        written = " ".join(map(self.people.with_former_names, texts))
        return database_words(" ".join([*texts, written, tags]), english=self.english)

    @property
    def about_someone(self) -> str:
        """The question restated as a statement about someone."""
        return questions.statement(self.text, "someone")

    def statements(self) -> tuple[str, ...]:
        return tuple(questions.statement(self.text, option) for option in self.options)


@dataclass(frozen=True, eq=False)
class QuestionVectors:
    """Unit vectors of the core question (D,), of each statement and each option (O, D).

    ``about_someone`` (D,) is the question restated as a statement about someone; ``actions`` (O, D)
    are the options as actions of the question's subject, if they are compared like that
    (``retrieval.heuristics.options``).
    """

    question: Floats
    statements: Matrix
    options: Matrix
    about_someone: Floats
    actions: Matrix | None = None

    @property
    def stacked(self) -> Matrix:
        """Question, statements and options, (1 + 2 O, D)."""
        return np.concatenate([self.question[None], self.statements, self.options])


@dataclass(frozen=True, eq=False)
class CandidateLines:
    """The N candidate cells with M lines, and statistics of the whole view.

    ``sample`` (N,) marks the cells of the fixed sample. ``hits`` are the clips that contain the
    search terms. ``clips`` is the number of clips in view, ``view_lines`` an estimate of the number
    of lines. ``roster`` are the speakers and ``named`` the people that each option names, if the
    options are people.
    """

    lines: LineSet
    sample: NDArray[np.bool_]
    hits: signals.WordHits
    clips: int
    view_lines: int
    roster: signals.Roster | None = None
    named: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The place of each cell in ``hits``, shape (N,)."""
        return self.hits.places_of(self.lines)

    @cached_property
    def sampled_lines(self) -> NDArray[np.bool_]:
        """Which lines are in cells of the sample, (M,)."""
        return np.asarray(self.sample[self.lines.cell_of_line])

    def standardise(self, values: NDArray[np.floating], weight: float = 1.0) -> Scores:
        """Standardise a signal (..., N) by its mean and deviation over the sample."""
        return signal_scale(values[..., self.sample], weight).of(values)


def relevance(
    candidates: CandidateLines,
    question: PreparedQuestion,
    vectors: QuestionVectors,
    weights: SearchSettings | None = None,
) -> Relevance:
    """Score every cell.

    Args:
        candidates: At least one cell.
        weights: The weight of each signal; the defaults if None.
    """
    weights = weights or SearchSettings()
    count, queries = len(vectors.options), vectors.stacked
    lines, line_signal = signals.line_cosines(candidates.lines, queries)
    cell_signal = signals.cell_cosines(candidates.lines, queries)
    score = candidates.standardise(line_signal[0], weights.question_line) + candidates.standardise(
        cell_signal[0], weights.question_cell
    )
    question_scores = (
        score
        + question_words(candidates.hits, question, candidates.clips, weights)[candidates.places]
        + recency_score(candidates.lines.times, question, weights)
    )
    line_support = None
    if question.timed:
        fits = signals.option_fits(question.options, candidates.lines.times, question.now_s)
        option_scores = support = question_scores + weights.option_time * fits
    else:
        fit = signals.question_fit(question.text, candidates.lines.times, question.now_s)
        question_scores = question_scores + weights.question_time * fit
        option_scores = question_scores + _option_score(
            candidates, question, weights, line_signal[1:], cell_signal[1:]
        )
        support = option_scores + weights.actor * _actor_score(candidates, vectors)
    if vectors.actions is not None:
        line_support = captioned_support(
            candidates, question, vectors.actions, lines[1 : 1 + count], weights.doings
        )
        option_scores = support = np.asarray(
            candidates.lines.largest(line_support), dtype=np.float64
        )
    # The scales of cosines with the question, the statements and the options.
    sampled = lines[:, candidates.sampled_lines]
    line_scales = [
        signal_scale(sampled[:1]),
        signal_scale(sampled[1 : 1 + count]),
        signal_scale(sampled[1 + count :]),
    ]
    scales = tuple(line_scales)
    return Relevance(
        question_scores, option_scores, support, lines, line_signal[0], scales, line_support
    )


def question_words(
    hits: signals.WordHits, question: PreparedQuestion, clips: int, weights: SearchSettings
) -> Scores:
    """Score every place (P,) by the question's words, in windows of several widths."""
    total = np.zeros(hits.size)
    for half, weight in weights.question_windows:
        if window_fits(half, clips):
            total += standardise_words(hits.bm25(question.words, half), hits.cells, weight)
    return total


def standardise_words(scores: Scores, cells: int, weight: float = 1.0) -> Scores:
    """Standardise BM25 scores (..., P) over all ``cells`` of the view; most of them are 0."""
    size = max(1, cells * (len(scores) if scores.ndim > 1 else 1))
    mean = float(scores.sum()) / size
    deviation = float(np.sqrt(max(float(np.square(scores).sum()) / size - mean**2, 0.0)))
    if deviation < NOISE:
        return np.zeros(scores.shape)
    return np.asarray((scores - mean) * (weight / deviation))


def window_fits(half: int, clips: int) -> bool:
    """Check whether a view of ``clips`` clips is several windows long."""
    return half == 0 or WINDOWS * (2 * half + 1) <= clips


def recency_score(times: Scores, question: PreparedQuestion, weights: SearchSettings) -> Scores:
    """Return the recency signal, (N,); zeros unless the question is asked as of a moment."""
    if not question.as_of:
        return np.zeros(len(times))
    last = question.timed and question.english and questions.LATEST.search(question.text)
    weight = weights.recency_last_times if last else weights.recency
    return weight * signals.recency(times, question.now_s)


def _option_score(
    candidates: CandidateLines,
    question: PreparedQuestion,
    weights: SearchSettings,
    line_signal: Floats,
    cell_signal: Floats,
) -> Scores:
    """Return the score that each option adds in each cell, shape (O, N)."""
    count = len(question.options)
    if not count:
        return np.zeros((0, candidates.lines.cell_count))
    score = candidates.standardise(line_signal[:count], weights.statement_line)
    score += candidates.standardise(line_signal[count:], weights.option_line)
    score += candidates.standardise(cell_signal[:count], weights.statement_cell)
    score += candidates.standardise(cell_signal[count:], weights.option_cell)
    return (
        score
        + option_words(candidates.hits, question, candidates.clips, weights)[:, candidates.places]
    )


def option_words(
    hits: signals.WordHits, question: PreparedQuestion, clips: int, weights: SearchSettings
) -> Scores:
    """Score every place by the terms of each option that the question lacks, (O, P)."""
    score = np.zeros((len(question.options), hits.size))
    for half, weight in weights.option_windows:
        if window_fits(half, clips):
            score += weight * np.stack([hits.bm25(words, half) for words in question.option_words])
    return standardise_words(score, hits.cells)


def _actor_score(candidates: CandidateLines, vectors: QuestionVectors) -> Scores:
    """Return the people signal of each option, (O, N); zeros if the options are not people."""
    if candidates.roster is None or not candidates.named:
        return np.zeros((len(vectors.options), candidates.lines.cell_count))
    cosines = candidates.lines.cosines(vectors.about_someone[None])[0]
    floor = float(cosines[candidates.sampled_lines].mean()) if candidates.sample.any() else 0.0
    people_fits = signals.actor_fits(
        candidates.lines, candidates.roster, candidates.named, cosines, floor
    )
    return candidates.standardise(people_fits)


# Ranking of lines within the best cells.

CELLS = 100
"""Number of best cells whose lines are ranked."""
WORDS = 1.0
"""Weight of the words of a line by itself, in standard deviations."""
LINE = 0.5
"""Weight of a line's cosines relative to the score of its cell."""


STRENGTH, STRONGEST = 0.25, 1.0
"""Standard deviations added for the log of a fact's strength, and their maximum."""


@dataclass(frozen=True)
class RankedLine:
    """A line (its number in the set), its cell, its score, and the option it supports most."""

    line: int
    cell: int
    score: float
    option: int | None = None


def line_scores(candidates: CandidateLines, relevance: Relevance, lines: Ints) -> Scores:
    """Score each line with each option, shape (O, L); (1, L) where there are no options.

    A line's score is its cell's score plus ``LINE`` times its standardised cosines.
    """
    if relevance.line_support is not None:
        return np.asarray(relevance.line_support[:, lines])
    cells = candidates.lines.cell_of_line[lines]
    cell_scores = relevance.options if len(relevance.options) else relevance.question[None]
    return np.asarray(
        cell_scores[:, cells] + LINE * relevance.cosine_scores(lines), dtype=np.float64
    )


def best_lines(
    candidates: CandidateLines,
    question: PreparedQuestion,
    relevance: Relevance,
    limit: int,
    words: Sequence[str] = (),
) -> list[RankedLine]:
    """Return the best line of each of the best ``limit`` cells, best first."""
    # With ``words``, a line that has them in itself counts for more than one whose clip does.
    cells = np.argsort(-relevance.cells, kind="stable")[:CELLS]
    lines = candidates.lines.lines_of(cells.tolist())
    if not len(lines):
        return []
    scores = line_scores(candidates, relevance, lines)
    if words:
        numbers = lines.tolist()
        candidates.lines.read_lines(numbers)
        texts = [terms(search_text(candidates.lines.line(n)[1])) for n in numbers]
        scores = scores + WORDS * standardise(signals.WordScores(texts).of(words))
    options = bool(question.options)
    best, chosen = scores.max(axis=0), scores.argmax(axis=0)
    best_by_cell: dict[int, RankedLine] = {}
    for i in np.argsort(-best, kind="stable"):
        line, cell = int(lines[i]), int(candidates.lines.cell_of_line[lines[i]])
        if cell not in best_by_cell:
            option = int(chosen[i]) if options else None
            best_by_cell[cell] = RankedLine(line, cell, float(best[i]), option)
        if len(best_by_cell) == limit:
            break
    return list(best_by_cell.values())


def add_strength(lines: Sequence[RankedLine], confirmations: Mapping[int, int]) -> list[RankedLine]:
    """Add the strength of semantic memories to scores and sort again (section 1, entity graph).

    Args:
        lines: Lines, best first; equal ones keep their order.
        confirmations: How often the fact of a line was confirmed, by the line's number.
    """
    strengthened = [
        replace(
            line,
            score=line.score
            + min(STRONGEST, STRENGTH * math.log1p(confirmations.get(line.line, 0))),
        )
        for line in lines
    ]
    return sorted(strengthened, key=lambda line: -line.score)
