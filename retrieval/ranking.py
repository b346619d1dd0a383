"""Which cells of a search a question is about: signals, each standardised, with round weights.

A signal's mean and deviation are those over a fixed sample of the view's clips, so a score depends
neither on what else was found nor on what comes after the view.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.settings import SearchSettings
from retrieval.heuristics.captioned_options import described_support
from retrieval.heuristics.clock import LAST, are_times
from retrieval.heuristics.language import small_words
from retrieval.heuristics.restate import bare, statement
from retrieval.line_set import Floats, LineSet, Matrix, Scores
from retrieval.people_in_query import NOBODY, ViewPeople
from retrieval.relevance import NOISE, Relevance, SignalScale, scale_of
from retrieval.signals.meaning import closest_lines, whole_cells
from retrieval.signals.people import Roster, actor_fits
from retrieval.signals.time import option_fits, question_fit, recency
from retrieval.signals.words import WordHits
from retrieval.terms import database_words

WINDOWS = 4
"""A view must be so many windows long for words to be counted in windows of that width."""


@dataclass(frozen=True)
class PreparedQuestion:
    """A question, made ready. ``now_s``: when it is asked, in seconds of video time.

    ``as_of``: whether it is asked at a moment of the video, not afterwards. ``people``: who is
    known in the view.
    """

    text: str
    options: tuple[str, ...] = ()
    now_s: float = 0.0
    as_of: bool = False
    people: ViewPeople = NOBODY

    @property
    def bare(self) -> str:
        """What it asks for, without frame and order words."""
        return bare(self.text) or self.text

    @cached_property
    def timed(self) -> bool:
        """Whether its options are times."""
        return bool(self.options) and are_times(self.options, self.now_s)

    @cached_property
    def words(self) -> list[str]:
        """The search terms of what it asks for, with the tags of whom it names.

        Without the small words of the language it is asked in, where that is told and there is
        more: text in another language than English is full of them.
        """
        every = self.people.terms_of(self.bare)
        small = small_words(self.text)
        return [word for word in every if word not in small] or every

    @cached_property
    def option_words(self) -> tuple[tuple[str, ...], ...]:
        """The search terms that each option has and the question has not."""
        known = set(self.words)
        own = (self.people.terms_of(option) for option in self.options)
        return tuple(tuple(word for word in words if word not in known) for words in own)

    @cached_property
    def database_words(self) -> dict[str, str]:
        """Map every search term to a word or phrase for the database's full text."""
        texts = [self.bare, *self.options]
        tags = " ".join(self.people.tags_in(" ".join(texts)))
        written = " ".join(map(self.people.as_written, texts))
        return database_words(" ".join([*texts, written, tags]))

    @property
    def somebody(self) -> str:
        """The question restated as somebody's doing."""
        return statement(self.text, "someone")

    def statements(self) -> tuple[str, ...]:
        """Return the question restated with each option."""
        return tuple(statement(self.text, option) for option in self.options)


@dataclass(frozen=True, eq=False)
class QuestionVectors:
    """Unit vectors of the bare question (D,), of each statement and each option (O, D).

    ``somebody`` (D,) is the question restated as somebody's doing; ``doings`` (O, D) are the
    options as somebody's, where they are compared so (``retrieval.heuristics.captioned_options``).
    """

    question: Floats
    statements: Matrix
    options: Matrix
    somebody: Floats
    doings: Matrix | None = None

    @property
    def stacked(self) -> Matrix:
        """Question, statements and options, (1 + 2 O, D)."""
        return np.concatenate([self.question[None], self.statements, self.options])


