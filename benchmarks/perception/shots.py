"""Evaluation of cuts, compared with PySceneDetect."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from benchmarks.perception.metrics import TOLERANCE_MS, Cuts, compare_cuts
from domain.settings import WatchSettings
from perception.decode import read_clips
from perception.keyframes import keyframe_candidates
from perception.source import probe


@dataclass(frozen=True)
class ShotReport:
    """The cuts of one video; ``reference``: PySceneDetect's, None if it is not installed."""

    name: str
    ours: Cuts
    reference: Cuts | None


def judge_shots(
    path: Path, true: Sequence[int], settings: WatchSettings, on_clip: Callable[[], None]
) -> ShotReport:
    """Compare the cuts of a video with the true ones, in milliseconds.

    ``on_clip`` is called after each clip.
    """
    ours = compare_cuts(true, find_cuts(path, settings, on_clip), TOLERANCE_MS)
    found_by_reference = reference_cuts(path)
    reference = (
        None if found_by_reference is None else compare_cuts(true, found_by_reference, TOLERANCE_MS)
    )
    return ShotReport(path.stem, ours, reference)


def find_cuts(path: Path, settings: WatchSettings, on_clip: Callable[[], None]) -> list[int]:
    """Return the cuts that an ingestion finds, in milliseconds; borders of clips do not count."""
    cuts = []
    silent = replace(probe(path), has_audio=False)
    for raw in read_clips(path, silent, settings):
        frames = keyframe_candidates(raw.frames, settings)
        cuts += [
            frame.time_ms for previous, frame in pairwise(frames) if frame.shot != previous.shot
        ]
        on_clip()
    return cuts


def reference_cuts(path: Path) -> list[int] | None:
    """Return the cuts of PySceneDetect's content detector by default; None without it."""
    if importlib.util.find_spec("scenedetect") is None:
        return None
    from scenedetect import ContentDetector, detect

    scenes = detect(str(path), ContentDetector())
    return [round(start.seconds * 1000) for start, _ in scenes[1:]]
