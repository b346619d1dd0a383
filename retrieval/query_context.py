"""A prepared search: view, question, relevance of the candidates, and support of its options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import ascii_uppercase

from domain.asking import Evidence, Mode, Weighed
from domain.memories import MemoryView, Scope, Segment
from domain.time import TimeSpan
from models.ports import ImageEncoder, TextEmbedder
from retrieval import ranking
from retrieval.heuristics.questions import language_note
from retrieval.lines import Ints, LineSet, ViewLine, in_time_order
from retrieval.people_in_query import ViewPeople, line_text, with_current_names
from retrieval.relevance import (
    CosineScale,
    Relevance,
    closeness,
    closeness_threshold,
    coverage,
    decayed,
    text_coverage,
)
from store.queries.search import WIDE, StoredLine

CONTEXT = 2
"""Lines before and after a line whose words count for its coverage."""


@dataclass(frozen=True)
class ModeSearch:
    """The input of one search: mode, query, segment in focus, refs shown already, and a time."""

    mode: Mode
    query: str
    focus: int | None
    seen: frozenset[str]
    span: TimeSpan | None = None


@dataclass(frozen=True, eq=False)
class QueryContext:
    """The input of the search modes.

    ``query`` is the text of the search, ``question`` what candidates are ranked by: the question
    and the options that the search is about. ``relevance`` is None if nothing is in view.
    ``load_all`` fetches all lines of the view, for structural searches, ``faces_together`` the
    most faces on one frame in view, ``add`` the lines of more (video, clip) pairs; ``small``: all
    lines are candidates. ``span`` is the time in view of a single video; ``text`` embeds
    queries. ``share`` is the share of the view's clips that was searched, in (0, 1]: in a large
    library, that of the likeliest videos.
    """

    query: str
    view: MemoryView
    candidates: ranking.CandidateLines
    question: ranking.PreparedQuestion
    vectors: ranking.QuestionVectors
    relevance: Relevance | None
    cosine_scale: CosineScale
    load_all: Callable[[], LineSet]
    faces_together: Callable[[], int]
    add: Callable[[Collection[tuple[str, int]]], QueryContext]
    text: TextEmbedder
    images: ImageEncoder | None
    small: bool = True
    span: TimeSpan | None = None
    share: float = 1.0

    def about(self, letters: Collection[str]) -> QueryContext:
        """Restrict the search to the options with these letters; without any, to all options."""
        rows = [i for i in range(len(self.question.options)) if ascii_uppercase[i] in letters]
        if not rows or self.relevance is None:
            return self
        options = tuple(self.question.options[i] for i in rows)
        return replace(
            self,
            question=replace(self.question, options=options),
            relevance=self.relevance.of_options(rows),
            add=lambda clips: self.add(clips).about(letters),
        )

    def with_clips(self, clips: Collection[tuple[str, int]]) -> QueryContext:
        """Return the search with the lines of more clips, as (video, clip)."""
        names = [scope.video for scope in self.lines.scopes]
        cells = zip(self.lines.cell_video.tolist(), self.lines.cell_clip.tolist(), strict=True)
        if self.small or set(clips) <= {(names[video], clip) for video, clip in cells}:
            return self
        return replace(self.add(clips), query=self.query)

    @property
    def lines(self) -> LineSet:
        """The lines of the candidates and the sample."""
        return self.candidates.lines

    @property
    def may_read_all(self) -> bool:
        """Whether ``all_lines`` are few enough, and those of the whole view."""
        return self.share == 1 and self.candidates.view_lines <= WIDE

    @cached_property
    def all_lines(self) -> LineSet:
        """All lines of the view, for structural searches."""
        return self.load_all()

    @cached_property
    def rows(self) -> tuple[ViewLine, ...]:
        """All lines of the view in the order of time."""
        return in_time_order(self.all_lines)

    @cached_property
    def words(self) -> frozenset[str]:
        """The search terms of the question."""
        return frozenset(self.question.words)

    @property
    def people(self) -> ViewPeople:
        return self.question.people

    def scope(self, video: str) -> Scope:
        return next(scope for scope in self.view.scopes if scope.video == video)

    def cells_of(self, segment: Segment) -> Ints:
        return self.lines.cells_of(segment.video, segment.clips)

    @cached_property
    def chance(self) -> float:
        """The closeness up to which the best of so many lines is chance."""
        return closeness_threshold(self.candidates.view_lines)

    @cached_property
    def idf(self) -> dict[str, float]:
        """The inverse document frequency of each word of the question."""
        return {
            word: self.candidates.hits.inverse_document_frequency(word)
            for word in sorted(self.words)
        }

    def closeness(self, line: int) -> float:
        """Return the closeness of a line, with the lines around it, to the question, in [0, 1]."""
        if self.relevance is None:
            return 0.0
        cell = int(self.lines.cell_of_line[line])
        first, last = int(self.lines.bounds[cell]), int(self.lines.bounds[cell + 1])
        nearby = range(max(first, line - CONTEXT), min(last, line + CONTEXT + 1))
        word_coverage = coverage((self.lines.line(i)[1] for i in nearby), self.idf)
        nearness = self.cosine_scale.nearness(float(self.relevance.lines[0, line]))
        return closeness(nearness, word_coverage)

    def text_closeness(self, cosine: float, text: str) -> float:
        """Return the closeness of a text with this cosine to the question, in [0, 1]."""
        word_coverage = text_coverage([text], self.idf)
        return closeness(self.cosine_scale.nearness(cosine), word_coverage)

    def evidence(self, ranked: Sequence[ranking.RankedLine]) -> tuple[Evidence, ...]:
        """Return lines as evidence in the given order, with falling scores."""
        if not ranked:
            return ()
        best = max(self.closeness(line.line) for line in ranked[:3])
        scores = decayed(best, [line.score for line in ranked])
        self.lines.read_lines(line.line for line in ranked)
        return tuple(
            self.row_evidence(*self.lines.line(line.line), score)
            for line, score in zip(ranked, scores, strict=True)
        )

    def row_evidence(self, video: str, line: StoredLine, score: float) -> Evidence:
        return Evidence(
            ref=f"m{line.id}",
            video=video,
            span=TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms)),
            text=line_text(line, self.people.names(video)),
            score=min(1.0, max(0.0, score)),
            clip=line.clip,
        )

    def segment_evidence(self, segment: Segment, score: float) -> Evidence:
        names = self.people.names(segment.video)
        return Evidence(
            ref=f"s{segment.id}",
            video=segment.video,
            span=segment.span,
            text=with_current_names(f"{segment.label}: {segment.summary}", names),
            score=min(1.0, max(0.0, score)),
        )

    def searched(self, where: str) -> str:
        """Describe what was searched, in words."""
        videos = sum(scope.last_clip >= 0 for scope in self.view.scopes)
        span = f" ({self.span})" if self.span else ""
        likeliest = f"the likeliest {len(self.lines.scopes)} of " if self.share < 1 else ""
        plural = "s" * (videos != 1)
        text = f"{where} for {self.query!r} in {likeliest}{videos} video{plural}{span}"
        note = language_note(self.query, self.text.languages)
        return f"{text}. {note}" if note else text


def nothing_close(evidence: Sequence[Evidence], candidates: int) -> bool:
    """Check whether even the best evidence is no closer than chance among so many candidates."""
    return not evidence or max(piece.score for piece in evidence) < closeness_threshold(candidates)


# Support of a question's options by memory, from the relevance of every cell to each.


DIGITS = 4
"""Decimals of a recorded score."""
TEMPERATURE = 8.0
"""Divisor from sums of standard deviations to logits: fitted on judged answers, rounded."""


def temperature(context: QueryContext) -> float:
    """Return the divisor from scores of this search to logits; 1 if they are logits."""
    relevance = context.relevance
    return 1.0 if relevance is None or relevance.line_support is not None else TEMPERATURE


def weigh_evidence(context: QueryContext, evidence: Sequence[Evidence]) -> tuple[Weighed, ...]:
    """Score lines and images by option; segments are left out.

    A line is scored by its clip and its own cosines, an image by its clip.
    """
    if context.relevance is None or not context.question.options:
        return ()
    lines, relevance = context.lines, context.relevance
    numbers = lines.lines_with([int(e.ref[1:]) for e in evidence if e.ref.startswith("m")])
    cells = lines.cell_of_line[numbers]
    actors = relevance.support[:, cells] - relevance.options[:, cells]
    scores = ranking.line_scores(context.candidates, relevance, numbers) + actors
    of_lines = [(f"m{lines.arrays.id[n]}", scores[:, i]) for i, n in enumerate(numbers)]
    of_images = [
        (e.ref, relevance.support[:, own[0]])
        for e in evidence
        if e.ref.startswith("k") and e.clip is not None
        if len(own := lines.cells_of(e.video, [e.clip]))
    ]
    return tuple(
        Weighed(ref=ref, scores=tuple(round(float(s), DIGITS) for s in found))
        for ref, found in (*of_lines, *of_images)
    )
