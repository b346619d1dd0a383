"""What the benchmark of ingestion watches, and how it counts."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.ingest import EVENTS, STEPS, TOOLS, Stages, repeated
from perception.source import probe
from tests.support.media import make_video


def test_a_video_is_repeated_until_it_is_so_long(tmp_path: Path) -> None:
    video = make_video(tmp_path / "short.mp4", seconds=1.0)
    assert repeated(video, 0) == video
    longer = repeated(video, 3.5)
    assert 3_500 <= probe(longer).duration_ms <= 4_700
    assert probe(longer).has_audio == probe(video).has_audio


def test_a_stage_within_another_counts_for_itself_alone() -> None:
    stages, whole = Stages(), STEPS["perceive"]
    with stages.on(whole):
        time.sleep(0.01)
        with stages.on(TOOLS["screen"]):
            time.sleep(0.1)
    assert 0.01 <= stages.seconds[whole] < 0.1 <= stages.seconds[TOOLS["screen"]]


def test_a_stage_that_several_threads_are_at_counts_once() -> None:
    stages, speech = Stages(), TOOLS["speech"]
    with stages.on(speech), stages.on(speech):
        time.sleep(0.05)
    time.sleep(0.05)
    with stages.on(STEPS[EVENTS]), stages.on(speech):
        time.sleep(0.05)
    assert 0.1 <= stages.seconds[speech] < 0.15
    assert stages.seconds[STEPS[EVENTS]] >= 0.05
