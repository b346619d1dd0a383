"""Candidate generation: the clips that a search ranks, and a fixed sample of the view.

In a small view all clips are candidates. In a larger one they are the nearest clips by vector (to
the question, to each option, and to the question restated with each option), the best clips by
BM25, clips at times that the text mentions, recent clips if the question is asked as of a moment,
and clips that the mode requires; each with the clip before it.

A wide view of many videos is searched in two steps: first the videos are chosen, then these are
searched like any smaller view.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

import numpy as np

from domain.memories import Scope
from domain.settings import SearchSettings
from retrieval.heuristics.options import SHORT, are_people, people_in_option, plain_names
from retrieval.heuristics.questions import PLAN, temporal_fit
from retrieval.lines import LineSet, Matrix, ReadLines, Scores
from retrieval.people_in_query import ViewPerson
from retrieval.ranking import (
    CandidateLines,
    PreparedQuestion,
    QuestionVectors,
    option_words,
    question_words,
)
from retrieval.signals import WordHits, most_frequent, roster, word_hits
from retrieval.terms import plain_words
from store.queries.candidates import (
    EVERYTHING,
    NearClip,
    Restriction,
    clips_with_words,
    frequent_words,
    lines_of_clips,
    near_clips,
    videos_with_words,
)
from store.queries.clips import clips_after_gaps
from store.queries.conditions import Reader
from store.queries.people_in_view import lines_mentioning, names_of_speakers, speakers_in_view
from store.queries.search import WIDE, ViewSize, is_wide, view_size
from store.vector_index import has_index

Clip = tuple[int, int]
"""Number of a scope, and a clip of its video."""

SMALL = 2_500
"""Views with at most this many lines are ranked completely."""
SAMPLE = 64
"""Number of clips in the fixed sample."""
BY_QUESTION, BY_OPTION, BY_RESTRICTION = 60, 30, 20
"""Clips by vector (through the index: lines): for the question, each option, each restriction."""
BY_WORDS, BY_OPTION_WORDS = 40, 15
"""Clips by BM25: for the question, and for each option."""
RECENT_S = 3_600.0
"""Clips up to this many seconds before the question is asked are recent."""
STEP_S = 30.0
"""Step of the time grid, in seconds, on which temporal expressions are evaluated."""
LIKELY, MOST_SPANS = 0.3, 4
"""Minimum fit in [0, 1] of a span with a temporal expression, and maximum number of spans."""


@dataclass(frozen=True)
class SearchPlan:
    """The input of candidate generation: view, size, question, vectors and signal weights.

    ``selected_from`` is the number of clips of the whole view, if ``scopes`` are selected videos of
    it.
    """

    scopes: tuple[Scope, ...]
    size: ViewSize
    question: PreparedQuestion
    vectors: QuestionVectors
    weights: SearchSettings
    selected_from: int | None = None

    @property
    def share(self) -> float:
        """The share of the view's clips that are searched, in (0, 1]."""
        return max(1, self.size.clips) / self.selected_from if self.selected_from else 1.0

    @property
    def everything(self) -> bool:
        """Whether all clips of the view are candidates."""
        return self.size.lines <= SMALL


def find_candidates(
    database: Reader, plan: SearchPlan, read: ReadLines, wanted: frozenset[Clip]
) -> CandidateLines:
    """Find the candidate clips and fetch their lines.

    Args:
        database: A connection or session.
        read: Reads stored lines by id.
        wanted: Clips that the mode requires.
    """
    question = plan.question
    sought = {*question.words, *(word for words in question.option_words for word in words)}
    phrases = {
        term: question.database_words[term]
        for term in sorted(sought & question.database_words.keys())
    }
    lines_by_clip = clips_with_words(database, plan.scopes, [*phrases.values()])
    gaps = clips_after_gaps(database, plan.scopes)
    hits = word_hits(plan.scopes, [*phrases], lines_by_clip, plan.size.clips, gaps)
    speakers = _speakers(database, plan)
    if plan.everything:
        chosen = sample = _all_clips(plan.scopes)
    else:
        sample = sampled_clips(plan.scopes, SAMPLE)
        search = vector_search(database, plan)

        def nearest(vectors: Matrix, limit: int, restriction: Restriction) -> set[Clip]:
            return {(clip.video, clip.clip) for clip in search(vectors, limit, restriction)}

        question_vector, option_vectors = plan.vectors.question[None], plan.vectors.stacked[1:]
        by_vector = nearest(question_vector, BY_QUESTION, EVERYTHING) | nearest(
            option_vectors, BY_OPTION, EVERYTHING
        )
        near = by_vector | _by_words(plan, hits) | _by_time(plan, nearest)
        chosen = (near | _by_people(plan, speakers, nearest)) | wanted
    clips = _with_clip_before(chosen) | sample
    lines = _lines_of(database, plan, clips, read)
    candidates = _with_statistics(plan, lines, sample, hits)
    if (
        not plan.question.options
        or plan.question.timed
        or (not (speakers or plan.size.clips <= SHORT))
    ):
        return candidates
    sampled = np.flatnonzero(candidates.sampled_lines).tolist()
    candidates.lines.read_lines(sampled)
    known = roster(speakers, [candidates.lines.line(number)[1] for number in sampled])
    options = [plan.question.people.with_former_names(option) for option in plan.question.options]
    return replace(candidates, roster=known, named=tuple(known.people(options)))


