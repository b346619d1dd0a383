"""Ingestion beside real time: how long watching a video takes, stage by stage.

    python -m benchmarks.ingest [VIDEO ...] [--heights 720 1080] [--seconds 60] [--profile local]
    python -m benchmarks.ingest demo/v2d_test.mp4 --heights 720 --seconds 120 --minutes 30

Each video is re-encoded to H.264 at 720p and 1080p, keeps its own sound and frame rate, and with
``--minutes`` is repeated for so long without encoding it anew. It is
watched as ``homer ingest --direct`` does it: every stage on, the profile's models, an embedded
Postgres of its own that is thrown away afterwards. Models are loaded beforehand, on five seconds
of the first video; how long that took is printed too, since each ingestion pays it once.

A stage's seconds are its own, without those of stages within it. What is heard is recognised beside
what is seen, and clips are remembered while the next one is perceived, so the stages add up to more
than the whole.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import av
from sqlalchemy import text

from benchmarks.keyframes import DEFAULT, SHARED, encode
from benchmarks.lines import RUNS, Line, Taken, costs, faster
from benchmarks.stream import looped
from domain.media import Video
from domain.settings import WorkSettings
from flows.executors import direct_executor
from flows.ingest_video import VideoIngestion, open_video
from flows.perception_workers import WorkerPool
from flows.watching import watch
from flows.workspace import Workspace
from models.profile import load_profile
from models.toolbox import Toolbox
from perception.decode import RawClip, read_clips
from perception.source import probe
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home

HEIGHTS = (720, 1080)
DEMO = Path(__file__).parent.parent / "demo" / "v2d_test.mp4"
SECONDS, BAR = 30.0, 3.0
CORES = os.cpu_count() or 1
TOOLS = {
    "activity": "voice activity",
    "speech": "speech recognition",
    "speaker": "voices",
    "faces": "faces",
    "screen": "screen text",
    "objects": "objects",
    "sounds": "sounds",
    "text": "text vectors",
}
EVENTS = "build_windows"
STEPS = {"perceive": "keyframes, grouping", "remember": "memories, store", EVENTS: "events"}
"""Methods of an ingestion, and what their stage is called."""
WITHIN = {
    STEPS["perceive"]: [stage for tool, stage in TOOLS.items() if tool != "text"],
    STEPS["remember"]: [TOOLS["text"]],
    STEPS[EVENTS]: [TOOLS["text"]],
}
"""The stages that are within others."""
DECODING = "decoding, eq. 1 and 2, sound"
MOST_KEYFRAMES = 360
PARTS = ("memories", "keyframes", "utterances", "screen_texts", "objects", "sightings", "exemplars")
_BYTES = (
    ("number of keyframes", "SELECT count(*) FROM keyframes"),
    *((part, f"SELECT sum(pg_column_size(one.*)) FROM {part} AS one") for part in PARTS),  # noqa: S608
)
STAGES = (DECODING, STEPS["perceive"], *TOOLS.values(), STEPS["remember"], STEPS[EVENTS])


class Stages:
    """Seconds in which somebody was at a stage; those of a stage within another for that alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: Counter[str] = Counter()
        self._since = time.perf_counter()
        self._lock = threading.Lock()

    @contextmanager
    def on(self, stage: str) -> Iterator[None]:
        """Count the time within for ``stage``; several threads may be at it."""
        self._pass(stage, 1)
        try:
            yield
        finally:
            self._pass(stage, -1)

    def _pass(self, stage: str, by: int) -> None:
        with self._lock:
            now = time.perf_counter()
            for one in self._at_work():
                self.seconds[one] += now - self._since
            self._since = now
            self._open[stage] += by

    def _at_work(self) -> list[str]:
        at = {stage for stage, count in self._open.items() if count}
        return [stage for stage in at if not at.intersection(WITHIN.get(stage, ()))]

    def timed(self, stage: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """``work``, whose time counts for ``stage``."""

        @wraps(work)
        def run(*args: Any, **more: Any) -> Any:
            with self.on(stage):
                return work(*args, **more)

        return run

    def each(self, *args: Any) -> Iterator[RawClip]:
        """``read_clips``, with the time until each clip is there counted as decoding."""
        clips = read_clips(*args)
        while True:
            with self.on(DECODING):
                raw = next(clips, None)
            if raw is None:
                return
            yield raw


class TimedTools:
    """A toolbox whose models' time is counted."""

    def __init__(self, toolbox: Toolbox, stages: Stages) -> None:
        self._toolbox, self._stages = toolbox, stages

    def __getattr__(self, name: str) -> Any:
        tool = getattr(self._toolbox, name)
        return TimedTool(tool, self._stages, TOOLS[name]) if name in TOOLS else tool


class TimedTool:
    """A model each call of which is counted."""

    def __init__(self, tool: object, stages: Stages, stage: str) -> None:
        self._tool, self._stages, self._stage = tool, stages, stage

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._tool, name)
        return self._stages.timed(self._stage, value) if callable(value) else value


