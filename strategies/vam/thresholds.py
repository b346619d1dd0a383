"""A threshold that follows the distances seen lately (Otsu)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np
from skimage.filters import threshold_otsu


class AdaptiveThreshold:
    """Otsu's threshold of the last distances; a fixed one until there are enough.

    Args:
        fixed: the threshold until then.
        least: so many distances are enough.
        most: so many are remembered.
        factor: what Otsu's threshold is multiplied by.
        recent: the ``recent`` of a threshold that goes on.
    """

    def __init__(
        self, fixed: float, least: int, most: int, factor: float = 1.0, recent: Iterable[float] = ()
    ) -> None:
        self._fixed, self._least, self._factor = fixed, least, factor
        self._recent = deque(recent, maxlen=most)

    @property
    def recent(self) -> tuple[float, ...]:
        """Return the distances that are remembered, oldest first."""
        return tuple(self._recent)

    @property
    def value(self) -> float:
        """Return the threshold as it is now."""
        if len(self._recent) < self._least:
            return self._fixed
        return self._factor * otsu(self._recent)

    def add(self, distance: float) -> None:
        """Remember a distance."""
        self._recent.append(distance)


def otsu(values: Iterable[float]) -> float:
    """Return the threshold above which values are of the upper class (Otsu), of 256 bins.

    Where all values are the same it is that value.
    """
    return float(threshold_otsu(np.fromiter(values, np.float64), nbins=256))