def add_clips(
    database: Reader,
    plan: SearchPlan,
    candidates: CandidateLines,
    read: ReadLines,
    clips: frozenset[Clip],
) -> CandidateLines:
    """Add the lines of clips, and of the clip before each, to the candidates of a large view."""
    found = candidates.lines
    known = set(zip(found.cell_video.tolist(), found.cell_clip.tolist(), strict=True))
    lines = _lines_of(database, plan, known | _with_clip_before(clips), read)
    sample = sampled_clips(plan.scopes, SAMPLE)
    extended = _with_statistics(plan, lines, sample, candidates.hits)
    return replace(extended, roster=candidates.roster, named=candidates.named)


def _with_statistics(
    plan: SearchPlan, lines: LineSet, sample: set[Clip], hits: WordHits
) -> CandidateLines:
    cells = zip(lines.cell_video.tolist(), lines.cell_clip.tolist(), strict=True)
    marks = np.fromiter((cell in sample for cell in cells), np.bool_, lines.cell_count)
    # The mean number of lines of the sampled clips that have lines; 1 without any.
    counts = np.diff(lines.bounds)[marks]
    mean = float(counts.mean()) if len(counts) else 1.0
    if plan.everything:
        hits = replace(hits, cells=max(1, lines.cell_count)).with_lengths(lines, mean, 0.0)
        count = int(lines.line_count / plan.share)
        return CandidateLines(lines, marks, hits, lines.cell_count, count)
    # The line count stops at a limit: extrapolate it from the sample.
    count = int(max(plan.size.lines, int(mean * plan.size.clips)) / plan.share)
    hits = hits.with_lengths(lines, mean, 1.0)
    return CandidateLines(lines, marks, hits, plan.size.clips, count)


def all_lines(database: Reader, plan: SearchPlan, read: ReadLines) -> LineSet:
    return _lines_of(database, plan, _all_clips(plan.scopes), read)


def _lines_of(
    database: Reader, plan: SearchPlan, clips: Iterable[Clip], read: ReadLines
) -> LineSet:
    size = plan.vectors.question.shape[0]
    return LineSet(plan.scopes, lines_of_clips(database, plan.scopes, clips, size), read)


def _all_clips(scopes: Sequence[Scope]) -> set[Clip]:
    return {(n, clip) for n, scope in enumerate(scopes) for clip in range(scope.last_clip + 1)}


def _speakers(database: Reader, plan: SearchPlan) -> dict[str, int]:
    """Count lines by speaker if the options may be people or the view is short; else return {}."""
    question = plan.question
    if not question.options or question.timed:
        return {}
    options = [question.people.with_former_names(option) for option in question.options]
    names = sorted({word.capitalize() for option in options for word in plain_words(option)})
    known = plain_names(names_of_speakers(database, plan.scopes, names))
    people = [people_in_option(option, known, "the narrator") for option in options]
    if plan.size.clips > SHORT and not are_people(people):
        return {}
    return speakers_in_view(database, plan.scopes)


def _by_people(plan: SearchPlan, speakers: Mapping[str, int], nearest: NearestClips) -> set[Clip]:
    """Return clips where a person named by an option says a line near the question."""
    known, narrator = plain_names(speakers), most_frequent(speakers)
    options = [plan.question.people.with_former_names(option) for option in plan.question.options]
    names = {name for option in options for name in people_in_option(option, known, narrator)}
    vector = plan.vectors.about_someone[None]
    chosen: set[Clip] = set()
    for name in sorted(names):
        chosen |= nearest(vector, BY_RESTRICTION, Restriction(speaker=name))
    return chosen


