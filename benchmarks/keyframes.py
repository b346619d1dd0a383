"""Keyframe selection beside decoding alone and a plain OpenCV loop: how fast, and how well chosen?

    python -m benchmarks.keyframes [VIDEO ...] [--runs 5] [--seconds 60]

A minute of each video is re-encoded to H.264, and of one of them to HEVC, at 360p, 720p and 1080p.
Three ways are then timed on each:

* plain: cv2.VideoCapture reads every frame at full resolution; every fifth one is scored.
* reference: the same arithmetic on the frames that Homer samples (by time, 5 a second). It says
  which shots and keyframes are right.
* Homer: ``read_clips`` and the choice of keyframes, decode included; sound left out in all three.

Prints medians and ratios, and of the choice:

* on how many clips the shots are those of the reference (within one sample, 200 ms);
* on how many as many keyframes are chosen, of as many shots, and second ones of a shot far enough
  from each other;
* the mean quality (eq. 2, on the exact pictures) of the worst clip's keyframes, in parts of that of
  the reference's choice.

Decoding alone is that of the pictures that must be decoded for the sampled ones to be exact, by the
same decoder and threads. It is compared by seconds of CPU, which say more where other work runs
beside, run by run. ``python -m benchmarks shots`` compares with PySceneDetect.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

import av
import cv2
import numpy as np

from benchmarks.lines import RUNS, Line, Taken
from domain.settings import WatchSettings
from perception.decode import read_clips
from perception.frames import SampleGrid
from perception.keyframes import Candidate, choose_keyframes, keyframe_candidates, shot_positions
from perception.picture_stream import read_pictures
from perception.quality import layout_similarity, number_shots
from perception.source import SourceInfo, probe

HEIGHTS = (360, 720, 1080)
SHARED = Path(__file__).resolve().parents[1] / ".." / "shared" / "media"
DEFAULT = ("of_meeting.mp4", "jackson_hole_speech.mp4", "agent327_360p.mp4")
IN_HEVC = ("agent327_360p.mp4",)
CODECS = {"H.264": ("libx264", "fast"), "HEVC": ("libx265", "ultrafast")}
"""Encoders and how carefully they work: decoding is what is timed."""
QUIET: dict[str, object] = {"x265-params": "log-level=none"}
SETTINGS = WatchSettings()
STEP_MS = int(1000 / SETTINGS.sample_fps)

EVERY = 5
OVER_DECODING = 1.15
QUALITY = 0.98
"""Mean quality of every clip's keyframes, at least, in parts of that of the reference's choice."""


@dataclass(frozen=True)
class Picks:
    """What was found in one clip: first frame of each shot, and the keyframes, in milliseconds.

    ``qualities`` is the quality of every candidate by time, where it was measured exactly.
    """

    shots: tuple[int, ...]
    keyframes: tuple[int, ...]
    qualities: Mapping[int, float] = field(default_factory=dict)

    def shots_of_keyframes(self) -> list[int]:
        """Return the shot of each keyframe, counted from 0."""
        return [bisect_right(self.shots, time) for time in self.keyframes]

    def mean_quality(self, times: Sequence[int]) -> float:
        """Return the mean quality of the candidates nearest to these times."""
        nearest = (min(self.qualities, key=lambda ms: abs(ms - time)) for time in times)
        return statistics.fmean(self.qualities[ms] for ms in nearest)


@dataclass(frozen=True)
class Row:
    """One video at one height: milliseconds and CPU of each way, and what was chosen.

    ``agreed`` of ``clips`` have the reference's shots, and ``spread`` of them keyframes in number
    and at distances as the reference's; ``quality`` is that of the worst clip's keyframes, in parts
    of the reference's.
    """

    name: str
    codec: str
    height: int
    plain: Ways
    homer: Ways
    decoding: Ways
    agreed: int
    spread: int
    clips: int
    quality: float

    @property
    def over_decoding(self) -> float:
        """Return how many times the CPU of decoding alone was taken: the median of all runs."""
        pairs = zip(self.homer.cpu.values, self.decoding.cpu.values, strict=True)
        return statistics.median(ours / least for ours, least in pairs)


@dataclass(frozen=True)
class Ways:
    """What one way took, by the clock and of processors."""

    clock: Taken
    cpu: Taken


def lines(seconds: float = 60.0) -> Iterator[Line]:
    """Yield a codec and height beside the plain loop and beside decoding.

    Beside the loop stands the median of the videos, beside decoding the worst of them.
    """
    for codec, names in (("H.264", DEFAULT), ("HEVC", IN_HEVC)):
        rows = list(_rows([SHARED / name for name in names], codec, HEIGHTS, seconds, RUNS))
        for height in HEIGHTS:
            yield from _lines_of(codec, height, [row for row in rows if row.height == height])


def _lines_of(codec: str, height: int, rows: Sequence[Row]) -> Iterator[Line]:
    agreed, spread, clips = _sums(rows)
    quality = min(row.quality for row in rows)
    what = (
        f"keyframes of {codec} at {height}p, shots the same on {agreed} of {clips} clips, "
        f"count and gaps on {spread}, quality {quality:.3f}"
    )
    bar = OVER_DECODING if agreed == spread == clips and quality >= QUALITY else 0.0
    ours = Taken(tuple(row.homer.clock.median for row in rows))
    loop = Taken(tuple(row.plain.clock.median for row in rows))
    ratios = [row.plain.clock.median / row.homer.clock.median for row in rows]
    yield Line(what, ours, loop, "plain OpenCV loop", statistics.median(ratios), None)
    ours = Taken(tuple(row.homer.cpu.median for row in rows))
    least = Taken(tuple(row.decoding.cpu.median for row in rows))
    worst = max(row.over_decoding for row in rows)
    yield Line(f"CPU of {what}", ours, least, "decoding alone", worst, bar, more=False)


def _sums(rows: Sequence[Row]) -> tuple[int, int, int]:
    """Return the clips of the same shots, those of keyframes spread alike, and all clips."""
    return (
        sum(row.agreed for row in rows),
        sum(row.spread for row in rows),
        sum(row.clips for row in rows),
    )


def main() -> None:
    """Print one line a video and height, and the medians over all."""
    arguments = _arguments()
    output = arguments.codec, arguments.heights, arguments.seconds, arguments.runs
    rows = list(_rows(arguments.videos, *output))
    for height in arguments.heights:
        worst = max(row.over_decoding for row in rows if row.height == height)
        print(f"{height}p: at most {worst:.2f}x the CPU of decoding alone")
        ratios = [r.plain.clock.median / r.homer.clock.median for r in rows if r.height == height]
        faster = statistics.median(ratios)
        print(f"{height}p: {faster:.1f}x as fast as the plain loop, the median of the videos")
    agreed, spread, clips = _sums(rows)
    print(f"same shots as the full-resolution reference: {agreed} of {clips} clips")
    print(f"as many keyframes, of as many shots and as far apart: {spread} of {clips} clips")
    print(f"quality of the worst clip's keyframes: {min(row.quality for row in rows):.3f}")


def _rows(
    videos: Sequence[Path], codec: str, heights: Sequence[int], seconds: float, runs: int
) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for source in videos:
            for height in heights:
                video = encode(source, Path(folder) / "video.mp4", codec, height, seconds)
                row = _row(source.name, video, codec, height, runs)
                print(_described(row, probe(video).duration_ms / 1000), flush=True)
                yield row


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    shared = [SHARED / name for name in DEFAULT if (SHARED / name).exists()]
    parser.add_argument("videos", nargs="*", type=Path, default=shared)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--codec", choices=CODECS, default="H.264")
    parser.add_argument("--heights", type=int, nargs="+", default=HEIGHTS)
    arguments = parser.parse_args()
    if not arguments.videos:
        parser.error("no shared media beside the repository: name a video")
    return arguments


def _row(name: str, video: Path, codec: str, height: int, runs: int) -> Row:
    info = replace(probe(video), has_audio=False)
    ways: list[Callable[[Path], object]] = [plain, partial(homer, info=info), decoding(info)]
    taken: list[list[tuple[float, float]]] = [[] for _ in ways]
    # In turns, so that whatever else the machine does weighs on all.
    for _ in range(runs):
        for way, times in zip(ways, taken, strict=True):
            times.append(_timed(partial(way, video)))
    pairs = list(zip(homer(video, info), reference(video, info), strict=True))
    agreed = sum(_near(a.shots, b.shots) for a, b in pairs)
    spread = sum(_spread_alike(a, b) for a, b in pairs)
    quality = min(b.mean_quality(a.keyframes) / b.mean_quality(b.keyframes) for a, b in pairs)
    loop, ours, least = map(_ways, taken)
    return Row(name, codec, height, loop, ours, least, agreed, spread, len(pairs), quality)


def _described(row: Row, seconds: float) -> str:
    plain, homer, least = row.plain, row.homer, row.decoding
    return (
        f"{row.name:26s} {row.codec} {row.height:4d}p {seconds:3.0f} s: "
        f"CPU {homer.cpu.median:.0f} ms, decoding alone {least.cpu.median:.0f} ms, "
        f"{row.over_decoding:.2f}x; same shots on {row.agreed} of {row.clips} clips, "
        f"count and gaps on {row.spread}, quality {row.quality:.3f}; "
        f"plain loop {plain.cpu.median / homer.cpu.median:.1f}x the CPU, "
        f"{plain.clock.median / homer.clock.median:.1f}x the time"
    )


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return milliseconds by the clock, and of processors, of all threads."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return 1000 * (time.perf_counter() - start), 1000 * (time.process_time() - cpu)


def _ways(taken: Sequence[tuple[float, float]]) -> Ways:
    clock, cpu = zip(*taken, strict=True)
    return Ways(Taken(clock), Taken(cpu))


def homer(video: Path, info: SourceInfo) -> list[Picks]:
    """Homer's own picks of each clip."""
    clips = read_clips(video, info, SETTINGS)
    return [_picks(keyframe_candidates(raw.frames, SETTINGS)) for raw in clips]


