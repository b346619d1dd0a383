"""Which moments of a view a question is about: words and vectors over several time scales.

Every signal is standardised over the view and added with a round weight. All of it is computed
from the view alone: what comes later changes nothing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from retrieval.coarse import CoarseField, coarse_field, first_pass
from retrieval.heuristics.actors import are_people, people_of
from retrieval.heuristics.captioned_options import DoingWeights, described_support
from retrieval.heuristics.clock import HOUR, LAST, PLAN, Times, are_times, said_time
from retrieval.heuristics.language import small_words
from retrieval.heuristics.restate import bare, statement
from retrieval.lexical import bm25
from retrieval.people_in_query import NOBODY, ViewPeople
from retrieval.relevance import NOISE, Relevance, Scores, deviation, standard
from retrieval.video_index import Floats
from retrieval.view_index import ViewIndex
from store.queries.search import Matrix

WINDOWS = 4
"""A view must be so many windows long for words to be counted in windows of that width."""


MANY = 20_000
"""From so many lines in view on, a first pass over rounded vectors tells what to score exactly."""


@dataclass(frozen=True)
class SignalWeights:
    """How much each signal counts, in standard deviations unless said otherwise. Round on purpose.

    Windows are (half width in clips, weight).
    """

    question_line: float = 1.0  # the closest line of the cell to the question
    question_cell: float = 0.5  # the cell as a whole to the question
    question_windows: tuple[tuple[int, float], ...] = ((0, 0.5), (1, 0.5), (3, 0.5), (10, 0.5))
    statement_line: float = 0.5  # the same for the question restated with an option
    statement_cell: float = 0.5
    option_line: float = 1.0  # the same for the option alone
    option_cell: float = 0.5
    option_windows: tuple[tuple[int, float], ...] = ((0, 1.0), (1, 0.5))
    recency: float = 0.5  # times -ln(hours ago)
    recency_last_times: float = 1.0  # the same, where times are asked and it is the last
    question_time: float = 1.0  # times the log of how well a moment fits the time asked about
    option_time: float = 4.0  # the same for the time that an option says
    actor: float = 1.0  # who does it, where the options are people
    doings: DoingWeights = dataclasses.field(
        default_factory=DoingWeights
    )  # over short captioned videos, instead of all above


@dataclass(frozen=True)
class PreparedQuestion:
    """A question, made ready. ``as_of_s``: asked at this moment of the video, None: afterwards.

    ``cast`` is who is known in the view.
    """

    text: str
    options: tuple[str, ...] = ()
    as_of_s: float | None = None
    cast: ViewPeople = NOBODY

    @property
    def bare(self) -> str:
        """What it asks for, without frame and order words."""
        return bare(self.text) or self.text

    def timed(self, view: ViewIndex) -> bool:
        """Whether its options are times."""
        return bool(self.options) and are_times(self.options, now(self, view))

    @cached_property
    def words(self) -> list[str]:
        """The search terms of what it asks for, with the tags of whom it names.

        Without the small words of the language it is asked in, where that is told and there is
        more: text in another language than English is full of them.
        """
        every = self.cast.terms_of(self.bare)
        small = small_words(self.text)
        return [word for word in every if word not in small] or every

    @property
    def somebody(self) -> str:
        """The question restated as somebody's doing."""
        return statement(self.text, "someone")

    def statements(self) -> tuple[str, ...]:
        """The question restated with each option."""
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


def now(asked: PreparedQuestion, view: ViewIndex) -> float:
    """When the question is asked, in seconds of video time: as of, or at the end of the view."""
    if asked.as_of_s is not None:
        return asked.as_of_s
    return max((part.as_of_ms for part in view.parts), default=0) / 1000


def relevance(
    view: ViewIndex,
    asked: PreparedQuestion,
    vectors: QuestionVectors,
    weights: SignalWeights | None = None,
) -> Relevance:
    """Score every cell of a view that has at least one."""
    weights = weights or SignalWeights()
    if not asked.options and view.line_count >= MANY:
        return _coarse(view, asked, vectors, weights)
    return _exact(view, asked, vectors, weights)


def _coarse(
    view: ViewIndex, asked: PreparedQuestion, vectors: QuestionVectors, weights: SignalWeights
) -> CoarseField:
    with first_pass(view, vectors.question) as passed:
        rest = _order(view, asked, weights) + weights.question_time * _question_fit(view, asked)
        rest += _question_words(view, asked, weights)
        line, cell = weights.question_line, weights.question_cell
        return coarse_field(view, vectors.question, rest, passed(), line, cell)


def _exact(
    view: ViewIndex, asked: PreparedQuestion, vectors: QuestionVectors, weights: SignalWeights
) -> Relevance:
    timed = asked.timed(view)
    stacked = np.concatenate([vectors.question[None], vectors.statements, vectors.options])
    lines, whole = view.cosines(stacked)
    near = np.maximum.reduceat(lines, view.first, axis=1)
    question = _question_score(view, asked, weights, near[0], whole[0])
    if timed:
        options = support = question + weights.option_time * _option_fits(view, asked)
    else:
        question = question + weights.question_time * _question_fit(view, asked)
        options = question + _option_evidence(view, asked, weights, near[1:], whole[1:])
        support = options + weights.actor * _actor_evidence(view, asked, vectors)
    line_support = None
    if vectors.doings is not None:
        statements = lines[1 : 1 + len(asked.options)]
        line_support = described_support(
            view, asked, vectors, vectors.doings, statements, weights.doings
        )
        options = support = np.maximum.reduceat(line_support, view.first, axis=1)
    return Relevance(question, options, support, lines, near, line_support=line_support)


