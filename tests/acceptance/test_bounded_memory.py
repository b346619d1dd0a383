"""Memory is bounded by a clip: half an hour of video takes what its first minutes take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.media import looped, make_video

ROOT = Path(__file__).parents[2]
WATCH = """
import resource, sys
from pathlib import Path
from domain.settings import WatchSettings
from perception.decode import read_clips
from perception.images import Blobs
from perception.keyframes import keyframe_candidates, pick_keyframes
from perception.source import probe

path, clips = Path(sys.argv[1]), int(sys.argv[2])
settings = WatchSettings()
seen = 0
for raw in read_clips(path, probe(path), settings):
    blobs = Blobs()
    pick_keyframes(raw.frames, keyframe_candidates(raw.frames, settings), settings, blobs)
    assert len(raw.frames) == 150 and len(raw.samples) == 480_000 and blobs
    seen += 1
    if seen == clips:
        break
assert seen == clips
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kib(path: Path, clips: int) -> int:
    """The most memory that a process of its own took to watch the first ``clips`` clips."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, str(path), str(clips)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.full
def test_half_an_hour_takes_no_more_memory_than_three_minutes(tmp_path: Path) -> None:
    short = make_video(tmp_path / "short.mp4", seconds=30, fps=5, gop=25, scene_s=4.0)
    long = looped(short, tmp_path / "long.mp4", 60)
    assert peak_kib(long, 60) <= 1.2 * peak_kib(long, 6)
