"""A video as text: the same video gives the same bytes, whatever database it lies in."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlalchemy.orm import Session

from store.queries.records import Record, records

# Line ends to some readers, though not to JSON: each record must stay on one line for all.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def dump(session: Session, video_id: str) -> Iterator[str]:
    """Canonical JSON lines, without line ends, of everything that was learned from a video.

    Rows go by stable names, vectors by a digest; clock times, the file's place and how often a
    clip had to be tried are left out. Nothing where there is no such video.
    """
    return map(canonical, records(session, video_id))


def canonical(record: Record) -> str:
    """JSON on one line: sorted keys, no spaces, UTF-8 as it is."""
    text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.translate(_LINE_ENDS)
