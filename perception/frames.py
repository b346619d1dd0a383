"""A sampled frame: its time and metrics, and its pixels on demand, upright, in plain colours."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise, product
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import av
import numpy as np
from av.sidedata.sidedata import Type
from av.video.reformatter import ColorTrc

from domain.time import TimeSpan

if TYPE_CHECKING:
    from domain.media import Clip
    from domain.settings import WatchSettings
    from models.ports import Image
    from perception.picture_stream import SampledPicture
    from perception.quality import FrameMeasurer

_HDR = (ColorTrc.SMPTE2084, ColorTrc.ARIB_STD_B67)
"""PQ and HLG: shown as they are stored, they are grey and dark."""
_MATRICES = {1: "bt709", 5: "bt470bg", 6: "smpte170m", 9: "bt2020nc", 10: "bt2020c"}
_here = threading.local()
"""This thread's graph that maps colours: to set one up takes seconds."""


class Upright(NamedTuple):
    """How a stored picture becomes upright: mirrored first, then turned counter-clockwise."""

    mirrored: bool = False
    quarters: int = 0

    @property
    def is_across(self) -> bool:
        """Whether width and height change places."""
        return self.quarters % 2 == 1

    def pixels(self, picture: av.VideoFrame) -> Image:
        """Return the upright pixels of a picture: H x W x 3, RGB, uint8."""
        rgb = picture.to_ndarray(format="rgb24", threads=1).astype(np.uint8, copy=False)
        turned = np.rot90(rgb[:, ::-1] if self.mirrored else rgb, self.quarters)
        return np.ascontiguousarray(turned)


AS_STORED = Upright()


def upright_of(picture: av.VideoFrame) -> Upright:
    """Return how a decoded picture becomes upright, by the display matrix of its stream."""
    side_data: Any = picture.side_data
    found = side_data.get(Type.DISPLAYMATRIX)
    if found is None:
        return AS_STORED
    a, b, _, c, d, *_ = struct.unpack("<9i", bytes(found))
    # It maps (x, y) to (a x + c y, b x + d y). What is nearest to it is taken.
    quarter = np.array([[0, 1], [-1, 0]])

    def likeness(how: Upright) -> float:
        mirror = np.diag([-1 if how.mirrored else 1, 1])
        matrix = np.linalg.matrix_power(quarter, how.quarters) @ mirror
        return float((matrix * [[a, c], [b, d]]).sum())

    return max((Upright._make(one) for one in product((False, True), range(4))), key=likeness)


@dataclass(frozen=True)
class FrameMetrics:
    """Metrics of a frame for eq. 1 and eq. 2.

    Attributes:
        change: Mean absolute grey difference to the previous sample, 0-255; 0 on a clip's first.
        sharpness: Variance of the Laplacian of luma.
        entropy: Entropy of the hue histogram, in bits.
        layout_similarity: Correlation of the two pictures at a small size, -1 to 1; 0 where the
            change is too small to be a cut.
    """

    change: float
    sharpness: float
    entropy: float
    layout_similarity: float = 0.0


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame shown at a sample instant. ``time_ms`` is when it first appeared, within its clip.

    The picture is held as it was decoded (at most ``frame_height`` high); ``image`` turns it
    upright and into RGB anew at each use, since few frames of a clip are ever looked at.
    """

    time_ms: int
    metrics: FrameMetrics
    picture: av.VideoFrame
    upright: Upright = AS_STORED

    @property
    def image(self) -> Image:
        """Return the pixels: H x W x 3, RGB, uint8, upright."""
        return self.upright.pixels(self.picture)


def is_hdr(picture: av.VideoFrame) -> bool:
    """Check whether a picture's brightness is stored by PQ or HLG."""
    return picture.color_trc in _HDR


def shrink(picture: av.VideoFrame, upright: Upright, height: int) -> av.VideoFrame:
    """Shrink a picture to at most ``height`` upright rows, in plain colours; or return it as is."""
    ratio = min(1.0, height / (picture.width if upright.is_across else picture.height))
    width, rows = (
        (max(2, round(picture.width * ratio)), max(2, round(picture.height * ratio)))
        if ratio < 1
        else (picture.width, picture.height)
    )
    if is_hdr(picture):
        return to_sdr(picture, width, rows)
    if ratio == 1:
        return picture
    return picture.reformat(width, rows, "yuv420p", interpolation="AREA", threads=1)


