"""Images as JPEG bytes named by their content, and as vectors of what they look like.

Such a vector holds colours by region and the directions of edges; two images are alike by the
cosine of theirs. It needs no model.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import cv2
import numpy as np

from domain.errors import BlobGone
from store.blobs import image_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.ports import Image, Vector


MAX_PIXELS = 1 << 26
"""Of an image that is decoded, which takes three bytes for each."""


def encode_rgb(image: Image, quality: int) -> bytes:
    """Encode an image (H x W x 3 RGB) as JPEG."""
    bgr = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    return cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def shrunk(image: Image, scale: float) -> Image:
    """Return an image (H x W x C) made smaller by ``scale``; as it is from 1 on."""
    if scale >= 1:
        return image
    height, width = (max(1, round(side * scale)) for side in image.shape[:2])
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


class Blobs(dict[str, bytes]):
    """JPEGs by the SHA-256 of their bytes."""

    def add(self, image: Image, quality: int) -> str:
        """Encode ``image`` (H x W x 3 RGB), store it, and return its SHA-256."""
        data = encode_rgb(image, quality)
        name = hashlib.sha256(data).hexdigest()
        self[name] = data
        return name


def decode_image(data: bytes) -> Image | None:
    """Decode an image to H x W x 3 RGB; None if it cannot be read."""
    bgr = decode_bgr(data)
    return None if bgr is None else np.asarray(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), np.uint8)


def decode_bgr(data: bytes, *, grey: bool = False) -> Image | None:
    """Decode an image to H x W x 3 BGR, or to H x W; None if it cannot be read, or is too large.

    A few kilobytes can state a size that fills memory, so the header is read first.
    """
    try:
        width, height = image_size(data)
    except ValueError:
        return None
    if width * height > MAX_PIXELS:
        return None
    kind = cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR
    image = cv2.imdecode(np.frombuffer(data, np.uint8), kind)
    return None if image is None else np.asarray(image, np.uint8)


def decode_stored(data: bytes) -> Image:
    """Decode a stored image to H x W x 3 BGR.

    Raises:
        BlobGone: it cannot be read.
    """
    image = decode_bgr(data)
    if image is None:
        raise BlobGone("a stored image cannot be read: homer check says which")
    return image


THUMBNAIL_QUALITY = 80


def shrink_jpeg(data: bytes, side: int) -> tuple[bytes, int, int]:
    """Encode a JPEG anew with ``side`` pixels on its longest side; return it, width and height.

    Raises:
        BlobGone: it cannot be read.
    """
    return encode_shrunk(decode_stored(data), side, THUMBNAIL_QUALITY)


def encode_shrunk(image: Image, side: int, quality: int) -> tuple[bytes, int, int]:
    """Encode an image (H x W x 3 BGR) as ``shrink_jpeg`` does."""
    height, width = image.shape[:2]
    scale = side / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    _, encoded = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return encoded.tobytes(), *size


# On the shared clips it found frames of one scene as well as the last layer of EfficientNet-Lite0
# (docs/perception.md).
LIKENESS = "likeness"
"""The name of these vectors where a row says what made its vector."""
HUES, LEVELS = 12, 3
"""Bins of the colour histograms: hues, and levels of saturation and of value.

Hues are 30 degrees apart, the first is red.
"""
COLOURS = HUES * LEVELS * LEVELS
FINE = (60, 12, 12)
"""Fine bins of hue, saturation and value, which are counted first."""
REGIONS = 5
"""The whole image, and its quarters."""
CELLS, DIRECTIONS, CELL = 4, 8, 16
"""Cells in each direction, bins of directions, and pixels of a cell's side."""
SIZE = REGIONS * COLOURS + CELLS * CELLS * DIRECTIONS
"""Dimensions of a vector."""
NEARLY_SAME, ALIKE = 0.95, 0.85
"""The least cosines of images that are nearly the same, and of any that are alike.

Of pairs of frames of different shared clips 2 in 1000 reach the lower one and none the higher one,
of those of one scene three in four and one in three.
"""
_SIDE = 144
"""Pixels of the shorter side that larger images are measured at."""


