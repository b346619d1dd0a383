"""What the benchmark of ingestion watches, and how it counts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.ingest import Stages, repeated
from perception.source import probe
from tests.support.media import make_video


def test_a_video_is_repeated_until_it_is_so_long(tmp_path: Path) -> None:
    video = make_video(tmp_path / "short.mp4", seconds=1.0)
    assert repeated(video, 0) == video
    longer = repeated(video, 3.5)
    assert 3_500 <= probe(longer).duration_ms <= 4_700
    assert probe(longer).has_audio == probe(video).has_audio


def test_a_stage_within_another_counts_for_itself_alone() -> None:
    stages = Stages()
    with stages.on("outer"), stages.on("inner"):
        sum(range(2_000_000))
    for counted in (stages.seconds, stages.cpu):
        assert 0 <= counted["outer"] < counted["inner"]
