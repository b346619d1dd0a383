"""Selection of the videos of a large library that a search reads.

A wide view of many videos is searched in two steps. First the videos are chosen that
have the lines nearest to the question and its options (by the HNSW index), its words (by the index
of words), or the people whom it names. Then these are searched like any smaller view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

import numpy as np

from domain.memories import Scope
from retrieval.candidates import BY_OPTION, SearchPlan, vector_search
from retrieval.people_in_query import ViewPerson
from store.queries.candidates import EVERYTHING, frequent_words, videos_with_words
from store.queries.conditions import Reader
from store.queries.people_in_view import lines_mentioning
from store.queries.search import WIDE, ViewSize, is_wide, view_size

MOST_VIDEOS = 50
"""Views of at most this many videos are searched whole; of larger ones this many are chosen."""
MOST_CLIPS, LEAST_VIDEOS = 2_500, 5
"""Fewer are chosen if they have more clips than that together, but at least five."""
UNCOUNTED = 100_000
"""A view of more clips counts as wide: its lines are not counted, which takes long."""
BY_QUESTION, BY_PEOPLE = 120, 60
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
    found = search(vectors[:1], BY_QUESTION, EVERYTHING)
    found += search(vectors[1:], BY_OPTION, EVERYTHING)
    ordered = sorted(found, key=lambda clip: (clip.distance, clip.video))
    by_vector = [plan.scopes[clip.video].video for clip in ordered]
    by_words = _by_words(database, plan)
    if not people:
        named = []
    else:
        tags: dict[str, set[str]] = {}
        for person in people:
            tags.setdefault(person.video, set()).update(person.tags)
        question = plan.vectors.question
        lines = lines_mentioning(database, plan.scopes, tags, question, BY_PEOPLE)
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


def _by_words(database: Reader, plan: SearchPlan) -> list[str]:
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
