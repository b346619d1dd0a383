"""Spans that are cut out of real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from domain.errors import InputError
from domain.media import Video
from domain.settings import WatchSettings
from domain.time import TimeSpan
from perception.cut_file import cut_file
from perception.source import clips_of, probe, video_id
from store.database import Store
from store.home import Home
from store.queries.videos import add_video
from tests.support.full_suite import in_full
from tests.support.media import COLOURS, make_video


def colours(path: Path) -> list[int]:
    """The colour that each picture shows, by its place in COLOURS."""
    found = []
    info = probe(path)
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            middle = info.upright.pixels(frame).reshape(-1, 3).astype(float).mean(axis=0)
            found.append(int(np.abs(np.array(COLOURS) - middle).sum(axis=1).argmin()))
    return found


def sound_ms(path: Path) -> float:
    with av.open(str(path)) as container:
        samples = sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))
    return 1000 * samples


@pytest.mark.parametrize(
    ("changes", "suffix", "copied"),
    [
        ({}, ".mp4", True),
        in_full(({"b_frames": 2}, ".mp4", True)),
        in_full(({}, ".ts", True)),
        ({"gop": 250}, ".mp4", False),
        in_full(({"codec": "libvpx-vp9", "audio": "libopus"}, ".webm", False)),
        in_full(({"rotation": 90}, ".mp4", True)),
        in_full(({"rotation": 90, "gop": 250}, ".mp4", False)),
        ({"video_start_ms": 700, "audio_start_ms": 500}, ".mkv", True),
        in_full(({"size": (161, 121), "pix_fmt": "yuv444p", "gop": 250}, ".mkv", False)),
    ],
)
def test_a_span_shows_and_sounds_what_the_video_does_then(
    tmp_path: Path, changes: dict[str, Any], suffix: str, copied: bool
) -> None:
    path = make_video(tmp_path / f"whole{suffix}", seconds=6.0, **changes)
    out = tmp_path / "cut.mp4"
    cut = cut_file(path, TimeSpan.of(2_500, 4_500), out)
    assert cut.copied == copied
    assert cut.span.end_ms == 4_500
    assert (2_500 - cut.span.start_ms) in (range(1_001) if copied else range(1))
    whole, part = probe(path), probe(out)
    assert abs(part.duration_ms - cut.span.length_ms) < 150
    assert (part.width, part.height) == (whole.width & ~1, whole.height & ~1)
    shown, rate = colours(out), whole.frame_rate
    assert abs(len(shown) - cut.span.length_ms / 1000 * rate) <= 3
    all_of_it, lead = colours(path), max(0, changes.get("video_start_ms", 0) - 500)
    first = round((cut.span.start_ms - lead) / 1000 * rate)
    expected = all_of_it[first : first + len(shown)]
    assert sum(a == b for a, b in zip(shown, expected, strict=False)) >= len(shown) - 2
    assert abs(sound_ms(out) - cut.span.length_ms) < 150


def test_a_file_with_sound_alone_is_cut(tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.m4a", seconds=4.0, codec=None, format="mp4")
    assert cut_file(path, TimeSpan.of(1_000, 2_000), tmp_path / "cut.mp4").copied
    assert abs(sound_ms(tmp_path / "cut.mp4") - 1_000) < 60


def test_a_span_after_the_end_is_cut_short_or_refused(tmp_path: Path) -> None:
    path, out = make_video(tmp_path / "whole.mp4", seconds=3.0), tmp_path / "cut.mp4"
    assert cut_file(path, TimeSpan.of(2_000, 90_000), out).span.end_ms == probe(path).duration_ms
    with pytest.raises(InputError, match=r"01:30 is after 00:03, the end of the video"):
        cut_file(path, TimeSpan.of(90_000, 91_000), out)


def stored(store: Store, path: Path) -> str:
    """Add a file to the library, not watched as yet; return its id."""
    info, ident = probe(path), video_id(path)
    video = Video(
        id=ident,
        title=path.stem,
        path=str(path),
        duration_ms=info.duration_ms,
        width=info.width,
        height=info.height,
        has_video=info.has_video,
        has_audio=info.has_audio,
        profile="local",
    )
    with store.begin() as session:
        add_video(session, video, clips_of(info.duration_ms, WatchSettings()), {})
    return ident


def test_the_command_cuts_a_moment_and_leaves_no_half_file(
    store: Store, home: Home, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    path, out = make_video(tmp_path / "whole.mp4", seconds=3.0), tmp_path / "cut.mp4"
    ident = stored(store, path)

    def clip(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["clip", *arguments, "--out", str(out)])

    done = clip("whole", "0:01", "0:02")
    assert (done.exit_code, done.stdout.startswith(f"{out}: 0:01-0:02, ")) == (0, True)
    made = out.read_bytes()
    late = clip(ident, "1:00", "2:00")
    assert (late.exit_code, "the end of the video" in late.stderr) == (2, True)
    path.write_bytes(path.read_bytes() + b"changed")
    changed = clip(ident, "0:01", "0:02")
    assert (changed.exit_code, "has changed since it was watched" in changed.stderr) == (2, True)
    assert out.read_bytes() == made
    assert {one.name for one in tmp_path.iterdir() if one.is_file()} == {"whole.mp4", "cut.mp4"}
