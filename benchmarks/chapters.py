"""``python -m benchmarks.chapters``: Homer's chapters beside those that a person marked.

Prints, for each video of ``marked_chapters`` whose outline was built, how many of Homer's borders
are within 20 s of one that a person marked, and how many of the person's are within 20 s of one of
Homer's. The videos are the shared clips. A person may mark more borders than Homer, whose chapters
have a usual length.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from domain.errors import HomerError
from domain.time import parse_clock
from library.outlines import borders, load_outline
from store.database import Store, open_store
from store.home import Home

MARKED = Path(__file__).parent / "marked_chapters"
NEAR_MS = 20_000
BAR = 0.7
"""The share of Homer's borders that are near one of a person, at least."""


def near(borders_ms: Sequence[int], others_ms: Sequence[int]) -> int:
    """Return how many borders are within ``NEAR_MS`` of one of the others."""
    return sum(any(abs(one - other) <= NEAR_MS for other in others_ms) for one in borders_ms)


def compared(store: Store, title: str, marked_ms: Sequence[int], depth: int = 2) -> bool:
    """Print how the borders of a video compare, and return whether the bar is reached."""
    found = borders(load_outline(store, title, depth))
    ours, theirs = near(found, marked_ms), near(marked_ms, found)
    print(f"{title}: {ours} of Homer's {len(found)} borders are within 20 s of a person's;")
    print(f"  {theirs} of the person's {len(marked_ms)} are within 20 s of one of Homer's")
    return ours >= BAR * len(found)


def main() -> int:
    """Compare all marked videos; 1 where a bar is missed or nothing could be compared."""
    reached = []
    with open_store(Home.default()) as store:
        for path in sorted(MARKED.glob("*.toml")):
            marked = tomllib.loads(path.read_text(encoding="utf-8"))
            times = [parse_clock(border["at"]) for border in marked["borders"]]
            try:
                reached.append(compared(store, marked["title"], times))
            except HomerError as error:
                print(f"{marked['title']}: {error}", file=sys.stderr)
    return int(not reached or not all(reached))


if __name__ == "__main__":
    sys.exit(main())
