"""What a model is shown of a clip, within a budget of tokens; pure.

Where all of it is too much, the parts of ``ORDER`` are thinned one after the other, evenly over
their time: each down to ``LEAST`` first, then, in the same order, down to nothing. What was said
goes last. Nothing of it is lost to memory by that: quotations are stored whatever a model is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import TypeVar

from models.messages import IMAGE_TOKENS, text_tokens

T = TypeVar("T")

ORDER = (
    "faces",
    "keyframes",
    "objects",
    "known facts",
    "screen texts",
    "subtitles",
    "captions",
    "lines of speech",
)
"""What is shown less of first."""
LEAST = MappingProxyType({"faces": 2, "keyframes": 1})
"""How much of a part stays in the first pass; of those not named, ``LEAST_LINES``."""
LEAST_LINES = 8
CROP_TOKENS = 300
"""As many as the dearest of the usual models takes for a small image."""


@dataclass(frozen=True)
class Item:
    """A line of a part, and the JPEG that it tells of where it is an image."""

    text: str
    image: bytes | None = field(default=None, repr=False)
    crop: bool = False

    @property
    def tokens(self) -> int:
        """Rather too many."""
        image = CROP_TOKENS if self.crop else IMAGE_TOKENS
        return text_tokens(self.text) + 2 + (image if self.image is not None else 0)


Parts = Mapping[str, Sequence[Item]]
"""Items in order of time, by the names of ``ORDER``."""


def cost(parts: Parts) -> int:
    """Tokens of all parts."""
    return sum(item.tokens for items in parts.values() for item in items)


def fitted(parts: Parts, room: int) -> dict[str, tuple[Item, ...]]:
    """The parts in at most ``room`` tokens; empty ones where there is room for nothing."""
    kept = {name: tuple(items) for name, items in parts.items()}
    for whole, name in product((False, True), ORDER):
        over = cost(kept) - room
        if over <= 0:
            break
        if name in kept:
            least = 0 if whole else LEAST.get(name, LEAST_LINES)
            kept[name] = _thinned_by(kept[name], over, least)
    return _filled(parts, kept, room)


def _filled(
    parts: Parts, kept: dict[str, tuple[Item, ...]], room: int
) -> dict[str, tuple[Item, ...]]:
    """What an image too many has left free, given back to the parts that come last in ``ORDER``."""
    for name in [name for name in reversed(ORDER) if name in kept]:
        every = tuple(parts[name])
        over = cost(kept | {name: every}) - room
        kept = kept | {name: _thinned_by(every, over, len(kept[name]))}
        if over > 0:
            break
    return kept


def _thinned_by(items: tuple[Item, ...], over: int, least: int) -> tuple[Item, ...]:
    """As many items as can stay while ``over`` tokens go, but not fewer than ``least``."""
    if over <= 0 or not items:
        return items
    most = cost({"": items}) - over
    kept = thinned(items, max(least, len(items) * most // (most + over)))
    while cost({"": kept}) > most and len(kept) > least:
        kept = thinned(items, len(kept) - 1)
    return kept


def thinned(items: Sequence[T], most: int) -> tuple[T, ...]:
    """At most so many items, left out evenly: a clip has a beginning, a middle and an end."""
    count = len(items)
    if count <= most:
        return tuple(items)
    return tuple(items[number * count // most] for number in range(most))


def left_out(parts: Parts, kept: Parts) -> tuple[str, ...]:
    """What is not shown, part by part: ``6 of 8 faces``."""
    counts = {name: len(parts.get(name, ())) for name in ORDER}
    gone = {name: count - len(kept.get(name, ())) for name, count in counts.items()}
    return tuple(f"{gone[name]} of {counts[name]} {name}" for name in ORDER if gone[name])
