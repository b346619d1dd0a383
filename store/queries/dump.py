"""A video as text: the same video gives the same bytes in any database."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlalchemy.orm import Session

from store.queries.records import Record, video_records

# Some readers take these for line ends, though JSON does not: each record must be one line.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def dump_video(session: Session, video_id: str) -> Iterator[str]:
    """Yield canonical JSON lines, without line ends, of everything learned from a video.

    Rows are named by stable names, vectors by a digest; clock times, the file's path and the number
    of attempts are left out. Empty if there is no such video.
    """
    return map(canonical_record, video_records(session, video_id))


def canonical_record(record: Record) -> str:
    """Return a record as JSON on one line: sorted keys, no spaces, UTF-8."""
    text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.translate(_LINE_ENDS)
