"""From frames to moments and events: gates, distances, adaptive thresholds and peaks."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np
from skimage.filters import threshold_otsu
from skimage.metrics import structural_similarity

from domain.base import Frozen
from perception.images import LIKENESS, decode_bgr, likeness
from perception.quality import grey_change, sharpness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.ports import Image, ImageEncoder, Vector
    from strategies.vam.settings import VisualMemorySettings

    Grey = NDArray[np.uint8]


# A threshold that follows the distances seen lately (Otsu).


def threshold(
    recent: Sequence[float], fixed: float, settings: VisualMemorySettings, factor: float = 1.0
) -> float:
    """Return Otsu's threshold of the last distances times a factor; ``fixed`` for too few."""
    return fixed if len(recent) < settings.least_distances else factor * otsu(recent)


def remembered(
    recent: tuple[float, ...], distance: float, settings: VisualMemorySettings
) -> tuple[float, ...]:
    """Return the distances that are remembered, oldest first, with one more."""
    return (*recent, distance)[-settings.recent_distances :]


def otsu(values: Iterable[float]) -> float:
    """Return the threshold above which values are of the upper class (Otsu), of 256 bins.

    Where all values are the same it is that value.
    """
    return float(threshold_otsu(np.fromiter(values, np.float64), nbins=256))


# The gates that a frame passes before it is compared with the present moment (VAM, gates).
#
# Each is a test of one frame, or of one against the last that passed. Sharpness is measured at the
# frame's own size, the others on a grey plane of a fixed size, which is also what is carried on.

WINDOW = 7
"""Pixels of the side of the windows that structural similarity is the mean of."""


class Gate(StrEnum):
    """A gate, in the order in which frames meet them."""

    BLUR = "blur"
    CHANGE = "change"
    STRUCTURE = "structure"
    HISTOGRAM = "histogram"


class Gates:
    """The gates at work: each frame is compared with the last that passed.

    Args:
        last: the ``last`` of gates that go on; "" at the start.
    """

    def __init__(self, settings: VisualMemorySettings, last: str = "") -> None:
        self._settings = settings
        self._last = decode_plane(last) if last else None

    @property
    def last(self) -> str:
        """Return the plane of the last frame that passed as text; "" before the first."""
        return "" if self._last is None else encode_plane(self._last)

    def stopped_by(self, image: Image) -> Gate | None:
        """Return the gate that drops an H x W x 3 BGR image; None if it passes all."""
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)
        # In the paper's order: a blurred frame is not compared, and never the one to compare with.
        if sharpness(grey) < self._settings.least_sharpness:
            return Gate.BLUR
        now = grey_plane(grey, self._settings.plane_side)
        gate = None if self._last is None else unchanged(self._last, now, self._settings)
        if gate is None:
            self._last = now
        return gate


def unchanged(before: Grey, now: Grey, settings: VisualMemorySettings) -> Gate | None:
    """Return the first gate by which a plane is too much like the one before; None if it is not."""
    # In the order of the paper too: change, structure, histogram.
    if grey_change(before, now) < settings.least_change:
        return Gate.CHANGE
    if before.shape != now.shape:
        return None
    if similarity(before, now) >= settings.most_similarity:
        return Gate.STRUCTURE
    if histogram_change(before, now) < settings.least_histogram_change:
        return Gate.HISTOGRAM
    return None


def grey_plane(grey: Grey, side: int) -> Grey:
    """Shrink an H x W plane to ``side`` pixels on its longest side; a smaller one stays as it is.

    The shorter side has at least a window of structural similarity.
    """
    scale = side / max(grey.shape)
    if scale >= 1 and min(grey.shape) >= WINDOW:
        return grey
    height, width = (max(WINDOW, round(length * min(scale, 1))) for length in grey.shape)
    return np.asarray(cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def similarity(before: Grey, now: Grey) -> float:
    """Return the structural similarity of two H x W planes, -1 to 1."""
    return float(structural_similarity(before, now, win_size=WINDOW, data_range=255))


def histogram_change(before: Grey, now: Grey) -> float:
    """Return 1 minus the correlation of the grey histograms of two planes, 0 to 2."""
    one, other = (cv2.calcHist([plane], [0], None, [256], [0, 256]) for plane in (before, now))
    return 1.0 - min(1.0, float(cv2.compareHist(one, other, cv2.HISTCMP_CORREL)))


def encode_plane(plane: Grey) -> str:
    """Return an H x W plane as text, without loss."""
    return base64.b64encode(cv2.imencode(".png", plane)[1].tobytes()).decode("ascii")


def decode_plane(text: str) -> Grey | None:
    """Return the plane of ``encode_plane``; None if an import brought something else."""
    return decode_bgr(base64.b64decode(text), grey=True)


# What distances between frames are measured on: an image-text model, else colours and edges.


class FrameVectors(NamedTuple):
    """Gives frames their vectors. ``name`` says which they are; only those of one compare.

    ``vector``: returns the L2-normalised vector of an H x W x 3 BGR image, shape (D,).
    """

    name: str
    vector: Callable[[Image], Vector]


def frame_vectors(encoder: ImageEncoder | None) -> FrameVectors:
    """Return the vectors that a profile has: of its image-text model, else of colours and edges."""
    if encoder is None:
        return FrameVectors(LIKENESS, lambda image: likeness(_rgb(image)))
    return FrameVectors(
        encoder.name, lambda image: np.asarray(encoder.images([_rgb(image)])[0], np.float32)
    )


def distance(one: Vector, other: Vector) -> float:
    """Return 1 minus the cosine of two vectors, 0 to 2."""
    return max(0.0, 1.0 - float(one @ other))


def _rgb(image: Image) -> Image:
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)