def _question_score(
    view: ViewIndex, asked: PreparedQuestion, weights: SignalWeights, near: Floats, whole: Floats
) -> Scores:
    score = weights.question_line * standard(near) + weights.question_cell * standard(whole)
    return score + _question_words(view, asked, weights) + _order(view, asked, weights)


def _question_words(view: ViewIndex, asked: PreparedQuestion, weights: SignalWeights) -> Scores:
    """What the words of the question add to every cell, over windows of several widths, (N,)."""
    windows = [(half, weight) for half, weight in weights.question_windows if fits(half, view)]
    added = np.zeros(view.cell_count)
    told = bm25(view, asked.words, [half for half, _ in windows])
    for (_, weight), said in zip(windows, told, strict=True):
        said -= said.mean()
        away = deviation(said)
        if away >= NOISE:
            said *= weight / (away + NOISE)
            added += said
    return added


def fits(half: int, view: ViewIndex) -> bool:
    """Whether a window tells places apart: the view must be several windows long."""
    return half == 0 or WINDOWS * (2 * half + 1) <= view.cell_count


def _order(view: ViewIndex, asked: PreparedQuestion, weights: SignalWeights) -> Scores:
    """Recent moments first, where the question is asked at some moment of the video."""
    if asked.as_of_s is None:
        return np.zeros(view.cell_count)
    ago = np.maximum(asked.as_of_s - view.times, 60.0)
    last = asked.timed(view) and LAST.search(asked.text)
    recency = weights.recency_last_times if last else weights.recency
    return np.asarray(-recency * np.log(ago / HOUR), dtype=np.float64)


def _question_fit(view: ViewIndex, asked: PreparedQuestion) -> Scores:
    """The log of how well each cell fits the time that the question asks about, 0 for none."""
    fit = None if PLAN.search(asked.text) else said_time(asked.text, *_clock(view, asked))
    if fit is None or not fit.any():
        return np.zeros(view.cell_count)
    return np.asarray(np.log(fit + 0.05), dtype=np.float64)


def _option_fits(view: ViewIndex, asked: PreparedQuestion) -> Scores:
    """The log of how well each cell fits the time that each option says, shape (O, N)."""
    fits = [said_time(option, *_clock(view, asked)) for option in asked.options]
    blank = np.zeros(view.cell_count)
    fit = np.stack([blank if f is None else f for f in fits])
    return np.asarray(np.log(fit + 0.02), dtype=np.float64)


def _clock(view: ViewIndex, asked: PreparedQuestion) -> tuple[Times, float]:
    return view.times, now(asked, view)


def _option_evidence(
    view: ViewIndex, asked: PreparedQuestion, weights: SignalWeights, near: Floats, whole: Floats
) -> Scores:
    """What speaks for each option in each cell, shape (O, N)."""
    count = len(asked.options)
    if not count:
        return np.zeros((0, view.cell_count))
    score = weights.statement_line * standard(near[:count])
    score += weights.option_line * standard(near[count:])
    score += weights.statement_cell * standard(whole[:count])
    score += weights.option_cell * standard(whole[count:])
    return score + standard(_option_words(view, asked, weights))


def _option_words(view: ViewIndex, asked: PreparedQuestion, weights: SignalWeights) -> Scores:
    """BM25 of the words that an option has and the question has not, shape (O, N)."""
    known = set(asked.words)
    own = [set(asked.cast.terms_of(option)) - known for option in asked.options]
    score = np.zeros((len(own), view.cell_count))
    windows = [(half, weight) for half, weight in weights.option_windows if fits(half, view)]
    told = [bm25(view, words, [half for half, _ in windows]) for words in own]
    for number, (_, weight) in enumerate(windows):
        score += weight * np.stack([of_option[number] for of_option in told])
    return score


def _actor_evidence(view: ViewIndex, asked: PreparedQuestion, vectors: QuestionVectors) -> Scores:
    """How well what the people of each option do or say fits the question, shape (O, N).

    Of each cell the person's closest line to "somebody does it" counts; zeros where the options
    are not people.
    """
    actors, blank = view.actors, np.zeros((len(asked.options), view.cell_count))
    narrator = actors.narrator()
    options = [asked.cast.as_written(option) for option in asked.options]
    people = [people_of(option, actors.speakers(), narrator) for option in options]
    if not are_people(people):
        return blank
    cosines = view.cosines(vectors.somebody[None])[0][0]
    floor = float(cosines[~view.hidden].mean())
    best = {
        name: np.maximum.reduceat(
            np.where(actors.of([name], name == narrator), cosines, floor), view.first
        )
        for name in sorted({name for option in people for name in option})
    }
    for number, option in enumerate(people):
        blank[number] = np.mean([best[name] for name in option], axis=0) if option else floor
    return standard(blank)
