"""A question as a strategy searches for it, and how its memory supports the options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.memories import MemoryKind, MemoryView, Scope
from domain.search import Weighed
from domain.settings import SearchSettings
from domain.texts import make_storable
from domain.time import TimeSpan
from models.ports import TextEmbedder, embed_queries
from retrieval.extracts import BREAK
from retrieval.line_set import LineSet, Scores, line_set
from retrieval.options import DIGITS
from retrieval.people_in_query import ViewPeople
from retrieval.ranking import PreparedQuestion, recency_score
from retrieval.relevance import standardise
from retrieval.signals.people import Roster, actor_fits, most_frequent, roster
from retrieval.signals.time import option_fits, question_fit
from retrieval.terms import terms
from retrieval.word_scores import WordScores
from store.queries.search import StoredLine

OPTION_WORDS = 0.5
"""Weight of the words of the options beside those of the question, in the order of pieces."""
MOST = 50
"""Pieces that support options besides those shown; a conclusion counts no more of an option."""
NEAR = 1_000
"""Pieces nearest to a question, in whose lines those who act are sought."""

Vectors = NDArray[np.float32]
_SPOKEN = re.compile(r"^([^\W\d_]\w*|<\w+>): (.*)$", re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Pieces:
    """N pieces of a memory in view: texts with a line of each thing that was said or seen.

    ``vectors`` (N, D) have unit rows or are 0; ``words`` score the texts, video by video.
    """

    refs: Sequence[str]
    texts: Sequence[str]
    spans: Sequence[TimeSpan]
    vectors: Vectors
    words: Sequence[WordScores]

    def matches(self, words: Sequence[str]) -> Scores:
        """Return how well each piece matches some search terms, (N,)."""
        found = [scores.of(words) for scores in self.words]
        return np.concatenate([np.zeros(0), *found])

    @cached_property
    def times(self) -> Scores:
        """The middle of each piece in seconds of video time, (N,)."""
        return np.array([span.start_ms + span.end_ms for span in self.spans]) / 2000

    @cached_property
    def speakers(self) -> Counter[str]:
        """Count the lines of each speaker."""
        return Counter(name for text in self.texts for name, _ in _SPOKEN.findall(text))

    def lines(self, numbers: Sequence[int]) -> LineSet:
        """Return the lines of some pieces, which are its cells, without vectors."""
        rows = list[tuple[int, StoredLine]]()
        for place, number in enumerate(numbers):
            for line in self.texts[number].split(BREAK):
                spoken = _SPOKEN.fullmatch(line)
                source, speaker, said = ("said", *spoken.groups()) if spoken else ("", None, line)
                key = (len(rows), place, 0, 0, MemoryKind.EPISODIC)
                rows.append((0, StoredLine(*key, said, source, speaker, None)))
        return line_set(
            [Scope(video="", last_clip=len(numbers))], rows, np.zeros((len(rows), 1), np.float32), 1
        )


def joined(pieces: Sequence[Pieces]) -> Pieces:
    """Return the pieces of several videos as one."""
    return Pieces(
        [ref for one in pieces for ref in one.refs],
        [text for one in pieces for text in one.texts],
        [span for one in pieces for span in one.spans],
        np.concatenate([one.vectors for one in pieces] or [np.zeros((0, 1), np.float32)]),
        [words for one in pieces for words in one.words],
    )


@dataclass(frozen=True, eq=False)
class Supported:
    """How far each of N pieces supports each option, (K, N), in standard deviations."""

    refs: Sequence[str]
    scores: Scores

    def best(self) -> list[str]:
        """Return the refs of the best piece for each option."""
        return [self.refs[number] for number in self.scores.argmax(axis=1)] if self.refs else []

    def weighed(self, shown: Collection[str]) -> tuple[Weighed, ...]:
        """Return the scores of the best pieces, and of those that are shown."""
        order = np.argsort(-self.scores.max(axis=0), kind="stable") if self.refs else np.zeros(0)
        best = set(order[:MOST].tolist())
        return tuple(
            Weighed(ref=ref, scores=tuple(round(float(one), DIGITS) for one in self.scores[:, n]))
            for n, ref in enumerate(self.refs)
            if n in best or ref in shown
        )


@dataclass(frozen=True, eq=False)
class Asked:
    """A question as it is searched for: its ``vector`` (D,), and ``claims`` (K, D) with options."""

    question: PreparedQuestion
    vector: Vectors
    claims: Vectors

    def matches(self, score: Callable[[Sequence[str]], NDArray[np.floating]]) -> Scores:
        """Return how well texts have the words of the question and of the option that fits best.

        Args:
            score: scores N texts by search terms, (N,).
        """
        asked = score(self.question.words)
        of_options = (score(words) for words in self.question.option_words)
        return np.asarray(asked + OPTION_WORDS * np.max([0 * asked, *of_options], axis=0))

    def supported(self, pieces: Pieces) -> Supported:
        """Return how far each piece supports each option; nothing without options."""
        if not self.question.options or not pieces.refs:
            return Supported((), np.zeros((len(self.question.options), 0)))
        return Supported(pieces.refs, self._support(pieces, SearchSettings()))

    def _support(self, pieces: Pieces, weights: SearchSettings) -> Scores:
        """Return the support of each option, (K, N), by the signals of a search of lines.

        Their weights are the same too (``retrieval.ranking``).
        """
        question, times = self.question, pieces.times
        now_s = question.now_s if question.as_of else float(times.max())
        about = standardise(pieces.matches(question.words))
        about += weights.question_cell * standardise(pieces.vectors @ self.vector)
        about += recency_score(times, question, weights)
        if question.timed:
            return about + weights.option_time * option_fits(question.options, times, now_s)
        about += weights.question_time * question_fit(question.text, times, now_s)
        own = np.stack([pieces.matches(words) for words in question.option_words])
        claims = weights.statement_cell * standardise(self.claims @ pieces.vectors.T)
        return about + standardise(own) + claims + weights.actor * self._actors(pieces, about)

    def _actors(self, pieces: Pieces, about: Scores) -> Scores:
        """Return how well what the people of each option do and say fits, (K, N); else zeros."""
        question, speakers = self.question, pieces.speakers
        options = [question.people.with_former_names(option) for option in question.options]
        fits = np.zeros((len(options), len(about)))
        if not Roster(speakers, most_frequent(speakers), narrated=True).people(options):
            return fits
        near = np.sort(np.argsort(-about, kind="stable")[:NEAR])
        lines = pieces.lines(near.tolist())
        rows = [row for _, row in lines.rows]
        known = roster(speakers, rows)
        if not (people := known.people(options)):
            return fits
        words = WordScores([terms(row.text) for row in rows]).of(question.words)
        fits[:, near] = actor_fits(lines, known, people, words, 0.0)
        return standardise(fits)


def ask(
    text: TextEmbedder, query: str, options: Sequence[str], view: MemoryView, people: ViewPeople
) -> Asked:
    """Return a question with these options as it is searched for with a text encoder."""
    choices = tuple(make_storable(option) for option in options)
    now_s = (view.as_of_ms or 0) / 1000
    asked_at_a_moment = view.as_of_ms is not None
    question = PreparedQuestion(make_storable(query), choices, now_s, asked_at_a_moment, people)
    vectors = embed_queries(text, [question.text, *question.statements()])
    return Asked(question, vectors[0], vectors[1:])