# Adaptive deduplication: what looks alike is one moment, of which first and last frame stay.


class MomentState(Frozen):
    """What is carried on: the present moment, and the distances seen lately.

    ``vectors`` names what ``reference`` is of; ``reference`` is the vector of the moment's first
    frame, empty before the first moment; ``end_ms`` is None while the moment has one frame.
    """

    vectors: str = ""
    end_ms: int | None = None
    reference: tuple[float, ...] = ()
    recent: tuple[float, ...] = ()


@dataclass(frozen=True)
class MomentStep:
    """What a frame is: the first of a new moment, else the end of the present one so far.

    ``change`` is its distance to the first frame of the moment before; ``replaced_ms`` is the
    frame that was the end so far and is so no longer.
    """

    starts: bool
    change: float
    replaced_ms: int | None = None


class Moments:
    """Divides the frames that passed the gates into moments, strictly in order of time.

    Args:
        vectors: the name of the vectors; those of another name are forgotten.
    """

    def __init__(
        self, settings: VisualMemorySettings, vectors: str, state: MomentState | None = None
    ) -> None:
        known = state or MomentState()
        self._settings = settings
        self.state = (
            known if known.vectors == vectors else MomentState(vectors=vectors, end_ms=known.end_ms)
        )

    def add(self, time_ms: int, vector: Vector) -> MomentStep:
        """Add the next frame that passed the gates.

        At or under the threshold it waits as the end of the present moment; above it that end is
        committed, and the frame is the reference of the next.
        """
        known, change, begins = self.state, 0.0, True
        recent = known.recent
        if known.reference:
            change = distance(np.asarray(known.reference, np.float32), vector)
            begins = change > threshold(recent, self._settings.moment_distance, self._settings)
            recent = remembered(recent, change, self._settings)
        self.state = MomentState(
            vectors=known.vectors,
            end_ms=None if begins else time_ms,
            reference=tuple(vector.tolist()) if begins else known.reference,
            recent=recent,
        )
        return MomentStep(begins, change, None if begins else known.end_ms)


# Events: runs of moments between local peaks of the distances between them.


class EventStart(NamedTuple):
    """An event begins, and the one before ends; ``frame_ms`` is the frame that it rests on.

    That is its first frame, or what was shown still where an event begins by its length.
    """

    start_ms: int
    frame_ms: int


class EventState(Frozen):
    """What is carried on; times are None before the first moment."""

    start_ms: int | None = None
    moment_ms: int | None = None
    previous: float = 0.0
    peak: tuple[int, float] | None = None
    recent: tuple[float, ...] = ()


class EventBounds:
    """Finds where events begin, strictly in order of time.

    A distance is a peak if it is above the threshold and the one before, and the next is not
    larger: the time and change of a moment's first frame. So a peak is known when the next moment
    begins, or when its event is too long.
    """

    def __init__(self, settings: VisualMemorySettings, state: EventState | None = None) -> None:
        self._settings = settings
        self.state = state or EventState()

    def add_moment(self, time_ms: int, change: float) -> list[EventStart]:
        """Add a moment that begins; return the events that are now known to have begun.

        Args:
            time_ms: its first frame; ``pass_time`` has come to it before.
            change: its distance to the moment before.
        """
        known = self.state
        if known.start_ms is None:
            self._change(start_ms=time_ms, moment_ms=time_ms)
            return [EventStart(time_ms, time_ms)]
        # An event that begins by its length may begin with this very moment.
        new = time_ms > known.start_ms
        begun = [self._begin_at(known.peak)] if known.peak and known.peak[1] >= change else []
        settings = self._settings
        least = threshold(
            known.recent, settings.event_distance, settings, settings.event_relaxation
        )
        self._change(
            moment_ms=time_ms,
            previous=change,
            peak=(time_ms, change) if new and change > max(least, known.previous) else None,
            recent=remembered(known.recent, change, settings),
        )
        return begun

    def pass_time(self, time_ms: int) -> list[EventStart]:
        """Let time pass; return the events that begin since the one before is too long."""
        begun, longest = list[EventStart](), self._settings.event_ms
        while (start := self.state.start_ms) is not None and time_ms - start >= longest:
            if self.state.peak is not None:
                begun.append(self._begin_at(self.state.peak))
                continue
            self._change(start_ms=start + longest)
            begun.append(EventStart(start + longest, self.state.moment_ms or 0))
        return begun

    def _begin_at(self, peak: tuple[int, float]) -> EventStart:
        self._change(start_ms=peak[0], peak=None)
        return EventStart(peak[0], peak[0])

    def _change(self, **changed: Any) -> None:
        self.state = self.state.model_copy(update=changed)
