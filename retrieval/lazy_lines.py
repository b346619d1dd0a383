"""Lines as a few arrays, made into rows only where somebody looks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from store.queries.search import StoredLine

Arrays = dict[str, NDArray[Any]]
_NUMBERS = ("id", "clip", "start_ms", "end_ms")
_NAMES = ("kind", "source", "speaker")
STILL = np.iinfo(np.int64).max
"""``gone`` of a line that was never superseded."""


class KeptLines(Sequence[StoredLine]):
    """M lines; ``gone`` (M,) is the clip after which each is superseded."""

    def __init__(self, arrays: Arrays, gone: NDArray[np.int64]) -> None:
        self._numbers = [arrays[name] for name in _NUMBERS]
        self._which = [arrays[name] for name in _NAMES]
        self._names = [texts_of(arrays, f"{name}s") for name in _NAMES]
        self._texts, self._starts = arrays["texts"].tobytes(), arrays["texts_at"]
        self._gone = gone
        self._made: dict[int, StoredLine] = {}

    def __len__(self) -> int:
        return len(self._gone)

    @overload
    def __getitem__(self, place: int) -> StoredLine: ...
    @overload
    def __getitem__(self, place: slice) -> list[StoredLine]: ...
    def __getitem__(self, place: int | slice) -> StoredLine | list[StoredLine]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        if place not in self._made:
            self._made[place] = self._line(place)
        return self._made[place]

    def _line(self, place: int) -> StoredLine:
        memory, clip, start, end = (int(one[place]) for one in self._numbers)
        named = zip(self._names, self._which, strict=True)
        kind, source, speaker = (names[int(which[place])] for names, which in named)
        text = self._texts[self._starts[place] : self._starts[place + 1]].decode()
        gone = None if self._gone[place] == STILL else int(self._gone[place])
        return StoredLine(memory, clip, start, end, kind, text, source, speaker or None, gone)


def arrays_of(lines: Sequence[StoredLine]) -> Arrays:
    """What ``KeptLines`` makes these lines of again."""
    found: Arrays = {
        name: np.array([getattr(line, name) for line in lines], dtype=np.int64) for name in _NUMBERS
    }
    for name in _NAMES:
        known: dict[str, int] = {}
        which = [known.setdefault(getattr(line, name) or "", len(known)) for line in lines]
        found |= {name: np.array(which, dtype=np.int32)} | texts_as(f"{name}s", known)
    return found | texts_as("texts", (line.text for line in lines))


def texts_as(name: str, texts: Iterable[str]) -> Arrays:
    """Texts as bytes one after the other, and where each begins."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, encoded)])
    return {name: np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_at": starts}


def texts_of(arrays: Arrays, name: str) -> list[str]:
    """The texts again."""
    joined, starts = arrays[name].tobytes(), arrays[f"{name}_at"].tolist()
    pairs = pairwise(starts)
    return [joined[start:end].decode() for start, end in pairs]
