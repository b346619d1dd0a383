"""Small real media files, made with PyAV: every kind that Homer must take or refuse.

``make_video`` writes one file by its ``Recipe``. ``GOOD`` and ``BAD`` name the kinds; use them to
parametrize: ``GOOD["mkv"](folder)`` returns the path of the file it made.

The picture: each second of ``scene_s`` has its own flat colour, a fine checkerboard and a white
bar whose place tells the time. The sound: a tone of 440 Hz, or silence.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.video.stream import VideoStream
from numpy.typing import NDArray

COLOURS = ((200, 40, 40), (40, 180, 60), (50, 60, 210), (220, 200, 40), (180, 60, 200))
AUDIO_HZ = 48_000
_CLOCK = 90_000
_SPEED = {
    "libx264": {"preset": "ultrafast", "crf": "30"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "0"},
    "libvpx": {"deadline": "realtime", "cpu-used": "8"},
}


@dataclass(frozen=True)
class Recipe:
    """How a file is made. ``times_ms`` (frame times) overrides ``fps`` and ``seconds``.

    ``sides`` are the loudness of left and right; one below 0 is turned upside down.
    """

    seconds: float = 3.0
    fps: int = 25
    size: tuple[int, int] = (160, 120)
    codec: str | None = "libx264"
    pix_fmt: str = "yuv420p"
    scene_s: float = 1.0
    gop: int = 25
    b_frames: int = 0
    rotation: int = 0
    times_ms: tuple[int, ...] | None = None
    video_start_ms: int = 0
    audio: str | None = "aac"
    audio_start_ms: int = 0
    silent: bool = False
    sides: tuple[float, float] = (1.0, 1.0)
    format: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    seekable: bool = True
    encoder: tuple[tuple[str, str], ...] = ()


def make_video(path: Path, recipe: Recipe | None = None, **changes: Any) -> Path:
    """Write a real file to ``path`` and return it; what was made before is not encoded anew."""
    path.write_bytes(_file(replace(recipe or Recipe(), **changes), path.suffix))
    return path


@lru_cache(maxsize=100)
def _file(made: Recipe, suffix: str) -> bytes:
    with TemporaryDirectory() as folder:
        path, sink = Path(folder) / f"video{suffix}", _Pipe()
        where = str(path) if made.seekable else sink
        with (
            _usual_scheduling(),
            av.open(where, "w", format=made.format, options=dict(made.options)) as out,
        ):
            video = _video_stream(out, made) if made.codec else None
            audio = _audio_stream(out, made) if made.audio else None
            out.start_encoding()
            packets: list[tuple[float, Any]] = []
            if video is not None:
                packets += _pictures(video, made)
            if audio is not None:
                packets += _sound(audio, made)
            for _, packet in sorted(packets, key=lambda timed: timed[0]):
                out.mux(packet)
        return path.read_bytes() if made.seekable else sink.data.getvalue()


@contextmanager
def _usual_scheduling() -> Iterator[None]:
    """Take away what SVT-AV1 gives itself as root: real-time priority, for the whole process."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


class _Pipe:
    """A file that cannot seek, so that a muxer can go back to write neither length nor index."""

    def __init__(self) -> None:
        self.data = io.BytesIO()

    def write(self, data: bytes) -> int:
        return self.data.write(data)


def _video_stream(out: OutputContainer, made: Recipe) -> VideoStream:
    stream = out.add_stream(str(made.codec), rate=made.fps)
    assert isinstance(stream, VideoStream)
    stream.width, stream.height = made.size
    stream.pix_fmt = made.pix_fmt
    stream.codec_context.gop_size = made.gop
    stream.codec_context.max_b_frames = made.b_frames
    stream.codec_context.time_base = Fraction(1, _CLOCK)
    options: dict[str, object] = dict(_SPEED.get(str(made.codec), {}))
    if made.b_frames:
        options |= {"preset": "veryfast", "x264-params": f"bframes={made.b_frames}:scenecut=0"}
    stream.options = options | dict(made.encoder)
    if made.rotation:
        stream.set_display_rotation(made.rotation)
    return stream


def _audio_stream(out: OutputContainer, made: Recipe) -> AudioStream:
    stream = out.add_stream(str(made.audio), rate=AUDIO_HZ, layout="stereo")
    assert isinstance(stream, AudioStream)
    return stream


def frame_times(made: Recipe) -> list[int]:
    """Times in milliseconds at which the frames of ``made`` appear, from its video's start."""
    if made.times_ms is not None:
        return list(made.times_ms)
    return [round(i * 1000 / made.fps) for i in range(round(made.seconds * made.fps))]


