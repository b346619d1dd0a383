"""An index of a video as bytes, so that the next process need not work it out again.

The lines' vectors are left in their table: what a search looks into is fetched from there.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from retrieval.lazy_lines import Arrays, KeptLines, arrays_of, texts_as, texts_of
from retrieval.line_vectors import Fetch, LineVectors
from retrieval.postings import Postings
from retrieval.quantized import Coded, coded, of_coded
from retrieval.video_index import VideoIndex, gone_of
from store.queries.search import CellRow
from store.queries.stamps import LinesKey

FORMAT = 2
"""Raised whenever an index is worked out or laid out otherwise: what was kept is done anew then."""


def key_of(since: LinesKey, step_ms: int) -> str:
    """Tells which lines an index is of, and how it was made of them."""
    added, version, marked, done = since
    return f"{FORMAT} {step_ms} {added.isoformat()} {version} {marked.isoformat()} {done}"


def as_bytes(index: VideoIndex) -> bytes:
    """An index, without its vectors and without what is superseded later.

    What is rounded for that, the index has from then on.
    """
    spans = np.array(list(index.spans.values()), dtype=np.int64).reshape(-1, 3)
    terms, kept = index.postings, coded(index.vectors)
    arrays: Arrays = {
        "width": np.array(index.line_vectors.width),
        "spans": spans,
        "first": index.first,
        "keys": index.keys,
        "magnitudes": index.magnitudes,
        "held": np.searchsorted(spans[:, 0], index.clips),
        "lengths": index.lengths,
        "term_starts": terms.starts,
        "term_cells": terms.cells.astype(np.int32),
        "term_counts": terms.counts,
        **texts_as("terms", terms.numbers),
        **arrays_of(index.lines),
        **kept._asdict(),
    }
    _have_rounded(index, kept)
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays)
    return body.getvalue()


class Basis(NamedTuple):
    """What an index is of: see ``VideoIndex``.

    ``superseded`` maps ids of memories to clips; ``fetch`` reads vectors.
    """

    video: str
    since: LinesKey
    through: int
    superseded: Mapping[int, int]
    fetch: Fetch


def from_bytes(body: bytes, basis: Basis) -> VideoIndex | None:
    """The index again; None where ``body`` is damaged."""
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as found:
            return _index({name: found[name] for name in found.files}, basis)
    except (ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile):
        return None


def _index(arrays: Arrays, basis: Basis) -> VideoIndex:
    ids, width = arrays["id"], int(arrays["width"])
    gone = gone_of(ids, basis.superseded)
    rows = [CellRow(*row) for row in arrays["spans"].tolist()]
    terms = {term: number for number, term in enumerate(texts_of(arrays, "terms"))}
    none = np.zeros((0, width), dtype=np.float32)
    index = VideoIndex(
        video=basis.video,
        since=basis.since,
        through=basis.through,
        lines=KeptLines(arrays, gone),
        line_vectors=LineVectors(none, ids, basis.fetch),
        gone=gone,
        cells=tuple(rows[place] for place in arrays["held"].tolist()),
        first=arrays["first"],
        keys=arrays["keys"],
        lengths=arrays["lengths"],
        postings=Postings(
            terms,
            arrays["term_starts"],
            arrays["term_cells"].astype(np.int64),
            arrays["term_counts"],
        ),
        spans={row.clip: row for row in rows},
    )
    # Worked out from vectors elsewhere, which are not here yet.
    _have_rounded(index, Coded(*(arrays[field] for field in Coded._fields)))
    sides = np.stack([arrays["start_ms"], arrays["end_ms"]])
    vars(index).update(ids=ids, sides=sides, magnitudes=arrays["magnitudes"])
    return index


def _have_rounded(index: VideoIndex, kept: Coded) -> None:
    """Spare an index to round its lines by itself."""
    if "rounded_lines" not in vars(index):
        vars(index)["rounded_lines"] = of_coded(kept, index.line_vectors.width)
