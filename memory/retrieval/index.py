"""A video's memory in process, as arrays: lines with vectors, grouped in clips, with their words.

Memory only grows in clip order, so a view as of a clip is a prefix of these arrays; what a view
computes never depends on what comes after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from domain.time import TimeSpan
from memory.retrieval.words import terms
from store.queries.search import CellRow, Cells, Line, Lines, Matrix

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

STILL = np.iinfo(np.int64).max
"""``gone`` of a line that was never superseded."""


@dataclass(frozen=True, eq=False)
class Posting:
    """The cells that hold a term, ascending, and how often each does. Shapes (K,)."""

    cells: Ints
    counts: Floats


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """M lines of N cells (clips with at least one line), by clip, time and id.

    ``first`` (N,) is each cell's first line, ``keys`` (N,) its number on a grid of equal steps,
    ``gone`` (M,) the clip after which a line is superseded, ``lengths`` (N,) terms in a cell.
    ``vectors`` is (M, D) and ``cell_vectors`` (N, D), float32. ``through`` is the last clip read,
    ``spans`` the start and end of every clip read, also of those without lines.
    """

    video: str
    since: datetime
    through: int
    lines: tuple[Line, ...]
    vectors: Matrix
    gone: Ints
    cells: tuple[CellRow, ...]
    first: Ints
    keys: Ints
    cell_vectors: Matrix
    lengths: Floats
    postings: dict[str, Posting]
    spans: dict[int, TimeSpan]

    def visible(self, last_clip: int) -> int:
        """How many leading cells a view as of ``last_clip`` sees."""
        clips = np.fromiter((cell.clip for cell in self.cells), np.int64, len(self.cells))
        return int(np.searchsorted(clips, last_clip, side="right"))

    def line_count(self, cells: int) -> int:
        """How many leading lines the first ``cells`` cells have."""
        return int(self.first[cells]) if cells < len(self.first) else len(self.lines)


def search_text(line: Line) -> str:
    """What a line is found by: its words, and who says them where the words do not tell."""
    if line.speaker and line.speaker.casefold() not in line.text.casefold():
        return f"{line.speaker}: {line.text}"
    return line.text


def build_index(
    video: str, since: datetime, through: int, lines: Lines, cells: Cells, step_ms: int
) -> VideoIndex:
    """Arrange rows, in order of clip, time and id. ``step_ms`` is the length of a clip."""
    clips = np.fromiter((line.clip for line in lines.rows), np.int64, len(lines.rows))
    held, first = np.unique(clips, return_index=True)
    place = {cell.clip: i for i, cell in enumerate(cells.rows)}
    rows = [cells.rows[place[int(clip)]] for clip in held]
    groups = np.split(np.arange(len(clips)), first[1:]) if len(held) else []
    postings, lengths = _postings(lines.rows, groups)
    return VideoIndex(
        video=video,
        since=since,
        through=through,
        lines=tuple(lines.rows),
        vectors=lines.vectors,
        gone=_gone(lines.rows),
        cells=tuple(rows),
        first=first.astype(np.int64),
        keys=np.array([row.start_ms // step_ms for row in rows], dtype=np.int64),
        cell_vectors=_cell_vectors(cells, [place[int(c)] for c in held], lines.vectors, groups),
        lengths=lengths,
        postings=postings,
        spans={row.clip: TimeSpan.of(row.start_ms, row.end_ms) for row in cells.rows},
    )


def _gone(lines: Sequence[Line]) -> Ints:
    at = (STILL if line.superseded_at is None else line.superseded_at for line in lines)
    return np.fromiter(at, np.int64, len(lines))


def _postings(lines: Sequence[Line], groups: Sequence[Ints]) -> tuple[dict[str, Posting], Floats]:
    found: dict[str, list[tuple[int, int]]] = {}
    lengths = np.zeros(len(groups), dtype=np.float32)
    for cell, group in enumerate(groups):
        words = terms(" ".join(search_text(lines[i]) for i in group))
        lengths[cell] = len(words)
        for term, count in Counter(words).items():
            found.setdefault(term, []).append((cell, count))
    return {term: _posting(places) for term, places in found.items()}, lengths


def _posting(places: Sequence[tuple[int, int]]) -> Posting:
    cells, counts = zip(*places, strict=True)
    return Posting(np.array(cells, dtype=np.int64), np.array(counts, dtype=np.float32))


def _cell_vectors(
    cells: Cells, places: Sequence[int], vectors: Matrix, groups: Sequence[Ints]
) -> Matrix:
    """The stored vector of each cell; the mean direction of its lines where it has none."""
    if not places:
        return np.zeros((0, vectors.shape[1]), dtype=np.float32)
    if cells.vectors.shape[1] == vectors.shape[1]:
        stored = cells.vectors[list(places)]
    else:
        stored = np.zeros((len(places), vectors.shape[1]), dtype=np.float32)
    means = np.stack([vectors[group].mean(axis=0) for group in groups])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    blank = ~stored.any(axis=1, keepdims=True)
    return np.where(blank, means, stored).astype(np.float32)


def grown(index: VideoIndex, more: VideoIndex, superseded: dict[int, int]) -> VideoIndex:
    """``index`` followed by ``more``; ``superseded`` maps memory id to clip, for all of both."""
    cells, lines = len(index.cells), len(index.lines)
    rows = index.lines + more.lines
    gone = np.fromiter((superseded.get(r.id, STILL) for r in rows), np.int64, len(rows))
    return VideoIndex(
        video=index.video,
        since=index.since,
        through=more.through,
        lines=rows,
        vectors=_stacked(index.vectors, more.vectors),
        gone=gone,
        cells=index.cells + more.cells,
        first=np.concatenate([index.first, more.first + lines]),
        keys=np.concatenate([index.keys, more.keys]),
        cell_vectors=_stacked(index.cell_vectors, more.cell_vectors),
        lengths=np.concatenate([index.lengths, more.lengths]),
        postings=_merged(index.postings, more.postings, cells),
        spans=index.spans | more.spans,
    )


def _stacked(above: Matrix, below: Matrix) -> Matrix:
    """Rows of both; a side without rows does not decide the width."""
    if not len(above):
        return below
    return np.concatenate([above, below]) if len(below) else above


def _merged(
    before: dict[str, Posting], after: dict[str, Posting], offset: int
) -> dict[str, Posting]:
    merged = dict(before)
    for term, late in after.items():
        early = before.get(term)
        cells = late.cells + offset
        merged[term] = (
            Posting(cells, late.counts)
            if early is None
            else Posting(
                np.concatenate([early.cells, cells]), np.concatenate([early.counts, late.counts])
            )
        )
    return merged
