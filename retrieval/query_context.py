"""One search made ready: what is in view, what is asked, and how relevant every clip is to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import ascii_uppercase

import numpy as np

from domain.asking import Evidence
from domain.memories import MemoryView, Scope, Segment
from domain.time import TimeSpan
from retrieval.closeness import Yardstick, closeness, coverage, faded, least
from retrieval.heuristics.language import uncovered
from retrieval.moments import MomentScore
from retrieval.people_in_query import ViewPeople, retold, told
from retrieval.ranking import PreparedQuestion, QuestionVectors
from retrieval.relevance import Relevance
from retrieval.segment_index import SegmentIndex
from retrieval.video_index import Ints
from retrieval.view_index import ViewIndex

CONTEXT = 2
"""Lines before and after one whose words are counted as said around it."""


@dataclass(frozen=True, eq=False)
class QueryContext:
    """Everything that the modes work on.

    ``query`` is what the search was asked for, ``asked`` what is ranked by: the words of the
    question, where the query only restates them, and the options that the search is about.
    ``field`` is None where nothing is in view yet; ``look_up`` finds the segments in view;
    ``languages`` are those that the text model was made for.
    """

    query: str
    view: MemoryView
    panorama: ViewIndex
    asked: PreparedQuestion
    vectors: QuestionVectors
    field: Relevance | None
    look_up: Callable[[ViewIndex], SegmentIndex]
    yardstick: Yardstick
    languages: tuple[str, ...] = ()

    def about(self, letters: Collection[str]) -> QueryContext:
        """The same search for the options with these letters alone; none: for all."""
        rows = [i for i in range(len(self.asked.options)) if ascii_uppercase[i] in letters]
        if not rows or self.field is None:
            return self
        options = tuple(self.asked.options[i] for i in rows)
        asked, field = replace(self.asked, options=options), self.field.of_options(rows)
        return replace(self, asked=asked, field=field)

    @cached_property
    def woven(self) -> SegmentIndex:
        """The segments in view; looked up when first needed."""
        return self.look_up(self.panorama)

    @cached_property
    def words(self) -> frozenset[str]:
        """The search terms of the question."""
        return frozenset(self.asked.words)

    @property
    def cast(self) -> ViewPeople:
        """Who is known in the view."""
        return self.asked.cast

    @cached_property
    def span(self) -> TimeSpan | None:
        """The time that is in view."""
        spans = [
            TimeSpan.of(part.index.cells[0].start_ms, part.as_of_ms) for part in self.panorama.parts
        ]
        return spans[0] if len(spans) == 1 else None

    def scope(self, video: str) -> Scope:
        """The scope of one of the view's videos."""
        return next(scope for scope in self.view.scopes if scope.video == video)

    def cells_of(self, segment: Segment) -> Ints:
        """The numbers of a segment's cells in view."""
        return self.panorama.cells_of(segment.video, segment.clips)

    def closeness(self, line: int) -> float:
        """How close a line, with what is said around it, is to the question."""
        if self.field is None:
            return 0.0
        cell = int(self.panorama.cell_of_line[line])
        self.field.sharpen(np.array([cell]))
        around = self.panorama.lines_of_cell(cell)
        near = [i for i in around if abs(i - line) <= CONTEXT]
        covered = coverage(self.panorama, self.words, near)
        return closeness(self.yardstick.nearness(float(self.field.lines[0, line])), covered)

    def evidence(self, moments: Sequence[MomentScore], reread: float = 0.0) -> tuple[Evidence, ...]:
        """Moments as evidence, in the order given, scores falling from the closest of them.

        ``reread`` is how close the best is by reading it again, in [0, 1].
        """
        if not moments:
            return ()
        best = max(reread, *(self.closeness(moment.line) for moment in moments[:3]))
        scores = faded(best, [moment.score for moment in moments])
        return tuple(
            self._evidence(moment.line, score)
            for moment, score in zip(moments, scores, strict=True)
        )

    def _evidence(self, number: int, score: float) -> Evidence:
        video, line = self.panorama.line(number)
        return Evidence(
            ref=f"m{line.id}",
            video=video,
            span=TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms)),
            text=told(line, self.cast.names(video)),
            score=min(1.0, max(0.0, score)),
            clip=line.clip,
        )

    def segment_evidence(self, segment: Segment, score: float) -> Evidence:
        """A segment as evidence."""
        names = self.cast.names(segment.video)
        return Evidence(
            ref=f"s{segment.id}",
            video=segment.video,
            span=segment.span,
            text=retold(f"{segment.label}: {segment.summary}", names),
            score=min(1.0, max(0.0, score)),
        )

    def searched(self, where: str) -> str:
        """Where was looked, in words."""
        videos = len(self.panorama.parts)
        span = f" ({self.span})" if self.span else ""
        told = f"{where} for {self.query!r} in {videos} video{'s' * (videos != 1)}{span}"
        note = uncovered(self.query, self.languages)
        return f"{told}. {note}" if note else told


def nothing_close(evidence: Sequence[Evidence], candidates: int) -> bool:
    """Whether even the best is not close enough to mean anything among so many candidates."""
    return not evidence or max(one.score for one in evidence) < least(candidates)
