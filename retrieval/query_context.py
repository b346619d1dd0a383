"""One search made ready: what is in view, what is asked, and how relevant the candidates are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from string import ascii_uppercase

from domain.asking import Evidence
from domain.memories import MemoryView, Scope, Segment
from domain.time import TimeSpan
from retrieval.closeness import CosineScale, closeness, coverage, faded, least
from retrieval.heuristics.language import uncovered
from retrieval.line_set import Ints, LineSet
from retrieval.moments import MomentScore
from retrieval.people_in_query import ViewPeople, line_text, renamed
from retrieval.ranking import PreparedQuestion, QuestionVectors, SearchedLines
from retrieval.relevance import Relevance
from retrieval.view_lines import ViewLine, in_time_order

CONTEXT = 2
"""Lines before and after one whose words are counted as said around it."""


@dataclass(frozen=True, eq=False)
class QueryContext:
    """Everything that the modes work on.

    ``query`` is what the search was asked for, ``asked`` what is ranked by: the words of the
    question, where the query only restates them, and the options that the search is about.
    ``relevance`` is None where nothing is in view yet; ``load_all`` fetches all lines of the view,
    for searches of its structure; ``small``: whether all of them are ranked. ``span`` is the time
    in view of a single video; ``languages`` are those that the text model was made for.
    """

    query: str
    view: MemoryView
    found: SearchedLines
    asked: PreparedQuestion
    vectors: QuestionVectors
    relevance: Relevance | None
    cosine_scale: CosineScale
    load_all: Callable[[], LineSet]
    small: bool = True
    span: TimeSpan | None = None
    languages: tuple[str, ...] = ()

    def about(self, letters: Collection[str]) -> QueryContext:
        """Return the same search for the options with these letters alone; none: for all."""
        rows = [i for i in range(len(self.asked.options)) if ascii_uppercase[i] in letters]
        if not rows or self.relevance is None:
            return self
        options = tuple(self.asked.options[i] for i in rows)
        asked = replace(self.asked, options=options)
        return replace(self, asked=asked, relevance=self.relevance.of_options(rows))

    @property
    def lines(self) -> LineSet:
        """The lines that are ranked."""
        return self.found.lines

    @cached_property
    def all_lines(self) -> LineSet:
        """All lines of the view, for searches of its structure."""
        return self.load_all()

    @cached_property
    def rows(self) -> tuple[ViewLine, ...]:
        """All lines of the view in the order of time."""
        return in_time_order(self.all_lines)

    @cached_property
    def words(self) -> frozenset[str]:
        """The search terms of the question."""
        return frozenset(self.asked.words)

    @property
    def people(self) -> ViewPeople:
        """Who is known in the view."""
        return self.asked.people

    def scope(self, video: str) -> Scope:
        """Return the scope of one of the view's videos."""
        return next(scope for scope in self.view.scopes if scope.video == video)

    def cells_of(self, segment: Segment) -> Ints:
        """Return the numbers of a segment's cells."""
        return self.lines.cells_of(segment.video, segment.clips)

    @cached_property
    def _rarities(self) -> dict[str, float]:
        return {word: self.found.hits.rarity(word) for word in sorted(self.words)}

    def closeness(self, line: int) -> float:
        """Return how close a line, with what is said around it, is to the question, in [0, 1]."""
        if self.relevance is None:
            return 0.0
        cell = int(self.lines.cell_of_line[line])
        first, last = int(self.lines.bounds[cell]), int(self.lines.bounds[cell + 1])
        around = range(max(first, line - CONTEXT), min(last, line + CONTEXT + 1))
        covered = coverage((self.lines.line(i)[1] for i in around), self._rarities)
        near = self.cosine_scale.nearness(float(self.relevance.lines[0, line]))
        return closeness(near, covered)

    def evidence(self, moments: Sequence[MomentScore], reread: float = 0.0) -> tuple[Evidence, ...]:
        """Return moments as evidence, in the order given, scores falling from the closest of them.

        ``reread`` is how close the best is by reading it again, in [0, 1].
        """
        if not moments:
            return ()
        best = max(reread, *(self.closeness(moment.line) for moment in moments[:3]))
        scores = faded(best, [moment.score for moment in moments])
        self.lines.read_lines(moment.line for moment in moments)
        return tuple(
            self._evidence(moment.line, score)
            for moment, score in zip(moments, scores, strict=True)
        )

    def _evidence(self, number: int, score: float) -> Evidence:
        video, line = self.lines.line(number)
        return Evidence(
            ref=f"m{line.id}",
            video=video,
            span=TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms)),
            text=line_text(line, self.people.names(video)),
            score=min(1.0, max(0.0, score)),
            clip=line.clip,
        )

    def segment_evidence(self, segment: Segment, score: float) -> Evidence:
        """Return a segment as evidence."""
        names = self.people.names(segment.video)
        return Evidence(
            ref=f"s{segment.id}",
            video=segment.video,
            span=segment.span,
            text=renamed(f"{segment.label}: {segment.summary}", names),
            score=min(1.0, max(0.0, score)),
        )

    def searched(self, where: str) -> str:
        """Say where was looked, in words."""
        videos = sum(scope.last_clip >= 0 for scope in self.view.scopes)
        span = f" ({self.span})" if self.span else ""
        text = f"{where} for {self.query!r} in {videos} video{'s' * (videos != 1)}{span}"
        note = uncovered(self.query, self.languages)
        return f"{text}. {note}" if note else text


def nothing_close(evidence: Sequence[Evidence], candidates: int) -> bool:
    """Check whether even the best is not close enough to mean anything among so many candidates."""
    return not evidence or max(one.score for one in evidence) < least(candidates)
