"""Fits what a model is shown of a clip into a budget of tokens; pure.

Where there is too much, the parts of ``REDUCTION_ORDER`` are subsampled one after the other, evenly
over their time: each down to ``MIN_ITEMS`` first, then, in the same order, down to nothing. Speech
goes last. No memory is lost by that: quotations are stored whatever a model is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import TypeVar

from models.messages import IMAGE_TOKENS, text_tokens

T = TypeVar("T")

REDUCTION_ORDER = (
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
MIN_ITEMS = MappingProxyType({"faces": 2, "keyframes": 1})
"""How much of a part stays in the first pass; of those not named, ``MIN_LINES``."""
MIN_LINES = 8
CROP_TOKENS = 300
"""As many as the dearest of the usual models takes for a small image."""


@dataclass(frozen=True)
class PromptItem:
    """One line of a part, and its JPEG where it is an image; ``time_ms``: a keyframe's."""

    text: str
    image: bytes | None = field(default=None, repr=False)
    crop: bool = False
    time_ms: int | None = None

    @property
    def tokens(self) -> int:
        """Estimate the tokens of the item, rather too many."""
        image = CROP_TOKENS if self.crop else IMAGE_TOKENS
        return text_tokens(self.text) + 2 + (image if self.image is not None else 0)


PromptParts = Mapping[str, Sequence[PromptItem]]
"""Items in order of time, by the names of ``REDUCTION_ORDER``."""


def count_tokens(parts: PromptParts) -> int:
    """Count the tokens of all parts."""
    return sum(item.tokens for items in parts.values() for item in items)


def fit_parts(parts: PromptParts, max_tokens: int) -> dict[str, tuple[PromptItem, ...]]:
    """Reduce the parts to at most ``max_tokens`` tokens."""
    kept = {name: tuple(items) for name, items in parts.items()}
    for may_drop_all, name in product((False, True), REDUCTION_ORDER):
        excess = count_tokens(kept) - max_tokens
        if excess <= 0:
            break
        if name in kept:
            minimum = 0 if may_drop_all else MIN_ITEMS.get(name, MIN_LINES)
            kept[name] = _reduce_by(kept[name], excess, minimum)
    return _restore_items(parts, kept, max_tokens)


def _restore_items(
    parts: PromptParts, kept: dict[str, tuple[PromptItem, ...]], max_tokens: int
) -> dict[str, tuple[PromptItem, ...]]:
    """Give the tokens that dropping an image left free to the last parts of ``REDUCTION_ORDER``."""
    for name in [name for name in reversed(REDUCTION_ORDER) if name in kept]:
        all_items = tuple(parts[name])
        excess = count_tokens(kept | {name: all_items}) - max_tokens
        kept = kept | {name: _reduce_by(all_items, excess, len(kept[name]))}
        if excess > 0:
            break
    return kept


def _reduce_by(items: tuple[PromptItem, ...], excess: int, minimum: int) -> tuple[PromptItem, ...]:
    """As many items as can stay while ``excess`` tokens go, but not fewer than ``minimum``."""
    if excess <= 0 or not items:
        return items
    max_tokens = count_tokens({"": items}) - excess
    kept = subsample(items, max(minimum, len(items) * max_tokens // (max_tokens + excess)))
    while count_tokens({"": kept}) > max_tokens and len(kept) > minimum:
        kept = subsample(items, len(kept) - 1)
    return kept


def subsample(items: Sequence[T], max_items: int) -> tuple[T, ...]:
    """Keep at most ``max_items`` items, evenly spaced."""
    count = len(items)
    if count <= max_items:
        return tuple(items)
    return tuple(items[number * count // max_items] for number in range(max_items))


def describe_omitted(parts: PromptParts, kept: PromptParts) -> tuple[str, ...]:
    """Describe what is omitted, part by part: ``6 of 8 faces``."""
    counts = {name: len(parts.get(name, ())) for name in REDUCTION_ORDER}
    omitted = {name: count - len(kept.get(name, ())) for name, count in counts.items()}
    return tuple(
        f"{omitted[name]} of {counts[name]} {name}" for name in REDUCTION_ORDER if omitted[name]
    )