class Silent:
    """Ignore progress; a clip that fails ends the benchmark."""

    def opened(self, video: Video, clips: int, done: int) -> None:
        """Nothing to say."""

    def remembered(self, video: Video, clip: int) -> None:
        """Nothing to say."""

    def failed(self, _video: Video, _clip: int, error: Exception) -> None:
        """Raise the error: figures without this clip would be wrong."""
        raise error

    def said(self, text: str) -> None:
        """Nothing to say."""


@dataclass(frozen=True)
class Took:
    """What one ingestion took, in seconds; ``cpu`` is of the process, all threads together."""

    wall: float
    cpu: float
    stages: Mapping[str, float]


def ingest(workspace: Workspace, path: Path) -> Took:
    """Watch ``path`` as the command does, without Prefect."""
    stages = Stages()
    timed = Workspace(
        workspace.home,
        workspace.store,
        workspace.profile,
        cast("Toolbox", TimedTools(workspace.toolbox, stages)),
    )
    with patch("flows.ingest_video.read_clips", stages.each):
        wall, cpu = time.perf_counter(), time.process_time()
        with open_video(timed, path) as work, direct_executor() as executor:
            _count(work, stages)
            watch(work, executor, WorkerPool(WorkSettings()), Silent())
        took = time.perf_counter() - wall, time.process_time() - cpu
    return Took(*took, stages.seconds)


def _count(work: VideoIngestion, stages: Stages) -> None:
    for step, stage in STEPS.items():
        setattr(work, step, stages.timed(stage, getattr(work, step)))


def lines() -> Iterator[Line]:
    """Yield a clip of the demo at 720p, speech and all, beside its own length; then each stage."""
    with tempfile.TemporaryDirectory() as folder:
        video = with_sound(DEMO, Path(folder) / "demo.mkv", HEIGHTS[0], SECONDS)
        toolbox = Toolbox(load_profile("local"), Home.default().weights)
        runs = [_fresh(Path(folder) / str(run), toolbox, video) for run in range(RUNS + 1)]
        length = Taken((probe(video).duration_ms / 1000,), "s")
        hours, size = length.median / 3600, video.stat().st_size
    took = [took for took, _ in runs[1:]]
    whole = Taken(tuple(one.wall for one in took), "s")
    yield faster("watching 720p, speech and all", whole, length, "its own length", BAR)
    for stage in STAGES:
        mine = Taken(tuple(one.stages[stage] for one in took), "s")
        yield costs(f"watching 720p, {stage}", mine, length, "its own length")
    yield from _left(runs[-1][1], hours, size)


def _fresh(folder: Path, toolbox: Toolbox, video: Path) -> tuple[Took, Counter[str]]:
    """What watching takes into a database of its own, with models that may be loaded already.

    And what it leaves: bytes by part, and the number of keyframes.
    """
    with _workspace(folder, toolbox) as workspace:
        return ingest(workspace, video), _kept(workspace)


def _kept(workspace: Workspace) -> Counter[str]:
    with workspace.store.begin() as session:
        found = Counter({table: int(session.scalar(text(query)) or 0) for table, query in _BYTES})
    files = (one for one in workspace.home.blobs.rglob("*") if one.is_file())
    return found + Counter(images=sum(one.stat().st_size for one in files))