def to_sdr(picture: av.VideoFrame, width: int, height: int) -> av.VideoFrame:
    """Map the brightness and colours of an HDR picture to those of ordinary screens (BT.709)."""
    kind = (picture.width, picture.height, picture.format.name, picture.color_trc, width, height)
    known, graph = getattr(_here, "graph", (None, None))
    if graph is None or known != kind:
        graph = av.filter.Graph()
        matrix = _MATRICES.get(int(picture.colorspace), "bt2020nc")
        size = f"video_size={picture.width}x{picture.height}:pix_fmt={picture.format.name}"
        steps = [
            graph.add("buffer", f"{size}:time_base=1/1000:colorspace={matrix}:range=tv"),
            graph.add(
                "scale",
                f"{width}:{height}:intent=perceptual:out_color_matrix=bt709:out_primaries=bt709:"
                "out_transfer=bt709:out_range=tv",
            ),
            graph.add("format", "pix_fmts=yuv420p"),
            graph.add("buffersink"),
        ]
        for one, after in pairwise(steps):
            one.link_to(after)
        graph.configure()
        _here.graph = (kind, graph)
    pts, time_base = picture.pts, picture.time_base
    graph.push(picture)
    mapped: Any = graph.pull()
    mapped.pts, mapped.time_base = pts, time_base
    return mapped  # type: ignore[no-any-return]


# The instants at which a video is sampled: evenly from the start of each clip.


@dataclass(frozen=True)
class SampleGrid:
    """Sample instants in whole milliseconds; instant 0 of a clip is its start."""

    clip_ms: int
    fps: float

    @classmethod
    def of(cls, settings: WatchSettings) -> SampleGrid:
        """Return the grid of ``settings``: by default 5 per second in clips of 30 s."""
        return cls(settings.clip_ms, settings.sample_fps)

    def at_or_after(self, ms: int) -> int:
        """Return the first instant that is not before ``ms``."""
        clip, local = divmod(ms, self.clip_ms)
        step = max(0, ceil(local * self.fps / 1000) - 1)
        while (instant := int(step * 1000 / self.fps)) < local:
            step += 1
        return clip * self.clip_ms + min(instant, self.clip_ms)

    def within(self, start_ms: int, end_ms: int) -> Iterator[int]:
        """Yield the instants of ``[start_ms, end_ms)``, in order; none before 0."""
        instant = self.at_or_after(max(0, start_ms))
        while instant < end_ms:
            yield instant
            instant = self.at_or_after(instant + 1)


# Splits sampled pictures into clips: measured frames and undecoded spans.


class FrameSplitter:
    """Splits a stream of sampled pictures into clips."""

    def __init__(
        self, pictures: Iterable[SampledPicture], measurer: FrameMeasurer, settings: WatchSettings
    ) -> None:
        self._pictures = iter(pictures)
        self._measurer = measurer
        self._grid = SampleGrid.of(settings)

    def read(self, clip: Clip) -> tuple[list[Frame], list[TimeSpan]]:
        """Return the measured frames of the next clip, and the spans of it that did not decode."""
        undecoded = []
        last: av.VideoFrame | None = None
        for sampled in self._pictures_of(clip):
            if sampled.picture is None:
                end = self._grid.at_or_after(sampled.instant_ms + 1)
                undecoded.append(TimeSpan.of(sampled.instant_ms, min(end, clip.span.end_ms)))
            elif sampled.picture is not last:
                self._measurer.add(sampled.picture, max(sampled.time_ms, clip.span.start_ms))
            last = sampled.picture
        return self._measurer.collect(), undecoded

    def _pictures_of(self, clip: Clip) -> Iterator[SampledPicture]:
        for sampled in self._pictures:
            if sampled.instant_ms >= clip.span.end_ms:
                self._pictures = chain([sampled], self._pictures)
                return
            yield sampled
