"""Are cuts found where they are, as well as by PySceneDetect?"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from domain.settings import WatchSettings
from evals.cuts import TOLERANCE_MS, Cuts, compare_cuts
from perception.decode import read_clips
from perception.keyframes import candidates
from perception.source import probe


@dataclass(frozen=True)
class ShotReport:
    """The cuts of one video; ``reference`` is PySceneDetect's, None where it is not installed."""

    name: str
    ours: Cuts
    reference: Cuts | None


def judge_shots(
    path: Path, true: Sequence[int], settings: WatchSettings, told: Callable[[], None]
) -> ShotReport:
    """The cuts of a video beside the true ones, in milliseconds; ``told`` after each clip."""
    ours = compare_cuts(true, find_cuts(path, settings, told), TOLERANCE_MS)
    theirs = reference_cuts(path)
    other = None if theirs is None else compare_cuts(true, theirs, TOLERANCE_MS)
    return ShotReport(path.stem, ours, other)


def find_cuts(path: Path, settings: WatchSettings, told: Callable[[], None]) -> list[int]:
    """Where an ingestion sees cuts, in milliseconds. The border of two clips is none."""
    cuts = []
    silent = replace(probe(path), has_audio=False)
    for raw in read_clips(path, silent, settings):
        found = candidates(raw.frames, settings)
        cuts += [now.time_ms for before, now in pairwise(found) if now.shot != before.shot]
        told()
    return cuts


def reference_cuts(path: Path) -> list[int] | None:
    """Where PySceneDetect's content detector, as it comes, sees cuts; None without it."""
    if importlib.util.find_spec("scenedetect") is None:
        return None
    from scenedetect import ContentDetector, detect

    scenes = detect(str(path), ContentDetector())
    return [round(start.seconds * 1000) for start, _ in scenes[1:]]
