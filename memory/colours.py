"""One line on a clip's colours, where nothing else was recognised besides speech."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from domain.media import Percept
from domain.memories import MemoryDraft, MemoryKind, MemorySource
from domain.time import TimeSpan
from perception.likeness import LEVELS, colour_shares

SHOWN_MS = 1_000
"""How long a keyframe is assumed to be in view."""
MOSTLY = 0.2
"""The least share of a picture's colour that is told."""
TOLD = 2
"""Colours at most."""
DARK, BRIGHT = 0.35, 0.65
"""Mean value, in [0, 1], up to which a picture is dark and from which it is bright."""
_GREYS = ("black", "grey", "white")
_HUES = (
    *("red", "orange", "yellow", "green", "green", "green"),
    *("turquoise", "blue", "blue", "violet", "pink", "pink"),
)
"""Names of the hues, which are 30 degrees apart."""


def colour_lines(percept: Percept) -> Iterator[MemoryDraft]:
    """Yield how light the keyframes of a clip are together, and their main colours."""
    vectors = [one.likeness for one in percept.keyframes if one.likeness is not None]
    if not vectors:
        return
    times = [one.time_ms for one in percept.keyframes]
    end = max(times[-1], min(times[-1] + SHOWN_MS, percept.clip.span.end_ms))
    shares = np.mean([colour_shares(np.asarray(vector)) for vector in vectors], axis=0)
    yield MemoryDraft(
        kind=MemoryKind.EPISODIC,
        text=f"Picture: {describe_colours(shares)}.",
        span=TimeSpan.of(times[0], end),
        source=MemorySource.COLOURS,
    )


def describe_colours(shares: NDArray[np.float64]) -> str:
    """Describe colours by their shares, (hues, saturations, values): ``dark, mostly brown``."""
    named: dict[str, float] = {}
    for (hue, saturation, value), share in np.ndenumerate(shares):
        name = _name(hue, saturation, value)
        named[name] = named.get(name, 0.0) + float(share)
    most = sorted((-share, name) for name, share in named.items() if share >= MOSTLY)[:TOLD]
    colours = " and ".join(name for _, name in most)
    parts = [_light(shares), f"mostly {colours}" if colours else "of many colours"]
    return ", ".join(part for part in parts if part)


def _light(shares: NDArray[np.float64]) -> str:
    centres = (np.arange(LEVELS) + 0.5) / LEVELS
    value = float(shares.sum(axis=(0, 1)) @ centres)
    return "dark" if value <= DARK else "bright" if value >= BRIGHT else ""


def _name(hue: int, saturation: int, value: int) -> str:
    """Name a colour by its bins; without saturation it is grey, and brown is a dull orange."""
    if saturation == 0:
        return _GREYS[value]
    dull = saturation < LEVELS - 1 or value < LEVELS - 1
    name = "brown" if _HUES[hue] == "orange" and dull else _HUES[hue]
    return f"dark {name}" if value == 0 else name
