"""``python -m benchmarks``: run benchmarks and print a table; write JSON.

    python -m benchmarks [NAME ...] [--sizes N,N,N] [--json FILE]

Each line is a ratio against a reference that ran beside it, medians of at least five runs taken in
turns, with half the distance of the quartiles. The exit code is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from benchmarks.hardware import described
from benchmarks.lines import Line, Taken, exponent

NAMES = (
    "startup",
    "machine",
    "writes",
    "concurrent_writing",
    "concurrency",
    "search",
    "many_videos",
    "page_rank",
    "trajectory_size",
    "patches",
    "macro_event",
    "kept_frames",
    "fading_frames",
    "pages",
    "ingest",
    "shots",
    "keyframes",
    "workers",
    "memory",
    "half_hour",
    "persons",
)
SIZED = ("search",)
"""Those that take ``--sizes``."""


def main() -> int:
    """Run what is named, or all."""
    arguments = _arguments()
    found = []
    for line in measured(arguments.names, arguments.sizes):
        print(_format_line(line), flush=True)
        found.append(line)
    for output in _growth(found):
        print(output)
    if arguments.json is not None:
        arguments.json.write_text(document(found), encoding="utf-8")
    return int(any(line.reached is False for line in found))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare speeds.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--sizes", type=_sizes, help="memories of the libraries of `search`")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all lines there too")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}; known: {NAMES}")
    return arguments


def _sizes(output: str) -> tuple[int, ...]:
    return tuple(int(one) for one in output.split(","))


def measured(names: Sequence[str], sizes: Sequence[int] | None = None) -> Iterator[Line]:
    """Yield the lines of the benchmarks named, or of all."""
    for name in names or NAMES:
        print(f"== {name}", flush=True)
        given = [sizes] if sizes and name in SIZED else []
        yield from importlib.import_module(f"benchmarks.{name}").lines(*given)


def _format_line(line: Line) -> str:
    size = f" at {line.size:g}" if line.size else ""
    return (
        f"{line.what}{size}: {_taken(line.ours)}; {line.against}: {_taken(line.reference)}; "
        f"{line.ratio:.2f}x{_bar(line)}"
    )


def _taken(taken: Taken) -> str:
    return f"{taken.median:.1f} {taken.unit} (±{100 * taken.spread:.0f} %)"


def _bar(line: Line) -> str:
    if line.bar is None:
        return ""
    want = "at least" if line.more else "at most"
    return f", bar {want} {line.bar:g}: {'reached' if line.reached else 'MISSED'}"


def _growth(found: Sequence[Line]) -> Iterator[str]:
    """Yield how cost grows, of what was measured at three sizes or more."""
    sized = sorted((line for line in found if line.size), key=lambda line: line.what)
    for what, group in groupby(sized, key=lambda line: line.what):
        if (power := exponent(list(group))) is not None:
            yield f"{what}: cost grows with the power {power:.2f} of the size"


def document(found: Sequence[Line]) -> str:
    """All lines and the machine as JSON, which knows no infinity: what has one is null there."""
    rows = [
        {key: None if value == math.inf else value for key, value in asdict(line).items()}
        | {"reached": line.reached}
        for line in found
    ]
    return json.dumps({"machine": described(), "lines": rows}, indent=2, allow_nan=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