def decoding(info: SourceInfo) -> Callable[[Path], None]:
    """Homer's decoding alone: each picture is let go at once."""
    return lambda video: deque(read_pictures(video, info, SETTINGS, 0), maxlen=0).clear()


def plain(video: Path) -> list[Picks]:
    """Return the plain loop: decode everything at full resolution, score every fifth frame."""
    capture = cv2.VideoCapture(str(video))
    fps = capture.get(cv2.CAP_PROP_FPS)
    tally = Tally()
    index = 0
    while True:
        more, bgr = capture.read()
        if not more:
            return tally.picks()
        if index % EVERY == 0:
            tally.add(round(index * 1000 / fps), bgr)
        index += 1


def reference(video: Path, info: SourceInfo) -> list[Picks]:
    """The plain loop's arithmetic at full resolution on the frames shown 5 times a second."""
    tally = Tally()
    for ms, frame in _shown(video, info):
        tally.add(ms, frame.to_ndarray(format="bgr24"))
    return tally.picks()


def _shown(video: Path, info: SourceInfo) -> Iterator[tuple[int, av.VideoFrame]]:
    """Each frame that some sample instant shows, once a clip, with everything decoded."""
    grid = SampleGrid.of(SETTINGS)
    with av.open(str(video)) as container:
        base = container.streams.video[0].time_base
        assert base is not None
        clock = info.parts[0].clock(base)
        timed = (
            (clock.ms(frame.pts), frame)
            for frame in container.decode(video=0)
            if frame.pts is not None
        )
        for (ms, frame), (until, _) in pairwise(chain(timed, [(info.duration_ms, None)])):
            if frame is not None:
                clips = {instant // SETTINGS.clip_ms for instant in grid.within(ms, until)}
                yield from ((max(ms, clip * SETTINGS.clip_ms), frame) for clip in sorted(clips))


Scored = tuple[int, float, float, float]
"""When a frame is shown, its change and likeness to the one before, and its quality."""


class Tally:
    """Scores frames as they come, by eq. 1 and 2 on the whole picture, clip by clip."""

    def __init__(self) -> None:
        self._clips: dict[int, list[Scored]] = {}
        self._before: np.ndarray | None = None

    def add(self, ms: int, bgr: np.ndarray) -> None:
        """Score one frame, H x W x 3 BGR."""
        grey = np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY), np.uint8)
        clip = self._clips.setdefault(ms // SETTINGS.clip_ms, [])
        change = alike = 0.0
        if clip and self._before is not None:
            change = float(np.mean(cv2.absdiff(self._before, grey)))
            alike = layout_similarity(self._before, grey)
        sharp = float(cv2.Laplacian(grey, cv2.CV_64F).var())
        hue = cv2.cvtColor(bgr, cv2.COLOR_BGR2HSV)
        counts = cv2.calcHist([hue], [0], None, [SETTINGS.hue_bins], [0, 180]).ravel()
        shares = counts[counts > 0] / counts.sum()
        entropy = float(-(shares * np.log2(shares)).sum())
        clip.append((ms, change, alike, sharp * (1 + SETTINGS.entropy_weight * entropy)))
        self._before = grey

    def picks(self) -> list[Picks]:
        """Shots and keyframes of every clip."""
        return [_choose(self._clips[clip]) for clip in sorted(self._clips)]


def _choose(scored: list[Scored]) -> Picks:
    changes, alike = [one[1] for one in scored], [one[2] for one in scored]
    shots = number_shots(changes, SETTINGS.shot_threshold, alike)
    places = shot_positions([ms for ms, *_ in scored], shots, 1000 / SETTINGS.sample_fps)
    rows = zip(scored, shots, places, strict=True)
    found = [Candidate(ms, shot, q, place) for (ms, *_, q), shot, place in rows]
    return replace(_picks(found), qualities={one.time_ms: one.quality for one in found})


def _picks(found: list[Candidate]) -> Picks:
    cuts = [b.time_ms for a, b in pairwise(found) if b.shot != a.shot]
    chosen = choose_keyframes(found, SETTINGS.keyframes, SETTINGS.keyframe_gap_ms)
    return Picks(tuple(cuts), tuple(found[i].time_ms for i in chosen))


def _near(ours: tuple[int, ...], theirs: tuple[int, ...]) -> bool:
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(abs(a - b) <= STEP_MS for a, b in pairs)


def _spread_alike(ours: Picks, theirs: Picks) -> bool:
    """Tell whether keyframes are as many, of as many shots, and far apart within one."""
    shots, right = ours.shots_of_keyframes(), theirs.shots_of_keyframes()
    pairs = pairwise(zip(ours.keyframes, shots, strict=True))
    gaps = [after - time for (time, shot), (after, other) in pairs if shot == other]
    far = min(gaps, default=SETTINGS.keyframe_gap_ms) >= SETTINGS.keyframe_gap_ms
    return far and len(shots) == len(right) and len({*shots}) == len({*right})


def encode(source: Path, target: Path, codec: str, height: int, seconds: float) -> Path:
    """Return the first seconds of ``source`` at ``height`` rows, as its frame rate is."""
    encoder, preset = CODECS[codec]
    with av.open(str(source)) as read, av.open(str(target), "w") as write:
        stream = read.streams.video[0]
        stream.thread_type = "AUTO"
        rate = Fraction(stream.average_rate or 25).limit_denominator(1001)
        out = write.add_stream(encoder, rate=rate)
        assert isinstance(out, av.VideoStream)
        out.width, out.height = round(stream.width * height / stream.height / 2) * 2, height
        out.pix_fmt, out.options = "yuv420p", {"preset": preset, "crf": "23", **QUIET}
        for index, frame in enumerate(read.decode(stream)):
            if index >= seconds * rate:
                break
            picture = frame.reformat(out.width, out.height, "yuv420p", interpolation="BICUBIC")
            picture.pts, picture.time_base = index, 1 / rate
            picture.pict_type = av.video.frame.PictureType.NONE
            write.mux(out.encode(picture))
        write.mux(out.encode(None))
    return target


if __name__ == "__main__":
    main()
