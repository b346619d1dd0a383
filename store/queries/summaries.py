"""What sums clips up: their spans and the vector of each one's whole text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.orm import Session

from store.schema import ClipRow


@dataclass(frozen=True, eq=False)
class Summed:
    """Clips that have a vector, in order: spans in ms, shape (N, 2), and vectors, (N, D)."""

    spans_ms: NDArray[np.int64]
    vectors: NDArray[np.float32]


def summed_clips(session: Session, video: str) -> Summed:
    """Every clip of a video that something was remembered of, in order."""
    found = session.execute(
        select(ClipRow.start_ms, ClipRow.end_ms, ClipRow.embedding)
        .where(ClipRow.video_id == video, ClipRow.embedding.is_not(None))
        .order_by(ClipRow.clip)
    ).all()
    spans = np.array([(start, end) for start, end, _ in found], dtype=np.int64)
    vectors = np.array([vector for _, _, vector in found], dtype=np.float32)
    return Summed(spans.reshape(-1, 2), vectors)
