"""What an image looks like as a vector: its colours by region, and the directions of its edges.

Two images are alike by the cosine of their vectors. It needs no model: on the shared clips it found
frames of one scene as well as the last layer of EfficientNet-Lite0 (docs/perception.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

from perception.jpeg import shrunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.ports import Image, Vector

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
