"""How many clips and lines a view has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domain.errors import NotFound
from domain.memories import Scope
from store.queries.view_conditions import (
    LINES_IN_VIEW,
    VIEW,
    Reader,
    reading_driver,
    view_parameters,
)

WIDE = 20_000
"""Views of more lines are searched through the HNSW index, if there is one; others exactly."""


@dataclass(frozen=True)
class ViewSize:
    """The size of a view: clips, lines counted up to ``WIDE + 1``, first and last time.

    Times are milliseconds of video time.
    """

    clips: int
    lines: int
    start_ms: int
    end_ms: int

    @property
    def wide(self) -> bool:
        """Whether the view is too large for exact search."""
        return self.lines > WIDE


_SIZE = f"""
    WITH {VIEW}
    SELECT (SELECT coalesce(array_agg(video), '{{}}') FROM view
                WHERE NOT EXISTS (SELECT FROM videos AS v WHERE v.id = view.video)),
           (SELECT count(*) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip <= view.last_clip),
           (SELECT count(*) FROM (SELECT FROM view JOIN memories AS m
                ON m.video_id = view.video AND m.clip <= view.last_clip
                LIMIT %(limit)s) AS counted),
           (SELECT coalesce(min(c.start_ms), 0) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip = 0),
           (SELECT coalesce(max(c.end_ms), 0) FROM view JOIN clips AS c
                ON c.video_id = view.video AND c.clip = view.last_clip)
"""


def view_size(database: Reader, scopes: Sequence[Scope]) -> ViewSize:
    """Count the clips and lines in view; lines only up to ``WIDE + 1``.

    Raises:
        NotFound: A video of the view does not exist.
    """
    parameters = view_parameters(scopes) | {"limit": WIDE + 1}
    row = reading_driver(database).execute(_SIZE, parameters).fetchone()
    missing, *counts = row or ([], 0, 0, 0, 0)
    if missing:
        raise NotFound(f"no video goes by {missing[0]!r}: `homer videos` lists them")
    return ViewSize(*counts)


_COUNT = f"""
    WITH {VIEW} SELECT count(*) FROM (SELECT FROM {LINES_IN_VIEW} LIMIT %(limit)s) AS counted
"""


def count_lines(database: Reader, scopes: Sequence[Scope]) -> int:
    """Count the lines in view, up to ``WIDE + 1``."""
    parameters = view_parameters(scopes) | {"limit": WIDE + 1}
    row = reading_driver(database).execute(_COUNT, parameters).fetchone()
    return int(row[0]) if row else 0


def is_wide(database: Reader, scopes: Sequence[Scope]) -> bool:
    """Check whether a view has more than ``WIDE`` lines."""
    return count_lines(database, scopes) > WIDE
