"""Cuts beside PySceneDetect's content detector as it comes, on a joined video whose cuts are known.

Both read the same 720p file from disk and decode it themselves. The line is a miss where ours
finds the cuts less well, however fast it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.keyframes import SHARED
from benchmarks.lines import Line, faster, in_turn
from benchmarks.perception.joining import join, starts
from benchmarks.perception.metrics import TOLERANCE_MS, compare_cuts
from benchmarks.perception.scenes import PEOPLE
from benchmarks.perception.shots import find_cuts, reference_cuts
from domain.settings import WatchSettings

BAR = 3.0


def lines() -> Iterator[Line]:
    """One line, whose name has both F1."""
    with tempfile.TemporaryDirectory() as folder:
        video = join(PEOPLE, SHARED, Path(folder) / "joined.mp4")
        found: dict[str, list[int]] = {}
        ours, theirs = in_turn(
            lambda: found.update(ours=find_cuts(video, WatchSettings(), _nobody)),
            lambda: found.update(theirs=_reference(video)),
        )
    true = starts(PEOPLE)[1:]
    f1 = {way: compare_cuts(true, cuts, TOLERANCE_MS).f1 for way, cuts in found.items()}
    worse = f1["ours"] < f1["theirs"]
    output = f"cuts, F1 {100 * f1['ours']:.0f} against {100 * f1['theirs']:.0f} %"
    yield faster(output, ours, theirs, "PySceneDetect", float("inf") if worse else BAR)


def _nobody() -> None:
    """Ignore the progress of each clip."""


def _reference(video: Path) -> list[int]:
    found = reference_cuts(video)
    assert found is not None, "PySceneDetect is not installed: make dev"
    return found
