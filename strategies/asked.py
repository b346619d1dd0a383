"""A question as a strategy searches for it, and how its memory supports the options."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agent.harness.constrain import letter
from agent.harness.inform import quote_untrusted
from domain.asking import Question, Quote, Weighed, quote_of
from domain.memories import MemoryKind, MemoryView, Scope
from domain.moments import Retrieval
from domain.settings import SearchSettings
from domain.time import TimeSpan, format_clock
from domain.words import make_storable
from models.ports import TextEmbedder, embed_queries
from retrieval import signals
from retrieval.chapters import BREAK
from retrieval.lines import LineSet, Scores, line_set
from retrieval.people_in_query import NOBODY, ViewPeople
from retrieval.query_context import DIGITS, TEMPERATURE
from retrieval.ranking import PreparedQuestion, recency_score
from retrieval.relevance import closeness_threshold, standardise
from retrieval.terms import terms
from store.queries.search import StoredLine
from strategies.event_documents import EventDocument, FoundDocument

if TYPE_CHECKING:
    from agent.strategy import ToolUse
    from domain.asking import Evidence
    from domain.moments import ShownImage
    from models.ports import Vector
    from retrieval.relevance import CosineScale
    from strategies.event_documents import DocumentIndexes

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
    words: Sequence[signals.WordScores]

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
        return Counter(name for text in self.texts for name, _ in _SPOKEN.findall(text))

    def lines(self, numbers: Sequence[int]) -> LineSet:
        """Return the lines of some pieces, which are its cells, without vectors."""
        rows = list[tuple[int, StoredLine]]()
        for place, number in enumerate(numbers):
            for line in self.texts[number].split(BREAK):
                spoken = _SPOKEN.fullmatch(line)
                source, speaker, said = ("said", *spoken.groups()) if spoken else ("", None, line)
                kind, row = MemoryKind.EPISODIC, len(rows)
                made = StoredLine(row, place, 0, 0, kind, said, source, speaker, None)
                rows.append((0, made))
        return line_set(
            [Scope(video="", last_clip=len(numbers))], rows, np.zeros((len(rows), 1), np.float32), 1
        )


def joined(pieces: Sequence[Pieces]) -> Pieces:
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
        """Return how far each piece supports each option; nothing without options.

        It is told by the signals of a search of lines, with their weights (``retrieval.ranking``).
        """
        question, weights = self.question, SearchSettings()
        if not question.options or not pieces.refs:
            return Supported((), np.zeros((len(question.options), 0)))
        times = pieces.times
        now_s = question.now_s if question.as_of else float(times.max())
        about = standardise(pieces.matches(question.words))
        about += weights.question_cell * standardise(pieces.vectors @ self.vector)
        about += recency_score(times, question, weights)
        if question.timed:
            fits = signals.option_fits(question.options, times, now_s)
            return Supported(pieces.refs, about + weights.option_time * fits)
        about += weights.question_time * signals.question_fit(question.text, times, now_s)
        own = np.stack([pieces.matches(words) for words in question.option_words])
        claims = weights.statement_cell * standardise(self.claims @ pieces.vectors.T)
        actors = weights.actor * self._actors(pieces, about)
        return Supported(pieces.refs, about + standardise(own) + claims + actors)

    def _actors(self, pieces: Pieces, about: Scores) -> Scores:
        """Return how well what the people of each option do and say fits, (K, N); else zeros."""
        question, speakers = self.question, pieces.speakers
        options = [question.people.with_former_names(option) for option in question.options]
        fits = np.zeros((len(options), len(about)))
        if not signals.Roster(speakers, signals.most_frequent(speakers), narrated=True).people(
            options
        ):
            return fits
        near = np.sort(np.argsort(-about, kind="stable")[:NEAR])
        lines = pieces.lines(near.tolist())
        rows = [row for _, row in lines.rows]
        known = signals.roster(speakers, rows)
        if not (people := known.people(options)):
            return fits
        words = signals.WordScores([terms(row.text) for row in rows]).of(question.words)
        fits[:, near] = signals.actor_fits(lines, known, people, words, 0.0)
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


# How far what was found supports the options of a question, and what answers an open one.

COMPARED = 6
"""Lines of a document that are compared with a query."""
QUOTED = 2
"""Sentences of a piece that an answer quotes at most."""
QUOTED_FROM = 3
"""Documents that an answer quotes from at most."""


def weigh_documents(
    text: TextEmbedder,
    documents: Iterable[Iterable[EventDocument]],
    query: str,
    options: Sequence[str],
    view: MemoryView,
    shown: Iterable[FoundDocument],
) -> tuple[Weighed, ...]:
    """Return how far documents support options: the best of all, and those that are shown."""
    if not options:
        return ()
    every = [one for of_video in documents for one in of_video]
    pieces = Pieces(
        [one.ref for one in every],
        [one.text for one in every],
        [one.span for one in every],
        np.array([one.vector for one in every]),
        [signals.WordScores([one.terms for one in every])],
    )
    # The documents have people by the names that they have now.
    asked = ask(text, query, options, view, NOBODY)
    return asked.supported(pieces).weighed({one.document.ref for one in shown})


def documents_found(
    indexes: DocumentIndexes,
    mode: str,
    query: str,
    options: Sequence[str],
    view: MemoryView,
    use: ToolUse,
    documents: Iterable[Iterable[EventDocument]],
    found: Sequence[FoundDocument],
    evidence: Sequence[Evidence],
    images: Sequence[ShownImage],
    searched: str,
) -> Retrieval:
    """Return what a search of documents and frames found, scored by option if there are any.

    Args:
        documents: all that were searched, of each video.
        found: those of them that are shown, best first; an open question is answered from these.
        evidence: all that is shown.
    """
    best = max((piece.score for piece in evidence), default=0.0)
    # A language model judges itself what is close enough to answer from.
    close = use.model is not None or best >= closeness_threshold(max(1, len(evidence)))
    return Retrieval(
        mode=mode,
        query=query,
        evidence=tuple(evidence),
        images=tuple(images),
        nothing_close=not (evidence and close),
        searched=searched,
        weighed=weigh_documents(indexes.text, documents, query, options, view, found),
        temperature=TEMPERATURE,
        quotes=() if options else quotation(indexes, query, found),
    )


def quotation(
    indexes: DocumentIndexes, query: str, found: Sequence[FoundDocument]
) -> tuple[Quote, ...]:
    """Quote the lines nearest to a query from the document that has the nearest of the best."""
    if not query or not found:
        return ()
    (vector,) = embed_queries(indexes.text, [query])
    best = [
        (one.piece, one.document.best_lines(terms(query), COMPARED)) for one in found[:QUOTED_FROM]
    ]
    return quote_nearest(indexes.text, indexes.scale, vector, best)


def quote_nearest(
    text: TextEmbedder,
    scale: CosineScale,
    vector: Vector,
    pieces: Iterable[tuple[Evidence, Sequence[str]]],
) -> tuple[Quote, ...]:
    """Quote the sentences nearest to a query from the piece that has the nearest.

    Args:
        text: embeds sentences.
        vector: (D,), the query's.
        pieces: each with its sentences.
    """
    best: Quote | None = None
    for piece, sentences in pieces:
        cosines = text.embed(list(sentences)) @ vector
        order = sorted(np.argsort(-cosines, kind="stable")[:QUOTED].tolist())
        score = scale.nearness(float(cosines.max()))
        if best is None or score > best.score:
            best = quote_of(piece, " ".join(sentences[n].strip() for n in order), score)
    return () if best is None else (best,)


# A question as it is shown to a language model, with untrusted text made safe; pure.


def question_block(question: Question) -> str:
    """Return the question with its options by letter, as material, and when it is asked."""
    lines = [f"<question>{quote_untrusted(question.text, 2_000)}</question>"]
    lines += [
        f"<option>{letter(number)}. {quote_untrusted(option, 600)}</option>"
        for number, option in enumerate(question.options)
    ]
    if question.as_of_ms is not None:
        lines.append(f"Asked at {format_clock(question.as_of_ms)} of the video.")
    return "\n".join(lines)
