"""A video's memory in process, as arrays: lines with vectors, grouped in clips, with their words.

Memory only grows in clip order, so a view as of a clip is a prefix of these arrays; what a view
computes never depends on what comes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from retrieval.cell_means import magnitudes
from retrieval.heuristics.actors import ActorLines, actor_lines
from retrieval.lazy_lines import STILL
from retrieval.line_vectors import LineVectors
from retrieval.postings import Postings, postings_of
from retrieval.quantized import RoundedRows, rounded
from retrieval.terms import terms
from store.queries.search import CellRow, Lines, Matrix, StoredLine
from store.queries.stamps import LinesKey

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """M lines of N cells (clips with at least one line), by clip, time and id.

    ``first`` (N,) is each cell's first line, ``keys`` (N,) its number on a grid of equal steps,
    ``gone`` (M,) the clip after which a line is superseded, ``lengths`` (N,) terms in a cell.
    ``since`` tells how the clips up to ``through`` were when they were read.
    ``through`` is the last clip read, ``spans`` the start and end of every clip read, also of those
    without lines.
    """

    video: str
    since: LinesKey
    through: int
    lines: Sequence[StoredLine]
    line_vectors: LineVectors
    gone: Ints
    cells: tuple[CellRow, ...]
    first: Ints
    keys: Ints
    lengths: Floats
    postings: Postings
    spans: dict[int, CellRow]

    @cached_property
    def actors(self) -> ActorLines:
        """Whose lines are whose; only questions with options ask for it."""
        return actor_lines(self.lines)

    @property
    def vectors(self) -> Matrix:
        """The lines' vectors, (M, D)."""
        return self.line_vectors.whole

    @cached_property
    def follows(self) -> NDArray[np.bool_]:
        """Which cells have one just before them, (N,)."""
        return np.asarray(np.diff(self.keys, prepend=self.keys[:1]) == 1)

    @cached_property
    def magnitudes(self) -> Floats:
        """See ``wholes``, (N,)."""
        return magnitudes(self.vectors, self.first, self.follows)

    @cached_property
    def rounded_lines(self) -> RoundedRows:
        """The lines for a first pass over very many."""
        return rounded(self.vectors)

    @cached_property
    def clips(self) -> Ints:
        """The clip of each cell, ascending, shape (N,)."""
        return np.fromiter((cell.clip for cell in self.cells), np.int64, len(self.cells))

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """The middle of each cell in seconds, shape (N,)."""
        middles = ((cell.start_ms + cell.end_ms) / 2000 for cell in self.cells)
        return np.fromiter(middles, np.float64, len(self.cells))

    @cached_property
    def ids(self) -> Ints:
        """The id of each line, shape (M,)."""
        return np.fromiter((line.id for line in self.lines), np.int64, len(self.lines))

    @cached_property
    def sides(self) -> Ints:
        """When each line starts and ends in milliseconds, shape (2, M)."""
        pairs = [(line.start_ms, line.end_ms) for line in self.lines]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def visible(self, last_clip: int) -> int:
        """How many leading cells a view as of ``last_clip`` sees."""
        return int(np.searchsorted(self.clips, last_clip, side="right"))

    def line_count(self, cells: int) -> int:
        """How many leading lines the first ``cells`` cells have."""
        return int(self.first[cells]) if cells < len(self.first) else len(self.lines)


def search_text(line: StoredLine) -> str:
    """What a line is found by: its words and who says them."""
    return f"{line.speaker}: {line.text}" if line.speaker else line.text


def build_index(
    video: str, since: LinesKey, through: int, lines: Lines, cells: Sequence[CellRow], step_ms: int
) -> VideoIndex:
    """Arrange rows, in order of clip, time and id. ``step_ms`` is the length of a clip."""
    clips = np.fromiter((line.clip for line in lines.rows), np.int64, len(lines.rows))
    held, first = np.unique(clips, return_index=True)
    place = {cell.clip: i for i, cell in enumerate(cells)}
    rows = [cells[place[int(clip)]] for clip in held]
    groups = np.split(np.arange(len(clips)), first[1:]) if len(held) else []
    words = _words(lines.rows, groups)
    return VideoIndex(
        video=video,
        since=since,
        through=through,
        lines=tuple(lines.rows),
        line_vectors=LineVectors(lines.vectors),
        gone=_gone(lines.rows),
        cells=tuple(rows),
        first=first.astype(np.int64),
        keys=np.array([row.start_ms // step_ms for row in rows], dtype=np.int64),
        lengths=np.fromiter(map(len, words), np.float32, len(words)),
        postings=postings_of(words),
        spans={row.clip: row for row in cells},
    )


def _gone(lines: Sequence[StoredLine]) -> Ints:
    at = (STILL if line.superseded_at is None else line.superseded_at for line in lines)
    return np.fromiter(at, np.int64, len(lines))


def gone_of(ids: Ints, superseded: Mapping[int, int]) -> Ints:
    """After which clip lines (M,) are no more so, of a map of memory ids to clips."""
    gone = np.full(len(ids), STILL, dtype=np.int64)
    order, later = np.argsort(ids), np.array([*superseded.items()], dtype=np.int64).reshape(-1, 2)
    known = later[np.isin(later[:, 0], ids)]
    gone[order[np.searchsorted(ids, known[:, 0], sorter=order)]] = known[:, 1]
    return gone


def _words(lines: Sequence[StoredLine], groups: Sequence[Ints]) -> list[list[str]]:
    """The search terms of each cell."""
    return [terms(" ".join(search_text(lines[i]) for i in group)) for group in groups]


def grown(index: VideoIndex, more: VideoIndex, superseded: dict[int, int]) -> VideoIndex:
    """``index`` followed by ``more``; ``superseded`` maps memory id to clip, for all of both."""
    cells, lines = len(index.cells), len(index.lines)
    rows = (*index.lines, *more.lines)
    ids = np.concatenate([index.ids, more.ids])
    both = VideoIndex(
        video=index.video,
        since=more.since,
        through=more.through,
        lines=rows,
        line_vectors=LineVectors(_stacked(index.vectors, more.vectors)),
        gone=gone_of(ids, superseded),
        cells=index.cells + more.cells,
        first=np.concatenate([index.first, more.first + lines]),
        keys=np.concatenate([index.keys, more.keys]),
        lengths=np.concatenate([index.lengths, more.lengths]),
        postings=index.postings.followed_by(more.postings, cells),
        spans=index.spans | more.spans,
    )
    vars(both)["ids"] = ids
    if cells:
        _carry_on(index, more, both)
    return both


def _carry_on(index: VideoIndex, more: VideoIndex, both: VideoIndex) -> None:
    """What was worked out of the first lines and cells is not worked out again for the next."""
    cells, lines = len(index.cells), len(index.lines)
    if "magnitudes" in vars(index):
        later = magnitudes(both.vectors, both.first, both.follows, cells)
        vars(both)["magnitudes"] = np.concatenate([index.magnitudes, later])
    if "sides" in vars(index):
        vars(both)["sides"] = np.concatenate([index.sides, more.sides], axis=1)
    if "actors" in vars(index):
        vars(both)["actors"] = index.actors.followed_by(more.actors, lines)
    if "rounded_lines" in vars(index):
        vars(both)["rounded_lines"] = index.rounded_lines.followed_by(both.vectors[lines:])


def _stacked(above: Matrix, below: Matrix) -> Matrix:
    """Rows of both; a side without rows does not decide the width."""
    if not len(above):
        return below
    return np.concatenate([above, below]) if len(below) else above
