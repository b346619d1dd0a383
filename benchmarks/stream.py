"""A live stream for hours: does memory stay flat, do files stay closed, does the lag stay bounded?

    python -m benchmarks.stream [--hours 8] [--video FILE] [--level 5] [--json FILE]

The packets of a real video, over and over without encoding anew, come through a FIFO as one
transport stream; its writer goes away and comes back seven times. Homer follows it as
``homer watch --direct`` does, into an embedded Postgres of its own that is thrown away afterwards.

Time is the stream's own: it comes as fast as it is watched, so hours of stream take minutes. On are
reading, decoding, sampling, sound, shots and keyframes with their images, clip memories and event
patches by the local profile, and the store. At the policy's level 5, the default here, off are
speech, voices, faces, screen text and things; one sample a second is looked at, and pictures that
no other needs are not decoded. ``--level 0`` turns all of it on, and takes hours.

The figures are this process's: the resident set without the writer and Postgres, open files,
threads. The lag is of real seconds, from when the last of a clip had come until it was in memory.
The bars: in the last tenth the memory is within 10 % of that after the first tenth (but not before
the second patch, when all models are loaded), and open files are within one; no lag is longer than
that of the clips which may wait, each as slow as the slowest. The exit code is 1 where one is
missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import count, pairwise
from pathlib import Path
from threading import Event
from typing import Any

import av
import psutil

from benchmarks.hardware import described
from domain.media import LEVELS, StreamSettings, Video
from flows.live_stream import StreamIngestion, open_stream, watch_stream
from flows.workspace import Workspace
from library.memory import load_stream_details
from models.profile import load_profile
from models.toolbox import Toolbox
from perception.live import live_source
from perception.live_clips import DegradationPolicy
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home

VIDEO = Path(__file__).parents[1] / "demo" / "v2d_test.mp4"
HOUR_S = 3600
PARTS = 8
"""Times that the writer comes: the stream breaks off between them."""
WAIT = StreamSettings().waiting + 2
"""Clips that a clip may wait for, itself included: those that wait, and the one in hand."""
ROWS = 20
"""Rows of the table that is printed."""
FLAT = 1.10
LOADED = 20
"""Clips after which every model is loaded: the second patch."""


@dataclass(frozen=True)
class Look:
    """How the process is after a clip: MB, counts, seconds."""

    clip: int
    wall_s: float
    rss_mb: float
    files: int
    threads: int


@dataclass
class Watcher:
    """A listener that looks at its own process after each clip."""

    looks: list[Look] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    every: int = 1

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Says nothing."""

    def remembered(self, video: Video, clip: int) -> None:
        """Looks."""
        del video
        me = psutil.Process()
        rss, files = me.memory_info().rss / 2**20, me.num_fds()
        wall = time.monotonic() - self.began
        self.looks.append(Look(clip, wall, rss, files, me.num_threads()))
        if clip % self.every == 0:
            print(output(self.looks[-1]), flush=True)

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """Return a clip that fails fails the benchmark."""
        raise RuntimeError(f"clip {clip} of {video.title}: {error}") from error

    def said(self, text: str) -> None:
        """Breaks are meant."""