def _by_words(plan: SearchPlan, hits: WordHits) -> set[Clip]:
    question, clips = plan.question, plan.size.clips
    chosen = _best_clips(hits, question_words(hits, question, clips, plan.weights), BY_WORDS)
    if question.options and not question.timed:
        for scores in option_words(hits, question, clips, plan.weights):
            chosen |= _best_clips(hits, scores, BY_OPTION_WORDS)
    return chosen


def _best_clips(hits: WordHits, scores: Scores, count: int) -> set[Clip]:
    """Return the ``count`` best clips among those that contain any of the words."""
    with_words = np.unique(
        np.concatenate([np.zeros(0, dtype=np.int64), *(p for p, _ in hits.counts.values())])
    )
    order = with_words[np.argsort(-scores[with_words], kind="stable")[:count]]
    return {hits.clip_at(int(place)) for place in order}


def _by_time(plan: SearchPlan, nearest: NearestClips) -> set[Clip]:
    """Return near clips at the times that the question or its options mention, and recent ones."""
    question = plan.question
    texts = [question.text] if not PLAN.search(question.text) else []
    texts += question.options if question.timed else ()
    spans = [span for text in texts for span in temporal_spans(text, question.now_s)]
    if question.as_of:
        spans.append((max(0.0, question.now_s - RECENT_S), question.now_s))
    chosen: set[Clip] = set()
    for start, end in dict.fromkeys(spans):
        restriction = Restriction(span_ms=(int(start * 1000), int(end * 1000)))
        chosen |= nearest(plan.vectors.question[None], BY_RESTRICTION, restriction)
    return chosen


def temporal_spans(text: str, now_s: float) -> list[tuple[float, float]]:
    """Return the spans of video time, in seconds, that fit a temporal expression in ``text``."""
    times = np.arange(STEP_S / 2, max(now_s, STEP_S), STEP_S)
    fit = temporal_fit(text, times, now_s)
    if fit is None:
        return []
    likely = np.flatnonzero(np.diff(np.concatenate([[False], fit >= LIKELY, [False]]).astype(int)))
    spans = [(a * STEP_S, b * STEP_S) for a, b in likely.reshape(-1, 2).tolist()]
    return spans[-MOST_SPANS:]


NearestClips = Callable[[Matrix, int, Restriction], set[Clip]]
VectorSearch = Callable[[Matrix, int, Restriction], list[NearClip]]


def vector_search(database: Reader, plan: SearchPlan) -> VectorSearch:
    """Return a vector search; it uses the HNSW index if the view is wide and unrestricted."""
    indexed = plan.size.wide and has_index(database, plan.vectors.question.shape[0])

    def nearest(vectors: Matrix, limit: int, restriction: Restriction) -> list[NearClip]:
        by_index = indexed and not restriction.selective
        return near_clips(database, plan.scopes, vectors, limit, restriction, by_index=by_index)

    return nearest