def _pictures(stream: VideoStream, made: Recipe) -> list[tuple[float, Any]]:
    packets = []
    for ms in frame_times(made):
        frame = av.VideoFrame.from_ndarray(picture(ms / 1000, made), format="rgb24")
        frame = frame.reformat(format=made.pix_fmt)
        frame.pts = (ms + made.video_start_ms) * _CLOCK // 1000
        frame.time_base = Fraction(1, _CLOCK)
        packets += stream.encode(frame)
    packets += stream.encode(None)
    return [_timed(packet) for packet in packets]


def _timed(packet: Any) -> tuple[float, Any]:
    return float((packet.dts if packet.dts is not None else 0) * packet.time_base), packet


def picture(seconds: float, made: Recipe) -> NDArray[np.uint8]:
    """The frame at ``seconds``: colour of the scene, a fine pattern, a bar that moves."""
    width, height = made.size
    scene = int(seconds / made.scene_s)
    image = np.empty((height, width, 3), np.uint8)
    image[:] = COLOURS[scene % len(COLOURS)]
    image[::8, ::2] = np.minimum(image[::8, ::2].astype(int) + 30, 255)
    left = int(seconds / made.scene_s % 1 * (width - width // 8))
    image[height // 4 : height // 2, left : left + width // 8] = 255
    return image


def _sound(stream: AudioStream, made: Recipe) -> list[tuple[float, Any]]:
    length = made.seconds if made.times_ms is None else made.times_ms[-1] / 1000 + 0.2
    count = round(length * AUDIO_HZ)
    tone = 0.3 * np.sin(2 * np.pi * 440 * np.arange(count) / AUDIO_HZ)
    wave = np.zeros(count) if made.silent else tone
    samples = np.outer(wave * 32_767, made.sides).astype(np.int16).reshape(1, -1)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), "s16", "stereo")
    frame.sample_rate = AUDIO_HZ
    frame.pts = made.audio_start_ms * AUDIO_HZ // 1000
    frame.time_base = Fraction(1, AUDIO_HZ)
    return [_timed(packet) for packet in [*_encode(stream, frame), *stream.encode(None)]]


def _encode(stream: AudioStream, whole: av.AudioFrame) -> Sequence[Any]:
    context = stream.codec_context
    context.open(strict=False)
    resampler = av.AudioResampler(
        format=context.format, layout="stereo", rate=AUDIO_HZ, frame_size=context.frame_size or 1024
    )
    frames = [*resampler.resample(whole), *resampler.resample(None)]
    return [packet for frame in frames for packet in stream.encode(frame)]


def joined(path: Path, *parts: Path) -> Path:
    """Write files one after the other, as ``cat`` does."""
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def with_tracks(path: Path, *sounds: Path) -> Path:
    """Write an MKV with the pictures of the first file, and the sound of each as a track."""
    with av.open(str(path), "w") as out:
        sources = [av.open(str(one)) for one in sounds]
        taken = [sources[0].streams.video[0], *(one.streams.audio[0] for one in sources)]
        to = {id(one): out.add_stream_from_template(one) for one in taken}
        for number, stream in enumerate(taken[1:], 1):
            to[id(stream)].metadata["title"] = f"sound {number}"
        packets = [
            (float(packet.dts * packet.time_base), number, packet)
            for number, source in enumerate(sources)
            for packet in source.demux([one for one in source.streams if id(one) in to])
            if packet.dts is not None
        ]
        for _, _, packet in sorted(packets, key=lambda timed: timed[:2]):
            packet.stream = to[id(packet.stream)]
            out.mux(packet)
        for source in sources:
            source.close()
    return path


def reorient(path: Path, matrix: tuple[int, int, int, int]) -> Path:
    """Set the display matrix (a, b, c, d) of the first track of an MP4."""

    def packed(a: int, b: int, c: int, d: int) -> bytes:
        return struct.pack(">9i", a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)

    data = path.read_bytes()
    at = data.index(packed(1, 0, 0, 1), data.index(b"tkhd"))
    path.write_bytes(data[:at] + packed(*matrix) + data[at + 36 :])
    return path


Maker = Callable[[Path], Path]


def _made(name: str, **changes: Any) -> Maker:
    return lambda folder: make_video(folder / name, **changes)


_UNEVEN = (0, 40, 80, 500, 540, 1900, 1940, 2000, 2700, 2740, 2780, 3400)

GOOD: dict[str, Maker] = {
    "mp4": _made("plain.mp4"),
    "b-frames": _made("b_frames.mp4", b_frames=3),
    "mkv": _made("plain.mkv"),
    "mkv-without-length": _made("live.mkv", format="matroska", seekable=False),
    "webm-vp9": _made("vp9.webm", codec="libvpx-vp9", audio="libopus"),
    "webm-vp8": _made("vp8.webm", codec="libvpx", audio="libopus"),
    "4:4:4": _made("full_chroma.mp4", pix_fmt="yuv444p"),
    "10-fps": _made("ten.mp4", fps=10, gop=10),
    "variable-rate": _made("uneven.mp4", times_ms=_UNEVEN),
    "rotated": _made("rotated.mp4", rotation=90),
    "no-audio": _made("mute.mp4", audio=None),
    "audio-only": _made("sound.m4a", codec=None),
    "silence": _made("silence.mp4", silent=True),
    "late-audio": _made("late.mp4", audio_start_ms=1_000),
    "late-video": _made("late_picture.mkv", video_start_ms=700),
    "transport-stream": _made("stream.ts", video_start_ms=5_000, audio_start_ms=5_000),
    "fragmented": _made(
        "fragments.mp4", options=(("movflags", "frag_keyframe+empty_moov+default_base_moof"),)
    ),
}
"""Kinds that must be watched, each about three seconds long."""


def truncated(folder: Path) -> Path:
    """An MP4 whose end, with its index, is missing."""
    whole = make_video(folder / "whole.mp4")
    return _bytes(folder / "truncated.mp4", whole.read_bytes()[: whole.stat().st_size // 2])


def truncated_after_index(folder: Path) -> Path:
    """An MP4 with its index in front and half of its pictures missing."""
    whole = make_video(folder / "whole.mp4", options=(("movflags", "faststart"),))
    return _bytes(folder / "half.mp4", whole.read_bytes()[: whole.stat().st_size // 2])


def without_frames(folder: Path) -> Path:
    """An MP4 with a video stream that holds no frame."""
    return make_video(folder / "no_frames.mp4", times_ms=(), audio=None)


def _bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


BAD: dict[str, Maker] = {
    "empty": lambda folder: _bytes(folder / "empty.mp4", b""),
    "text": lambda folder: _bytes(folder / "notes.txt", b"Not a video at all.\n" * 200),
    "text-named-mp4": lambda folder: _bytes(folder / "notes.mp4", b"Not a video at all.\n" * 200),
    "truncated": truncated,
    "truncated-after-index": truncated_after_index,
    "zero-length": without_frames,
    "picture": lambda folder: _bytes(folder / "dot.ppm", b"P6 2 2 255\n" + bytes(12)),
    "playlist": lambda folder: _bytes(
        folder / "list.m3u8", b"#EXTM3U\n#EXTINF:3,\nplain.mp4\n#EXT-X-ENDLIST\n"
    ),
    "script": lambda folder: _bytes(folder / "list.mp4", b"ffconcat version 1.0\nfile plain.mp4\n"),
    "missing": lambda folder: folder / "missing.mp4",
}
"""Kinds that must be refused in one clear line, with nothing left behind."""


def damage(path: Path, start: float = 0.4, end: float = 0.5) -> Path:
    """Overwrite the stretch from ``start`` to ``end`` (fractions of the file) with noise."""
    data = bytearray(path.read_bytes())
    low, high = int(len(data) * start), int(len(data) * end)
    data[low:high] = np.random.default_rng(7).bytes(high - low)
    path.write_bytes(bytes(data))
    return path


def looped(source: Path, path: Path, times: int) -> Path:
    """The packets of ``source`` over and over, without encoding anew: a long video at no cost."""
    with av.open(str(path), "w") as out:
        with av.open(str(source)) as first:
            to = {s.index: out.add_stream_from_template(s) for s in first.streams}
        for turn in range(times):
            with av.open(str(source)) as again:
                _shifted(again, out, to, turn)
    return path


def beginning(source: Path, path: Path, seconds: float) -> Path:
    """The first seconds of ``source``, without encoding anew."""
    with av.open(str(source)) as whole, av.open(str(path), "w") as out:
        to = {s.index: out.add_stream_from_template(s) for s in whole.streams}
        for packet in whole.demux():
            time = packet.pts
            if packet.dts is not None and time is not None and time * packet.time_base < seconds:
                packet.stream = to[packet.stream.index]
                out.mux(packet)
    return path


def _shifted(again: Any, out: OutputContainer, to: dict[int, Any], turn: int) -> None:
    start = Fraction(turn * (again.duration + 1), 1_000_000)
    for packet in again.demux():
        if packet.dts is None or (packet.is_discard and turn):
            continue
        shift = int(start / packet.time_base)
        packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
        packet.stream = to[packet.stream.index]
        out.mux(packet)