def main() -> int:
    """Follow a stream, print how the process does, and say whether the bars are reached."""
    arguments = _arguments()
    if arguments.feed is not None:
        feed(arguments.video, arguments.feed, arguments.hours)
        return 0
    print(json.dumps(described()))
    print(f"{arguments.hours:g} h of {arguments.video.name}, {_on(arguments.level)}")
    looks, lags = followed(arguments.video, arguments.hours, arguments.level)
    verdicts = list(bars(looks, lags))
    for line, reached in verdicts:
        print(f"{line}: {'reached' if reached else 'MISSED'}")
    if arguments.json is not None:
        rows = [asdict(look) for look in looks]
        arguments.json.write_text(json.dumps({"looks": rows, "lags_s": lags}), encoding="utf-8")
    return int(not all(reached for _, reached in verdicts))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream", description="For hours.")
    parser.add_argument("--hours", type=float, default=8.0, metavar="H", help="hours of stream")
    parser.add_argument("--video", type=Path, default=VIDEO, metavar="FILE", help="what is looped")
    parser.add_argument("--level", type=int, default=len(LEVELS) - 1, help="of the policy, 0 to 5")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all looks there too")
    parser.add_argument("--feed", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _on(level: int) -> str:
    off = ", ".join(LEVELS[level].without) or "nothing"
    return f"level {level}: {LEVELS[level].share:.0%} of the samples, off: {off}"


def followed(video: Path, hours: float, level: int) -> tuple[list[Look], list[float]]:
    """Looks after each clip, and the lag of each in seconds."""
    clips = hours * HOUR_S / 30
    watcher = Watcher(every=max(1, round(clips / ROWS)))
    with tempfile.TemporaryDirectory() as folder, _workspace(Path(folder) / "home") as workspace:
        pipe = Path(folder) / "stream"
        os.mkfifo(pipe)
        with _feeding(video, pipe, hours), _opened(workspace, pipe, level) as work:
            watch_stream(work, watcher, direct=True)
            work.stop.set()
        found = load_stream_details(workspace.store, work.video.id)
    assert found is not None
    print(f"{len(found.clips)} clips, {len(found.gaps)} gaps; {_counted(found.clips.values())}")
    return watcher.looks, [(one.lag_ms or 0) / 1000 for one in found.clips.values()]


def _counted(clips: Any) -> str:
    tallies = [one.tally for one in clips]
    came, sampled = sum(t.came for t in tallies), sum(t.sampled for t in tallies)
    return f"{came} frames came, {sampled} were looked at"


@contextmanager
def _workspace(folder: Path) -> Iterator[Workspace]:
    home, profile = Home(folder).make(), load_profile("local", None)
    try:
        with open_store(home) as store:
            yield Workspace(home, store, profile, Toolbox(profile, Home.default().weights))
    finally:
        EmbeddedPostgres(home).stop(fast=True)


@contextmanager
def _opened(workspace: Workspace, pipe: Path, level: int) -> Iterator[StreamIngestion]:
    source = live_source(str(pipe), "bench")
    with open_stream(
        workspace, source, stop=Event(), away_s=3, pace=DegradationPolicy(level)
    ) as work:
        yield work


@contextmanager
def _feeding(video: Path, pipe: Path, hours: float) -> Iterator[None]:
    """Yield the writer, a process of its own."""
    output = ["--feed", str(pipe), "--video", str(video), "--hours", str(hours)]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.stream", *output])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def feed(video: Path, pipe: Path, hours: float) -> None:
    """Writes so many hours of a video, in whole turns, into a pipe; leaves it between the parts."""
    for _ in range(PARTS):
        while not _written(video, pipe, hours * HOUR_S / PARTS):
            time.sleep(1)
        time.sleep(1)


def _written(video: Path, pipe: Path, seconds: float) -> bool:
    """Check whether a part was written; the reader may just be leaving the one before."""
    try:
        with pipe.open("wb") as file:
            looped(video, file, seconds)
    except BrokenPipeError:
        return False
    return True


def looped(video: Path, file: Any, seconds: float) -> None:
    """Return the packets of a video over and over, as one transport stream of so many seconds."""
    out = av.open(file, "w", format="mpegts")
    with av.open(str(video)) as first:
        to = {s.index: out.add_stream_from_template(s) for s in first.streams if _kept(s)}
    at = Fraction(0)
    for turn in count():
        with av.open(str(video)) as again:
            at = _shifted(again, out, to, at, turn)
        if at >= seconds:
            break
    out.close()


def _kept(stream: Any) -> bool:
    return stream.type in ("video", "audio")


def _shifted(again: Any, out: Any, to: dict[int, Any], at: Fraction, turn: int) -> Fraction:
    """Muxes one turn from ``at`` seconds on; returns when it ends."""
    end = at
    for packet in again.demux([s for s in again.streams if s.index in to]):
        if packet.dts is None or (packet.is_discard and turn):
            continue
        shift = int(at / packet.time_base)
        packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
        end = max(end, (packet.pts + (packet.duration or 0)) * packet.time_base)
        packet.stream = to[packet.stream.index]
        out.mux(packet)
    return end


def output(look: Look) -> str:
    """Return a row of the table."""
    hours = look.clip * 30 / HOUR_S
    return (
        f"{hours:6.2f} h of stream  {look.wall_s:7.1f} s  {look.rss_mb:7.1f} MB  "
        f"{look.files:3d} files  {look.threads:3d} threads"
    )


def bars(looks: Sequence[Look], lags: Sequence[float]) -> Iterator[tuple[str, bool]]:
    """Each bar with whether it is reached."""
    early = min(len(looks) - 1, max(len(looks) // 10, LOADED))
    warm, tenth = looks[early], looks[-max(1, len(looks) // 10) :]
    most = max(look.rss_mb for look in tenth)
    yield (
        f"resident memory {warm.rss_mb:.1f} MB early on, at most {most:.1f} MB in the last "
        f"tenth, bar {warm.rss_mb * FLAT:.1f} MB",
        most <= warm.rss_mb * FLAT,
    )
    files = max(look.files for look in tenth)
    yield f"open files {warm.files}, then {files}, bar {warm.files + 1}", files <= warm.files + 1
    slowest = max((b.wall_s - a.wall_s for a, b in pairwise(looks)), default=0.0)
    bound, longest = WAIT * slowest, max(lags, default=0.0)
    yield f"lag {longest:.1f} s at most, bar {bound:.1f} s", longest <= bound


if __name__ == "__main__":
    raise SystemExit(main())
