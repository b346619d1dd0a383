"""Joins neighbouring macro events to super events, as they come in; pure.

Only the last super events are formed anew with a macro event that comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from strategies.memdreamer.settings import HierarchySettings, Limits

Vector = NDArray[np.float32]
Run = tuple[int, ...]
"""Numbers of the macro events of a super event, each one more than the one before."""

TOUCHED = 2
"""How many of the last super events a new macro event touches."""


def run_sizes(settings: HierarchySettings, macros: int, seen_ms: int) -> Limits:
    """Return the least and the most macro events of a super event, by what was seen so far."""
    least, most = settings.super_macros
    if seen_ms < settings.long_video_ms:
        return least, most
    fewest, many = settings.long_supers
    return max(least, macros // many), max(most, -(-macros // fewest))


def closest_pair(runs: Sequence[Run], vectors: Mapping[int, Vector], most: int) -> int | None:
    """Return the place of the run that is most like the next, of those that have room for it."""
    return _Runs(runs, vectors).closest(most)


def agglomerate(numbers: Sequence[int], vectors: Mapping[int, Vector], sizes: Limits) -> list[Run]:
    """Return runs of macro events: neighbours that are alike are joined, the most alike first.

    There are about as many runs as their middle size allows. A run of fewer than the least joins a
    neighbour with room for it, except for the last, which is still growing.
    """
    least, most = sizes
    found = _Runs([(number,) for number in numbers], vectors)
    wanted = max(1, round(2 * len(numbers) / (least + most)))
    while len(found.runs) > wanted and found.join_closest(most):
        pass
    while found.join_small(least, most):
        pass
    return found.runs


def partition(
    firsts: Sequence[int], numbers: Sequence[int], vectors: Mapping[int, Vector], sizes: Limits
) -> list[Run]:
    """Return runs that begin with these macro events, mended to the sizes.

    Runs of more than the most are split evenly. Where there are more runs than their least size
    allows, neighbours that are alike are joined.

    Args:
        firsts: of ``numbers``, ascending; the first run begins with the first macro event anyway.
        numbers: of the macro events, in order.
        vectors: of the macro events.
        sizes: the least and the most macro events of a run.
    """
    least, most = sizes
    begins = sorted({0, *(numbers.index(first) for first in firsts)})
    runs: list[Run] = []
    for begin, end in pairwise([*begins, len(numbers)]):
        parts = -(-(end - begin) // most)
        cuts = [begin + (end - begin) * part // parts for part in range(parts + 1)]
        runs += [tuple(numbers[a:b]) for a, b in pairwise(cuts)]
    found = _Runs(runs, vectors)
    allowed = max(1, -(-len(numbers) // least))
    while len(found.runs) > allowed and found.join_closest(most):
        pass
    return found.runs


class _Runs:
    """Runs in order, with how alike each is to the next."""

    def __init__(self, runs: Sequence[Run], vectors: Mapping[int, Vector]) -> None:
        self.runs = list(runs)
        self._sums = [np.sum([vectors[one] for one in run], axis=0) for run in runs]
        self._alike = [self._likeness(at) for at in range(len(runs) - 1)]

    def _likeness(self, at: int) -> float:
        """Return the cosine of the mean vectors of a run and the next."""
        one, other = self._sums[at], self._sums[at + 1]
        norms = float(np.linalg.norm(one) * np.linalg.norm(other))
        return round(float(one @ other) / norms, 6) if norms > 0 else 0.0

    def _fits(self, at: int, most: int) -> bool:
        return len(self.runs[at]) + len(self.runs[at + 1]) <= most

    def closest(self, most: int) -> int | None:
        """Return the place of the run that is most like the next, of those that have room."""
        places = [at for at in range(len(self._alike)) if self._fits(at, most)]
        return max(places, key=lambda at: (self._alike[at], -at), default=None)

    def join_closest(self, most: int) -> bool:
        """Join the neighbours that are most alike of those that have room; False without any."""
        at = self.closest(most)
        if at is not None:
            self._join(at)
        return at is not None

    def join_small(self, least: int, most: int) -> bool:
        """Join one run of fewer than the least to a neighbour with room; False without any."""
        for at, run in enumerate(self.runs[:-1]):
            around = [place for place in (at - 1, at) if place >= 0 and self._fits(place, most)]
            if len(run) < least and around:
                self._join(max(around, key=lambda place: (self._alike[place], -place)))
                return True
        return False

    def _join(self, at: int) -> None:
        self.runs[at : at + 2] = [self.runs[at] + self.runs[at + 1]]
        self._sums[at : at + 2] = [self._sums[at] + self._sums[at + 1]]
        del self._alike[at]
        for place in (at - 1, at):
            if 0 <= place < len(self._alike):
                self._alike[place] = self._likeness(place)