def sampled_clips(scopes: Sequence[Scope], count: int) -> set[Clip]:
    """Choose ``count`` clips of a view by a hash of video and clip: always the same ones."""
    videos = [np.full(scope.last_clip + 1, n, dtype=np.int64) for n, scope in enumerate(scopes)]
    clips = [np.arange(scope.last_clip + 1, dtype=np.int64) for scope in scopes]
    seeds = [zlib.crc32(scope.video.encode()) for scope in scopes]
    if not clips:
        return set()
    video, clip = np.concatenate(videos), np.concatenate(clips)
    mixed = (np.array(seeds, dtype=np.uint64)[video] + clip.astype(np.uint64)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    order = np.argsort(mixed ^ (mixed >> np.uint64(29)), kind="stable")[:count]
    return {(int(video[n]), int(clip[n])) for n in order}


def _with_clip_before(clips: Iterable[Clip]) -> set[Clip]:
    return {
        (video, neighbour)
        for video, clip in clips
        for neighbour in (clip - 1, clip)
        if neighbour >= 0
    }


MOST_VIDEOS = 50
"""Views of at most this many videos are searched whole; of larger ones this many are chosen."""
MOST_CLIPS, LEAST_VIDEOS = 2_500, 5
"""Fewer are chosen if they have more clips than that together, but at least five."""
UNCOUNTED = 100_000
"""A view of more clips counts as wide: its lines are not counted, which takes long."""
VIDEOS_BY_QUESTION, VIDEOS_BY_PEOPLE = 120, 60
"""Lines near the question, and lines that mention people, whose videos are chosen."""


def is_large(videos: int, size: ViewSize) -> bool:
    """Check whether a view of so many videos with clips is searched in two steps."""
    return videos > MOST_VIDEOS and size.clips > MOST_CLIPS and size.wide


def search_size(database: Reader, scopes: Sequence[Scope]) -> ViewSize:
    """Return the size of a view; without its times if it is so large that videos are selected.

    Raises:
        NotFound: A video of a smaller view does not exist.
    """
    with_clips = [scope for scope in scopes if scope.last_clip >= 0]
    size = ViewSize(sum(scope.last_clip + 1 for scope in with_clips), WIDE + 1, 0, 0)
    if is_large(len(with_clips), size) and (
        size.clips > UNCOUNTED or is_wide(database, with_clips)
    ):
        return size
    return view_size(database, scopes)


# The videos are chosen that have the lines nearest to the question and its options (by the HNSW
# index), its words (by the index of words), or the people whom it names.
def select_videos(
    database: Reader, plan: SearchPlan, people: Sequence[ViewPerson], wanted: Collection[str]
) -> SearchPlan:
    """Restrict a search to the likeliest videos of its view.

    Args:
        database: A connection or session.
        plan: The search of a view of more than ``MOST_VIDEOS`` videos.
        people: The people whom the question names.
        wanted: Videos that are always searched.
    """
    # Rank videos by their line nearest to the question or to an option.
    vectors, search = plan.vectors.stacked, vector_search(database, plan)
    found = search(vectors[:1], VIDEOS_BY_QUESTION, EVERYTHING)
    found += search(vectors[1:], BY_OPTION, EVERYTHING)
    ordered = sorted(found, key=lambda clip: (clip.distance, clip.video))
    by_vector = [plan.scopes[clip.video].video for clip in ordered]
    by_words = _videos_by_words(database, plan)
    if not people:
        named = []
    else:
        tags: dict[str, set[str]] = {}
        for person in people:
            tags.setdefault(person.video, set()).update(person.tags)
        question = plan.vectors.question
        lines = lines_mentioning(database, plan.scopes, tags, question, VIDEOS_BY_PEOPLE)
        named = [plan.scopes[line.video].video for line in lines]
    chosen = set(_within_limits(plan.scopes, chain(wanted, _in_turn(by_vector, by_words, named))))
    scopes = tuple(scope for scope in plan.scopes if scope.video in chosen)
    size = view_size(database, scopes)
    now_s = plan.question.now_s if plan.question.as_of else size.end_ms / 1000
    return replace(
        plan,
        scopes=scopes,
        size=size,
        question=replace(plan.question, now_s=now_s),
        selected_from=plan.size.clips,
    )


def _in_turn(*rankings: Iterable[str]) -> Iterator[str]:
    """Yield the first of each ranking, then the second of each, and so on."""
    for row in zip_longest(*rankings):
        yield from (video for video in row if video is not None)


def _within_limits(scopes: Sequence[Scope], ranked: Iterable[str]) -> Iterator[str]:
    """Yield the first videos, without repetition, until there are enough."""
    unique = dict.fromkeys(ranked)
    clips = {scope.video: scope.last_clip + 1 for scope in scopes if scope.video in unique}
    total = 0
    for number, video in enumerate(one for one in unique if one in clips):
        total += clips[video]
        if number >= MOST_VIDEOS or (number >= LEAST_VIDEOS and total > MOST_CLIPS):
            return
        yield video


def _videos_by_words(database: Reader, plan: SearchPlan) -> list[str]:
    """Rank videos by the rare words that they have, and by lines with all words."""
    question = plan.question
    phrases = question.database_words
    words = dict.fromkeys(chain(question.words, *question.option_words))
    sought = [phrases[word] for word in words if word in phrases]
    frequent = frequent_words(database, sought)
    searches = [[word] for word in sought if word not in frequent]
    together = [phrases[word] for word in question.words if word in phrases]
    if len(together) > 1:
        searches.append(together)
    found = videos_with_words(database, plan.scopes, searches)
    videos = len(plan.scopes)
    scores = defaultdict[str, float](float)
    for matching in found.values():
        distinct = set(matching)
        weight = float(np.log1p(videos / len(distinct)))
        for video in distinct:
            scores[video] += weight
    return sorted(scores, key=lambda video: (-scores[video], video))
