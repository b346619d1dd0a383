"""The lines of a view's candidate and sampled clips as arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domain.memories import MemorySource, Scope
from domain.time import TimeSpan
from store.queries.candidates import LineArrays
from store.queries.search import StoredLine

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Scores = NDArray[np.float64]
Matrix = NDArray[np.float32]

ReadLines = Callable[[Collection[int]], Mapping[int, StoredLine]]
"""Fetches stored lines by id."""


def dot_products(queries: Matrix, vectors: Matrix) -> Floats:
    """Return the dot products of Q queries (Q, D) with N vectors (N, D), shape (Q, N)."""
    # In one thread: a matrix product starts threads that wait by spinning for longer than these
    # products take, while the database needs the processors.
    return np.asarray(np.vecdot(queries[:, None], vectors[None]), dtype=np.float32)


def search_text(line: StoredLine) -> str:
    """Return the text that a line is indexed by: its speaker and its words."""
    return f"{line.speaker}: {line.text}" if line.speaker else line.text


@dataclass(frozen=True, eq=False)
class LineSet:
    """M lines of N cells (clips with at least one line), by video, clip, time and id.

    ``arrays`` has the lines' numbers and vectors; ``video`` there numbers ``scopes``. Texts are
    fetched on first use.
    """

    scopes: tuple[Scope, ...]
    arrays: LineArrays
    read: ReadLines
    _known: dict[int, StoredLine] = field(default_factory=dict)

    @property
    def line_count(self) -> int:
        """M, the number of lines."""
        return len(self.arrays.id)

    @property
    def cell_count(self) -> int:
        """N, the number of cells."""
        return len(self.first)

    @cached_property
    def first(self) -> Ints:
        """The first line of each cell, shape (N,)."""
        video, clip = self.arrays.video, self.arrays.clip
        new = (np.diff(video, prepend=-1) != 0) | (np.diff(clip, prepend=-1) != 0)
        return np.flatnonzero(new)

    @cached_property
    def bounds(self) -> Ints:
        """The first line of each cell, and M at the end, shape (N + 1,)."""
        return np.append(self.first, self.line_count)

    @cached_property
    def cell_of_line(self) -> Ints:
        """The cell of each line, shape (M,)."""
        return np.repeat(np.arange(self.cell_count), np.diff(self.bounds))

    @cached_property
    def cell_video(self) -> Ints:
        """The number of each cell's video, shape (N,)."""
        return self.arrays.video[self.first]

    @cached_property
    def cell_clip(self) -> Ints:
        """The clip of each cell, shape (N,)."""
        return self.arrays.clip[self.first]

    @cached_property
    def follows(self) -> NDArray[np.bool_]:
        """Which cells directly follow the previous cell in time, shape (N,)."""
        start = self.arrays.clip_start_ms[self.first]
        end = self.arrays.clip_end_ms[self.first]
        same = np.diff(self.cell_video, prepend=-1) == 0
        next_clip = np.diff(self.cell_clip, prepend=-2) == 1
        gap = start - np.concatenate([end[:1], end[:-1]])
        return np.asarray(same & next_clip & (gap <= (end - start) / 2))

    @cached_property
    def times(self) -> Scores:
        """The middle of each cell in seconds, shape (N,)."""
        both = self.arrays.clip_start_ms[self.first] + self.arrays.clip_end_ms[self.first]
        return both / 2000

    def line(self, number: int) -> tuple[str, StoredLine]:
        """Return the video and row of a line."""
        identifier = int(self.arrays.id[number])
        if identifier not in self._known:
            cell = int(self.cell_of_line[number])
            self.read_lines(range(int(self.bounds[cell]), int(self.bounds[cell + 1])))
        return self.scopes[int(self.arrays.video[number])].video, self._known[identifier]

    def read_lines(self, numbers: Iterable[int]) -> None:
        """Fetch the rows of lines in one query, except those already fetched."""
        wanted = {int(self.arrays.id[number]) for number in numbers} - self._known.keys()
        if wanted:
            self._known.update(self.read(wanted))

    @cached_property
    def rows(self) -> list[tuple[str, StoredLine]]:
        self.read_lines(range(self.line_count))
        return [self.line(number) for number in range(self.line_count)]

    def lines_of(self, cells: Iterable[int]) -> Ints:
        """Return the numbers of the lines of these cells, in the order of the cells."""
        spans = [np.arange(self.bounds[cell], self.bounds[cell + 1]) for cell in cells]
        return np.concatenate([np.zeros(0, dtype=np.int64), *spans])

    def cells_of(self, video: str, clips: Iterable[int]) -> Ints:
        """Return the numbers of the cells of these clips of a video, ascending."""
        wanted = np.unique(np.fromiter(clips, np.int64))
        number = self.number_of(video)
        return np.flatnonzero((self.cell_video == number) & np.isin(self.cell_clip, wanted))

    def number_of(self, video: str) -> int:
        """Return the number of a video's scope; -1 if it is not in view."""
        names = [scope.video for scope in self.scopes]
        return names.index(video) if video in names else -1

    def lines_with(self, ids: Collection[int]) -> Ints:
        """Return the numbers of the lines with these ids, ascending."""
        return np.flatnonzero(np.isin(self.arrays.id, np.fromiter(ids, np.int64, len(ids))))

    def cosines(self, queries: Matrix) -> Floats:
        """Return the cosines of Q unit vectors (Q, D) with every line, shape (Q, M)."""
        return dot_products(queries, self.arrays.vectors)

    def largest(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the largest value of each cell's lines, (..., M) to (..., N)."""
        if not self.line_count:
            return np.zeros((*values.shape[:-1], 0))
        return np.asarray(np.maximum.reduceat(values, self.first, axis=-1))


def line_set(
    scopes: Sequence[Scope], rows: Sequence[tuple[int, StoredLine]], vectors: Matrix, clip_ms: int
) -> LineSet:
    """Build a set from rows in memory: (number of the scope, row), by scope, clip, time and id."""
    lines = [row for _, row in rows]
    clips = np.array([row.clip for row in lines], dtype=np.int64)

    def numbers(name: str) -> Ints:
        return np.array([getattr(row, name) for row in lines], dtype=np.int64)

    arrays = LineArrays(
        video=np.array([video for video, _ in rows], dtype=np.int64),
        id=numbers("id"),
        clip=clips,
        start_ms=numbers("start_ms"),
        end_ms=numbers("end_ms"),
        clip_start_ms=clips * clip_ms,
        clip_end_ms=(clips + 1) * clip_ms,
        vectors=vectors,
    )
    known = {row.id: row for row in lines}
    return LineSet(tuple(scopes), arrays, lambda ids: {i: known[i] for i in ids})


# Lines in the order of time, classified by kind.

SPOKEN = frozenset({MemorySource.SAID, MemorySource.SUBTITLE})
WRITTEN = frozenset({MemorySource.CAPTION, MemorySource.MODEL})
"""Sources of lines that describe the video: captions, and a model."""
_PRESENCE = re.compile(r"(?:<\w+>(?:, | and )?)+ (?:is|are) on screen(?: together)?\.")


@dataclass(frozen=True)
class ViewLine:
    """A line in view: its video, its number in the line set, and its row."""

    video: str
    number: int
    line: StoredLine

    @property
    def span(self) -> TimeSpan:
        return TimeSpan.of(self.line.start_ms, max(self.line.start_ms, self.line.end_ms))

    @property
    def spoken(self) -> bool:
        return self.line.source in SPOKEN and not self.names_somebody

    @property
    def presence(self) -> bool:
        """Whether the line only states who is on screen."""
        return self.line.source == MemorySource.SEEN and bool(_PRESENCE.fullmatch(self.line.text))

    @property
    def names_somebody(self) -> bool:
        """Whether the line notes that a person's name was said or shown."""
        return bool(re.match(r"<\w+> is named ", self.line.text))

    @property
    def described(self) -> bool:
        """Whether the line describes the video beyond who is on screen."""
        seen = self.line.source == MemorySource.SEEN and not self.presence
        return self.line.source in WRITTEN or seen


def in_time_order(lines: LineSet) -> tuple[ViewLine, ...]:
    """Return every line, by video of the view, time and id."""
    rows = [ViewLine(video, number, row) for number, (video, row) in enumerate(lines.rows)]
    scopes = {scope.video: number for number, scope in enumerate(lines.scopes)}
    return tuple(sorted(rows, key=lambda row: (scopes[row.video], row.line.start_ms, row.line.id)))