def likeness(image: Image) -> Vector:
    """Return the vector of an H x W x 3 image: shape (SIZE,), L2-normalised, no negative values.

    Histograms of hue, saturation and value (square roots of shares: the Bhattacharyya
    coefficient), and of gradients' directions, weighted by magnitude; both count alike.
    """
    small = shrunk(image, _SIDE / min(image.shape[:2]))
    # The colour histograms of all regions, shape (REGIONS * COLOURS,), of length 1.
    # The number of each pixel's fine hue, saturation and value, shape (H, W).
    hsv = cv2.cvtColor(small, cv2.COLOR_RGB2HSV).astype(np.int64)
    hue, saturation, value = (hsv * FINE // (180, 256, 256)).transpose(2, 0, 1)
    bins = np.asarray((hue * FINE[1] + saturation) * FINE[2] + value, np.int64)
    top, left = bins.shape[0] // 2, bins.shape[1] // 2
    quarters = (bins[:top, :left], bins[:top, left:], bins[top:, :left], bins[top:, left:])
    roots = [np.sqrt(_shares(region)) for region in (bins, *quarters)]
    colours = np.asarray(np.concatenate(roots) / np.sqrt(REGIONS), np.float64)
    side = CELLS * CELL
    grey = cv2.resize(
        cv2.cvtColor(small, cv2.COLOR_RGB2GRAY), (side, side), interpolation=cv2.INTER_AREA
    )
    across, down = cv2.Sobel(grey, cv2.CV_64F, 1, 0), cv2.Sobel(grey, cv2.CV_64F, 0, 1)
    direction = np.floor(np.arctan2(down, across) / np.pi * DIRECTIONS).astype(int) % DIRECTIONS
    row, column = np.indices((side, side)) // CELL
    cell = (row * CELLS + column) * DIRECTIONS + direction
    sums = np.bincount(cell.ravel(), np.hypot(across, down).ravel(), CELLS * CELLS * DIRECTIONS)
    lengths = np.sqrt(sums)
    both = np.concatenate(
        [colours, np.asarray(lengths / max(float(np.linalg.norm(lengths)), 1e-9), np.float64)]
    ) / np.sqrt(2)
    return np.asarray(both, np.float32)


def colour_shares(vector: Vector) -> NDArray[np.float64]:
    """Return the shares of colours in the whole image: (HUES, LEVELS, LEVELS), sum 1."""
    whole = np.asarray(vector[:COLOURS], np.float64) ** 2 * (2 * REGIONS)
    return whole.reshape(HUES, LEVELS, LEVELS)


def _shares(bins: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of each colour, shape (COLOURS,).

    A fine bin counts for the two nearest coarse ones in each direction: else two images of one
    thing would differ where its colour lies at the border of two.
    """
    counts = np.bincount(bins.ravel(), minlength=int(np.prod(FINE))).reshape(FINE)
    by_hue = np.tensordot(_HUE_WEIGHTS, counts, (1, 0))
    by_saturation = np.tensordot(by_hue, _LEVEL_WEIGHTS, (1, 1))
    by_value = np.tensordot(by_saturation, _LEVEL_WEIGHTS, (1, 1))
    return np.asarray(by_value.ravel() / max(1, bins.size), np.float64)


def _hue_weights() -> NDArray[np.float64]:
    """Return how much each fine hue counts for each hue, (HUES, fine hues): columns sum to 1."""
    fine, width = FINE[0], FINE[0] / HUES
    away = np.abs(np.arange(fine) - width * np.arange(HUES)[:, None])
    return np.asarray(np.maximum(0, 1 - np.minimum(away, fine - away) / width), np.float64)


def _level_weights() -> NDArray[np.float64]:
    """Return how much each fine level counts for each level, (LEVELS, fine): columns sum to 1."""
    fine, width = FINE[1], FINE[1] / LEVELS
    centres = width * (np.arange(LEVELS)[:, None] + 0.5)
    within = np.clip(np.arange(fine) + 0.5, centres[0], centres[-1])
    return np.asarray(np.maximum(0, 1 - np.abs(within - centres) / width), np.float64)


_HUE_WEIGHTS, _LEVEL_WEIGHTS = _hue_weights(), _level_weights()