@dataclass(frozen=True, eq=False)
class SearchedLines:
    """What is ranked: N candidate cells with M lines, and what is known of the whole view.

    ``sample`` (N,) marks the cells of the fixed sample. ``hits`` are the clips that hold the words.
    ``clips`` is how many clips of the view were watched, ``view_lines`` about how many lines there
    are. ``roster`` and ``named`` tell who speaks and whom each option names, where the options are
    people.
    """

    lines: LineSet
    sample: NDArray[np.bool_]
    hits: WordHits
    clips: int
    view_lines: int
    roster: Roster | None = None
    named: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The place of each cell among those of the words, (N,)."""
        return self.hits.places_of(self.lines)

    @cached_property
    def sampled_lines(self) -> NDArray[np.bool_]:
        """Which lines are in cells of the sample, (M,)."""
        return np.asarray(self.sample[self.lines.cell_of_line])

    def scaled(self, values: NDArray[np.floating], weight: float = 1.0) -> Scores:
        """Standardise a signal (..., N) by its mean and deviation over the sample."""
        return scale_of(values[..., self.sample], weight).of(values)


def relevance(
    found: SearchedLines,
    asked: PreparedQuestion,
    vectors: QuestionVectors,
    weights: SearchSettings | None = None,
) -> Relevance:
    """Score every cell; there is at least one."""
    weights = weights or SearchSettings()
    count, queries = len(vectors.options), vectors.stacked
    lines, near = closest_lines(found.lines, queries)
    whole = whole_cells(found.lines, queries)
    question = _question_score(found, asked, weights, near[0], whole[0])
    line_support = None
    if asked.timed:
        fits = option_fits(asked.options, found.lines.times, asked.now_s)
        options = support = question + weights.option_time * fits
    else:
        fit = question_fit(asked.text, found.lines.times, asked.now_s)
        question = question + weights.question_time * fit
        options = question + _option_score(found, asked, weights, near[1:], whole[1:])
        support = options + weights.actor * _actor_score(found, vectors)
    if vectors.doings is not None:
        line_support = described_support(
            found, asked, vectors, vectors.doings, lines[1 : 1 + count], weights.doings
        )
        options = support = np.asarray(found.lines.largest(line_support), dtype=np.float64)
    scales = tuple(_line_scales(found, lines, count))
    return Relevance(question, options, support, lines, near[0], scales, line_support)


def _line_scales(found: SearchedLines, lines: Floats, count: int) -> list[SignalScale]:
    """The scales of cosines with the question, the statements and the options."""
    own = lines[:, found.sampled_lines]
    return [scale_of(own[:1]), scale_of(own[1 : 1 + count]), scale_of(own[1 + count :])]


def _question_score(
    found: SearchedLines,
    asked: PreparedQuestion,
    weights: SearchSettings,
    near: Floats,
    whole: Floats,
) -> Scores:
    score = found.scaled(near, weights.question_line) + found.scaled(whole, weights.question_cell)
    return (
        score
        + _question_words(found, asked, weights)[found.places]
        + _order(found.lines, asked, weights)
    )


def _question_words(
    found: SearchedLines, asked: PreparedQuestion, weights: SearchSettings
) -> Scores:
    return question_words(found.hits, asked, found.clips, weights)


def question_words(
    hits: WordHits, asked: PreparedQuestion, clips: int, weights: SearchSettings
) -> Scores:
    """Score every place (P,) by the question's words, in windows of several widths."""
    total = np.zeros(hits.size)
    for half, weight in weights.question_windows:
        if fits(half, clips):
            total += word_scale(hits.bm25(asked.words, half), hits.cells, weight)
    return total


def word_scale(scores: Scores, cells: int, weight: float = 1.0) -> Scores:
    """Standardise word scores (..., P): all of the watched cells count, the others have zeros."""
    size = max(1, cells * (len(scores) if scores.ndim > 1 else 1))
    mean = float(scores.sum()) / size
    deviation = float(np.sqrt(max(float(np.square(scores).sum()) / size - mean**2, 0.0)))
    if deviation < NOISE:
        return np.zeros(scores.shape)
    return np.asarray((scores - mean) * (weight / deviation))


def fits(half: int, clips: int) -> bool:
    """Check whether a window tells places apart: the view must be several windows long."""
    return half == 0 or WINDOWS * (2 * half + 1) <= clips


def _order(lines: LineSet, asked: PreparedQuestion, weights: SearchSettings) -> Scores:
    """Recent moments first, where the question is asked at some moment of the video."""
    if not asked.as_of:
        return np.zeros(lines.cell_count)
    last = asked.timed and LAST.search(asked.text)
    weight = weights.recency_last_times if last else weights.recency
    return weight * recency(lines.times, asked.now_s)


def _option_score(
    found: SearchedLines,
    asked: PreparedQuestion,
    weights: SearchSettings,
    near: Floats,
    whole: Floats,
) -> Scores:
    """What speaks for each option in each cell, shape (O, N)."""
    count = len(asked.options)
    if not count:
        return np.zeros((0, found.lines.cell_count))
    score = found.scaled(near[:count], weights.statement_line)
    score += found.scaled(near[count:], weights.option_line)
    score += found.scaled(whole[:count], weights.statement_cell)
    score += found.scaled(whole[count:], weights.option_cell)
    return score + option_words(found.hits, asked, found.clips, weights)[:, found.places]


def option_words(
    hits: WordHits, asked: PreparedQuestion, clips: int, weights: SearchSettings
) -> Scores:
    """Score every place by the words that an option has and the question has not, (O, P)."""
    score = np.zeros((len(asked.options), hits.size))
    for half, weight in weights.option_windows:
        if fits(half, clips):
            score += weight * np.stack([hits.bm25(words, half) for words in asked.option_words])
    return word_scale(score, hits.cells)


def _actor_score(found: SearchedLines, vectors: QuestionVectors) -> Scores:
    """How well the people of each option fit, (O, N); zeros where the options are not people."""
    if found.roster is None or not found.named:
        return np.zeros((len(vectors.options), found.lines.cell_count))
    cosines = found.lines.cosines(vectors.somebody[None])[0]
    floor = float(cosines[found.sampled_lines].mean()) if found.sample.any() else 0.0
    fits = actor_fits(found.lines, found.roster, found.named, cosines, floor)
    return found.scaled(fits)
