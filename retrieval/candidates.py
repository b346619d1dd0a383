"""Which clips a search looks into: those that the database finds near, and a fixed sample.

Of a small view it is all clips. Of a larger one it is the clips whose lines are closest in meaning
to the question, to each option and to the question restated with each, those whose words fit best,
those at times that are said, recent ones where the question is asked at a moment, and whatever the
mode needs; each with the clip right before it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domain.memories import Scope
from domain.settings import SearchSettings
from retrieval.heuristics.actors import are_people, people_of, plain_names
from retrieval.heuristics.captioned_options import SHORT
from retrieval.heuristics.clock import PLAN, said_time
from retrieval.line_set import LineSet, Matrix, ReadLines, Scores
from retrieval.ranking import (
    PreparedQuestion,
    QuestionVectors,
    SearchedLines,
    option_words,
    question_words,
)
from retrieval.signals.people import most_frequent, roster
from retrieval.signals.words import WordHits, word_hits
from retrieval.terms import plain_words
from store.queries.candidates import (
    EVERYTHING,
    Restriction,
    ViewSize,
    clips_after_gaps,
    clips_with_words,
    has_index,
    lines_of_clips,
    near_clips,
)
from store.queries.people_in_view import names_of_speakers, speakers_in_view
from store.queries.view_conditions import Reader

Clip = tuple[int, int]
"""Number of a scope, and a clip of its video."""

SMALL = 2_500
"""Views of at most so many lines are ranked as a whole."""
SAMPLE = 64
"""Clips of the fixed sample."""
BY_QUESTION, BY_OPTION, BY_RESTRICTION = 60, 30, 20
"""Clips (through the index: lines) taken by meaning: for the question, an option, a restriction."""
BY_WORDS, BY_OPTION_WORDS = 40, 15
"""Clips taken by the words of the question, and by those of each option."""
RECENT_S = 3_600.0
"""What is recent, in seconds before the question is asked."""
STEP_S = 30.0
"""Steps in which video time is compared with a time that is said."""
LIKELY, MOST_SPANS = 0.3, 4
"""How well moments must fit a time that is said, and most spans of them."""


@dataclass(frozen=True)
class SearchPlan:
    """A search about to be made: the view and its size, the question, and how it is weighed."""

    scopes: tuple[Scope, ...]
    size: ViewSize
    asked: PreparedQuestion
    vectors: QuestionVectors
    weights: SearchSettings

    @property
    def everything(self) -> bool:
        """Whether all clips are looked into."""
        return self.size.lines <= SMALL


def find(
    database: Reader, plan: SearchPlan, read: ReadLines, wanted: frozenset[Clip]
) -> SearchedLines:
    """Find the clips to rank, and fetch their lines.

    Args:
        database: A connection or database.
        plan: The search.
        read: Reads stored lines by id.
        wanted: Clips that the mode needs besides.
    """
    hits = _word_hits(database, plan)
    speakers = _speakers(database, plan)
    if plan.everything:
        chosen = sample = _all_clips(plan.scopes)
    else:
        sample = sampled_clips(plan.scopes, SAMPLE)
        chosen = _chosen(database, plan, hits, speakers) | wanted
    clips = _with_clip_before(chosen) | sample
    size = plan.vectors.question.shape[0]
    lines = LineSet(plan.scopes, lines_of_clips(database, plan.scopes, clips, size), read)
    marks = _marks(lines, sample)
    mean = _mean_lines(lines, marks)
    if plan.everything:
        hits = replace(hits, cells=max(1, lines.cell_count)).with_lengths(lines, mean, 0.0)
        found = SearchedLines(lines, marks, hits, lines.cell_count, lines.line_count)
    else:
        # About how many lines are in view, by those of the sample.
        count = max(plan.size.lines, int(mean * plan.size.clips))
        found = SearchedLines(
            lines, marks, hits.with_lengths(lines, mean, 1.0), plan.size.clips, count
        )
    return _with_people(plan, found, speakers)


def all_lines(database: Reader, plan: SearchPlan, read: ReadLines) -> LineSet:
    """Fetch all lines of a view."""
    size = plan.vectors.question.shape[0]
    clips = _all_clips(plan.scopes)
    return LineSet(plan.scopes, lines_of_clips(database, plan.scopes, clips, size), read)


def _all_clips(scopes: Sequence[Scope]) -> set[Clip]:
    return {(n, clip) for n, one in enumerate(scopes) for clip in range(one.last_clip + 1)}


def _speakers(database: Reader, plan: SearchPlan) -> dict[str, int]:
    """Who speaks in view, where the options may be people or the view is short; else nobody."""
    asked = plan.asked
    if not asked.options or asked.timed:
        return {}
    options = [asked.people.as_written(option) for option in asked.options]
    names = sorted({word.capitalize() for option in options for word in plain_words(option)})
    known = plain_names(names_of_speakers(database, plan.scopes, names))
    people = [people_of(option, known, "the narrator") for option in options]
    if plan.size.clips > SHORT and not are_people(people):
        return {}
    return speakers_in_view(database, plan.scopes)


def _with_people(
    plan: SearchPlan, found: SearchedLines, speakers: Mapping[str, int]
) -> SearchedLines:
    """What was found, with who speaks in the view and whom each option names."""
    if not plan.asked.options or plan.asked.timed or not (speakers or plan.size.clips <= SHORT):
        return found
    sampled = np.flatnonzero(found.sampled_lines).tolist()
    found.lines.read_lines(sampled)
    known = roster(speakers, [found.lines.line(number)[1] for number in sampled])
    options = [plan.asked.people.as_written(option) for option in plan.asked.options]
    return replace(found, roster=known, named=tuple(known.people(options)))


def _word_hits(database: Reader, plan: SearchPlan) -> WordHits:
    asked = plan.asked
    wanted = {*asked.words, *(word for own in asked.option_words for word in own)}
    phrases = {
        term: asked.database_words[term] for term in sorted(wanted & asked.database_words.keys())
    }
    found = clips_with_words(database, plan.scopes, [*phrases.values()])
    gaps = clips_after_gaps(database, plan.scopes)
    return word_hits(plan.scopes, [*phrases], found, plan.size.clips, gaps)


def _chosen(
    database: Reader, plan: SearchPlan, hits: WordHits, speakers: Mapping[str, int]
) -> set[Clip]:
    near = _near(database, plan)
    found = _by_meaning(plan, near) | _by_words(plan, hits) | _by_time(plan, near)
    return found | _by_people(plan, speakers, near)


def _by_people(plan: SearchPlan, speakers: Mapping[str, int], near: Near) -> set[Clip]:
    """Clips in which somebody whom an option names says what is near to the question."""
    known, most = plain_names(speakers), most_frequent(speakers)
    options = [plan.asked.people.as_written(option) for option in plan.asked.options]
    names = {name for option in options for name in people_of(option, known, most)}
    vector = plan.vectors.somebody[None]
    chosen: set[Clip] = set()
    for name in sorted(names):
        chosen |= near(vector, BY_RESTRICTION, Restriction(speaker=name))
    return chosen


def _by_meaning(plan: SearchPlan, near: Near) -> set[Clip]:
    question, others = plan.vectors.question[None], plan.vectors.stacked[1:]
    return near(question, BY_QUESTION, EVERYTHING) | near(others, BY_OPTION, EVERYTHING)


def _by_words(plan: SearchPlan, hits: WordHits) -> set[Clip]:
    asked, clips = plan.asked, plan.size.clips
    chosen = _best(hits, question_words(hits, asked, clips, plan.weights), BY_WORDS)
    if asked.options and not asked.timed:
        for own in option_words(hits, asked, clips, plan.weights):
            chosen |= _best(hits, own, BY_OPTION_WORDS)
    return chosen


def _best(hits: WordHits, scores: Scores, count: int) -> set[Clip]:
    """The clips at the best places, as far as any word is there."""
    held = np.unique(
        np.concatenate([np.zeros(0, dtype=np.int64), *(p for p, _ in hits.counts.values())])
    )
    order = held[np.argsort(-scores[held], kind="stable")[:count]]
    return {hits.clip_at(int(place)) for place in order}


def _by_time(plan: SearchPlan, near: Near) -> set[Clip]:
    """Clips near in meaning at the times that the question or its options say, or recent ones."""
    asked = plan.asked
    texts = [asked.text] if not PLAN.search(asked.text) else []
    texts += asked.options if asked.timed else ()
    spans = [span for text in texts for span in said_spans(text, asked.now_s)]
    if asked.as_of:
        spans.append((max(0.0, asked.now_s - RECENT_S), asked.now_s))
    chosen: set[Clip] = set()
    for start, end in dict.fromkeys(spans):
        restriction = Restriction(span_ms=(int(start * 1000), int(end * 1000)))
        chosen |= near(plan.vectors.question[None], BY_RESTRICTION, restriction)
    return chosen


def said_spans(text: str, now_s: float) -> list[tuple[float, float]]:
    """Return the spans of video time, in seconds, that fit a time said in ``text`` well."""
    times = np.arange(STEP_S / 2, max(now_s, STEP_S), STEP_S)
    fit = said_time(text, times, now_s)
    if fit is None:
        return []
    likely = np.flatnonzero(np.diff(np.concatenate([[False], fit >= LIKELY, [False]]).astype(int)))
    spans = [(a * STEP_S, b * STEP_S) for a, b in likely.reshape(-1, 2).tolist()]
    return spans[-MOST_SPANS:]


Near = Callable[[Matrix, int, Restriction], set[Clip]]


def _near(database: Reader, plan: SearchPlan) -> Near:
    """Searches by meaning: through the index where the view is wide and nothing narrows it."""
    indexed = plan.size.wide and has_index(database, plan.vectors.question.shape[0])

    def near(vectors: Matrix, limit: int, restriction: Restriction) -> set[Clip]:
        by_index = indexed and not restriction.selective
        found = near_clips(database, plan.scopes, vectors, limit, restriction, by_index=by_index)
        return {(one.video, one.clip) for one in found}

    return near


def sampled_clips(scopes: Sequence[Scope], count: int) -> set[Clip]:
    """Choose ``count`` clips of a view by a hash of what they are: always the same ones."""
    videos = [np.full(one.last_clip + 1, n, dtype=np.int64) for n, one in enumerate(scopes)]
    clips = [np.arange(one.last_clip + 1, dtype=np.int64) for one in scopes]
    seeds = [zlib.crc32(one.video.encode()) for one in scopes]
    if not clips:
        return set()
    video, clip = np.concatenate(videos), np.concatenate(clips)
    mixed = (np.array(seeds, dtype=np.uint64)[video] + clip.astype(np.uint64)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    order = np.argsort(mixed ^ (mixed >> np.uint64(29)), kind="stable")[:count]
    return {(int(video[n]), int(clip[n])) for n in order}


def _with_clip_before(clips: Iterable[Clip]) -> set[Clip]:
    return {(video, one) for video, clip in clips for one in (clip - 1, clip) if one >= 0}


def _marks(lines: LineSet, sample: set[Clip]) -> NDArray[np.bool_]:
    cells = zip(lines.cell_video.tolist(), lines.cell_clip.tolist(), strict=True)
    return np.fromiter((cell in sample for cell in cells), np.bool_, lines.cell_count)


def _mean_lines(lines: LineSet, sample: NDArray[np.bool_]) -> float:
    """How many lines a clip of the sample has that has any."""
    counts = np.diff(lines.bounds)[sample]
    return float(counts.mean()) if len(counts) else 1.0
