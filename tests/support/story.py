"""Lines and questions made from plain stories, for tests of ranking without a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from domain.memories import Scope
from retrieval.lines import Ints, LineSet, line_set, search_text
from retrieval.ranking import CandidateLines, PreparedQuestion, QuestionVectors, relevance
from retrieval.relevance import Relevance
from retrieval.signals import Roster, WordHits, roster, word_hits
from retrieval.terms import terms
from store.queries.search import StoredLine
from tests.support.remembered import CLIP_MS, SIZE, WordEmbedder

Story = Sequence[Sequence[str]]


@dataclass(frozen=True)
class StoryVideo:
    """A video's lines, in the order of clip, time and id."""

    video: str
    rows: tuple[StoredLine, ...]
    last_clip: int


def video_of(
    story: Story,
    video: str = "v",
    first: int = 0,
    gone: Mapping[int, int] | None = None,
    speakers: Mapping[str, str] | None = None,
) -> StoryVideo:
    """Make a video of clips of lines, one second a line.

    Ids count from 1 in the first clip, from ``1000 * first + 1`` in a later one. ``gone`` maps
    ids to the clip that supersedes them. A line of which ``speakers`` has the text is said.
    """
    rows: list[StoredLine] = []
    number = 1000 * first
    for clip, texts in enumerate(story, start=first):
        for i, text in enumerate(texts):
            number += 1
            speaker = (speakers or {}).get(text)
            start = clip * CLIP_MS + 1000 * i
            source = "said" if speaker else "caption"
            until = (gone or {}).get(number)
            line = (number, clip, start, start + 900, "episodic", text, source, speaker, until)
            rows.append(StoredLine(*line))
    return StoryVideo(video, tuple(rows), first + len(story) - 1)


def candidates_at(last_clip: int, *videos: StoryVideo) -> CandidateLines:
    """Return what a search of a small view ranks, as of ``last_clip`` of each video."""
    scopes = [
        Scope(video=video.video, last_clip=min(last_clip, video.last_clip)) for video in videos
    ]
    rows = [
        (number, row)
        for number, video in enumerate(videos)
        for row in video.rows
        if row.clip <= last_clip and (row.superseded_at is None or row.superseded_at > last_clip)
    ]
    texts = [row.text for _, row in rows]
    vectors = WordEmbedder().embed(texts) if texts else np.zeros((0, SIZE), dtype=np.float32)
    lines = line_set(scopes, rows, vectors, CLIP_MS)
    sample = np.ones(lines.cell_count, dtype=np.bool_)
    mean = float(np.diff(lines.bounds).mean()) if lines.cell_count else 1.0
    hits = hits_of(lines).with_lengths(lines, mean, 0.0)
    return CandidateLines(lines, sample, hits, lines.cell_count, lines.line_count)


def hits_of(lines: LineSet) -> WordHits:
    """Return which clips hold each word, as the database's full text would."""
    counts: dict[str, Counter[tuple[int, int]]] = {}
    for number, (_, row) in enumerate(lines.rows):
        clip = (int(lines.arrays.video[number]), row.clip)
        for word in set(terms(search_text(row))):
            counts.setdefault(word, Counter())[clip] += 1
    words = sorted(counts)
    lines_by_clip: dict[int, Ints] = {
        n: np.array([(*clip, count) for clip, count in sorted(counts[word].items())])
        for n, word in enumerate(words)
    }
    return word_hits(lines.scopes, words, lines_by_clip, lines.cell_count)


def candidates_of(story: Story, speakers: Mapping[str, str] | None = None) -> CandidateLines:
    return candidates_at(10**6, video_of(story, speakers=speakers))


def roster_of(candidates: CandidateLines) -> Roster:
    """Return who speaks in a story, and who narrates it."""
    rows = [row for _, row in candidates.lines.rows]
    return roster(Counter(row.speaker for row in rows if row.speaker), rows)


def prepare_question(
    text: str, options: Iterable[str] = (), as_of_s: float | None = None
) -> PreparedQuestion:
    """Make a question ready; without ``as_of_s`` it is asked afterwards."""
    return PreparedQuestion(text, tuple(options), as_of_s or 0.0, as_of_s is not None)


def vectors_of(question: PreparedQuestion) -> QuestionVectors:
    count = 0 if question.timed else len(question.options)
    texts = [
        question.core,
        *question.statements()[:count],
        *question.options[:count],
        question.about_someone,
    ]
    rows = WordEmbedder().embed(texts)
    return QuestionVectors(rows[0], rows[1 : 1 + count], rows[1 + count : -1], rows[-1])


def relevance_of(candidates: CandidateLines, question: PreparedQuestion) -> Relevance:
    if question.options and not question.timed:
        known = roster_of(candidates)
        candidates = replace(candidates, roster=known, named=tuple(known.people(question.options)))
    return relevance(candidates, question, vectors_of(question))


def row_of(candidates: CandidateLines, number: int) -> StoredLine:
    return candidates.lines.line(number)[1]
