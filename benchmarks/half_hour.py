"""Half an hour of video with speech: how many times real time, and how much memory at most.

    python -m benchmarks.half_hour [VIDEO] [--minutes 30] [--height 720]

The packets of a video, re-encoded once to H.264 at that height, are repeated for so long, and
watched by ``homer ingest --direct`` in a process of its own: every stage on, the models of
``local``, and a database that is thrown away. Loading the models is part of it. Elapsed time means
something on an idle machine only; seconds of CPU are printed too, and how fast that would be on
idle cores.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ingest import CORES, DEMO, repeated, with_sound
from benchmarks.lines import Line, Taken, costs, faster
from benchmarks.memory import CUT_S, MOST_MB, Used, ingest_measured
from perception.source import probe

MINUTES, HEIGHT = 30.0, 720
BAR = 4.0
"""Times real time, at least."""


def lines() -> Iterator[Line]:
    """Yield the time beside the length of the video, and the peak of memory beside its limit."""
    used, seconds = watched(DEMO, MINUTES, HEIGHT)
    length = Taken((seconds,), "s")
    yield faster("half an hour of 720p", Taken((used.wall,), "s"), length, "its own length", BAR)
    cpu = Taken((used.cpu / CORES,), "s")
    yield faster("half an hour of 720p, by its CPU on idle cores", cpu, length, "its own length")
    most = Taken((MOST_MB,), "MB")
    yield costs("half an hour of 720p, memory", Taken((used.peak_mb,), "MB"), most, "limit", 1.0)


def watched(source: Path, minutes: float, height: int) -> tuple[Used, float]:
    """Return what watching took, and the seconds of the video."""
    with tempfile.TemporaryDirectory() as folder:
        video = with_sound(source, Path(folder) / "video.mkv", height, CUT_S)
        video = repeated(video, 60 * minutes)
        return ingest_measured(video, Path(folder)), probe(video).duration_ms / 1000


def main() -> None:
    """Print what watching one video takes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("video", type=Path, nargs="?", default=DEMO)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--height", type=int, default=HEIGHT)
    given = parser.parse_args()
    used, seconds = watched(given.video, given.minutes, given.height)
    print(
        f"{given.video.name}, {given.height}p, {seconds:.0f} s: watched in {used.wall:.0f} s, "
        f"{seconds / used.wall:.1f}x real time; {used.cpu:.0f} s of CPU, on {CORES} idle cores "
        f"{CORES * seconds / used.cpu:.1f}x; memory at most {used.peak_mb:.0f} MB, processes "
        f"beside it {used.beside_mb:.0f} MB"
    )


if __name__ == "__main__":
    main()