def _left(kept: Counter[str], hours: float, size: int) -> Iterator[Line]:
    """Yield what an hour leaves, scaled from the clip: keyframes, and megabytes by part."""
    count = Taken((kept.pop("number of keyframes", 0) / hours,), "")
    most = Taken((float(MOST_KEYFRAMES),), "")
    yield costs("keyframes of a video hour", count, most, "the most there may be", 1.0)
    whole = Taken((size / hours / 1e6,), "MB")
    for part, held in kept.most_common():
        mine = Taken((held / hours / 1e6,), "MB")
        yield costs(f"kept of a video hour, {part}", mine, whole, "the video itself")


def main() -> None:
    """Print a table a video and height."""
    arguments = _arguments()
    toolbox = Toolbox(load_profile(arguments.profile), Home.default().weights)
    with tempfile.TemporaryDirectory() as folder, _workspace(Path(folder), toolbox) as workspace:
        first = with_sound(arguments.videos[0], Path(folder) / "first.mkv", 360, 5.0)
        print(
            f"models loaded and used for the first time: {ingest(workspace, first).wall:.1f} s",
            flush=True,
        )
        for source in arguments.videos:
            for height in arguments.heights:
                name = f"{source.stem}-{height}p.mkv"
                video = with_sound(source, Path(folder) / name, height, arguments.seconds)
                video = repeated(video, 60 * arguments.minutes)
                _report(source, height, video, ingest(workspace, video))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    shared = [SHARED / name for name in DEFAULT if (SHARED / name).exists()]
    parser.add_argument("videos", nargs="*", type=Path, default=shared)
    parser.add_argument("--heights", type=int, nargs="+", default=HEIGHTS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--minutes", type=float, default=0.0, help="repeat each for so long")
    parser.add_argument("--profile", default="local")
    arguments = parser.parse_args()
    if not arguments.videos:
        parser.error("no shared media beside the repository: name a video")
    return arguments


@contextmanager
def _workspace(folder: Path, toolbox: Toolbox) -> Iterator[Workspace]:
    """Yield the user's models with a store of its own."""
    home = Home(folder / "home").make()
    server = EmbeddedPostgres(home)
    try:
        with open_store(home) as store:
            yield Workspace(home, store, toolbox.profile, toolbox)
    finally:
        server.stop()


def _report(source: Path, height: int, video: Path, took: Took) -> None:
    info = probe(video)
    length = info.duration_ms / 1000
    print(
        f"\n{source.name}, {height}p at {info.frame_rate:.0f} frames a second, {length:.0f} s: "
        f"watched in {took.wall:.1f} s ({took.cpu:.1f} s of CPU), "
        f"{length / took.wall:.1f}x real time; by its CPU alone on {CORES} idle cores "
        f"{CORES * length / took.cpu:.1f}x"
    )
    for stage in STAGES:
        seconds = took.stages[stage]
        print(f"    {stage:30s} {seconds:6.2f} s  {seconds / length:6.1%} of real time", flush=True)


def with_sound(source: Path, target: Path, height: int, seconds: float) -> Path:
    """The first seconds of ``source`` in H.264 at ``height`` rows, with its sound as it is."""
    pictures = encode(source, target.with_suffix(".silent.mp4"), "H.264", height, seconds)
    with (
        av.open(str(pictures)) as seen,
        av.open(str(source)) as heard,
        av.open(str(target), "w") as out,
    ):
        packets = [*_packets(seen, out, "video", seconds), *_packets(heard, out, "audio", seconds)]
        for _, packet in sorted(packets, key=lambda timed: timed[0]):
            out.mux(packet)
    pictures.unlink()
    return target


def repeated(video: Path, seconds: float) -> Path:
    """The same packets over and over until it is so long; the video itself where it is."""
    if probe(video).duration_ms >= 1000 * seconds:
        return video
    target = video.with_suffix(".ts")
    with target.open("wb") as file:
        looped(video, file, seconds)
    return target


def _packets(
    source: Any, out: Any, kind: str, seconds: float
) -> list[tuple[float, av.Packet[Any]]]:
    stream = source.streams.best(kind)
    if stream is None:
        return []
    to, found = out.add_stream_from_template(stream), []
    for packet in source.demux(stream):
        if packet.dts is not None and packet.dts * packet.time_base < seconds:
            found.append((float(packet.dts * packet.time_base), packet))
            packet.stream = to
    return found


if __name__ == "__main__":
    main()
