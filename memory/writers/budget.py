"""Reduces the prompt of a clip to a budget of tokens; pure.

Parts are subsampled evenly in time, in the order of ``REDUCTION_ORDER``: each down to ``MIN_ITEMS``
first, then, in the same order, down to nothing. Faces are nearly last: nothing else tells which tag
is whom. Quotations are stored in any case, whether or not they are in the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import TypeVar

from domain.settings import IMAGE_TOKENS, VIDEO_SECOND_TOKENS
from models.messages import text_tokens

T = TypeVar("T")

REDUCTION_ORDER = (
    "known facts",
    "objects",
    "frames",
    "keyframes",
    "video",
    "screen texts",
    "subtitles",
    "captions",
    "faces",
    "lines of speech",
)
"""Names of the parts, in the order in which they are reduced."""
MIN_ITEMS = MappingProxyType({"faces": 2, "frames": 4, "keyframes": 1, "video": 1})
"""Fewest items of a part after the first pass; ``MIN_LINES`` for other parts."""
MIN_LINES = 8
CROP_TOKENS = 300
"""Tokens of a small image, by the most expensive of the usual models."""


@dataclass(frozen=True)
class PromptItem:
    """One line of a part, and its file where it is an image or a video.

    ``time_ms``: a keyframe's or frame's; ``video_s``: how long a video is.
    """

    text: str
    image: bytes | None = field(default=None, repr=False)
    crop: bool = False
    time_ms: int | None = None
    video_s: float | None = None

    @property
    def tokens(self) -> int:
        """Estimate the tokens of the item, rather too many: an image is listed and labelled."""
        listed = text_tokens(self.text) + 2
        return listed if self.image is None else 2 * listed + self.image_tokens

    @property
    def image_tokens(self) -> int:
        """Estimate the tokens of an image or a video itself."""
        if self.video_s is not None:
            return round(self.video_s * VIDEO_SECOND_TOKENS)
        return CROP_TOKENS if self.crop else IMAGE_TOKENS


PromptParts = Mapping[str, Sequence[PromptItem]]
"""Items in order of time, by the names of ``REDUCTION_ORDER``."""


def count_tokens(parts: PromptParts) -> int:
    """Count the tokens of all parts."""
    return sum(item.tokens for items in parts.values() for item in items)


def fit_parts(parts: PromptParts, max_tokens: int) -> dict[str, tuple[PromptItem, ...]]:
    """Reduce the parts to at most ``max_tokens`` tokens."""
    reduced = {name: tuple(items) for name, items in parts.items()}
    for may_drop_all, name in product((False, True), REDUCTION_ORDER):
        excess = count_tokens(reduced) - max_tokens
        if excess <= 0:
            break
        if name in reduced:
            minimum = 0 if may_drop_all else MIN_ITEMS.get(name, MIN_LINES)
            reduced[name] = _reduce_by(reduced[name], excess, minimum)
    return _restore_items(parts, reduced, max_tokens)


def _restore_items(
    parts: PromptParts, reduced: dict[str, tuple[PromptItem, ...]], max_tokens: int
) -> dict[str, tuple[PromptItem, ...]]:
    """Use tokens that are left over for the last parts of ``REDUCTION_ORDER`` again."""
    for name in [name for name in reversed(REDUCTION_ORDER) if name in reduced]:
        all_items = tuple(parts[name])
        excess = count_tokens(reduced | {name: all_items}) - max_tokens
        reduced = reduced | {name: _reduce_by(all_items, excess, len(reduced[name]))}
        if excess > 0:
            break
    return reduced


def _reduce_by(items: tuple[PromptItem, ...], excess: int, minimum: int) -> tuple[PromptItem, ...]:
    """Subsample items to save ``excess`` tokens, but keep at least ``minimum`` items."""
    if excess <= 0 or not items:
        return items
    max_tokens = count_tokens({"": items}) - excess
    reduced = subsample(items, max(minimum, len(items) * max_tokens // (max_tokens + excess)))
    while count_tokens({"": reduced}) > max_tokens and len(reduced) > minimum:
        reduced = subsample(items, len(reduced) - 1)
    return reduced


def subsample(items: Sequence[T], max_items: int) -> tuple[T, ...]:
    """Keep at most ``max_items`` items, evenly spaced."""
    count = len(items)
    if count <= max_items:
        return tuple(items)
    return tuple(items[number * count // max_items] for number in range(max_items))


def describe_omitted(parts: PromptParts, reduced: PromptParts) -> tuple[str, ...]:
    """Describe what is omitted, part by part: ``6 of 8 faces``."""
    counts = {name: len(parts.get(name, ())) for name in REDUCTION_ORDER}
    omitted = {name: count - len(reduced.get(name, ())) for name, count in counts.items()}
    return tuple(
        f"{omitted[name]} of {counts[name]} {name}" for name in REDUCTION_ORDER if omitted[name]
    )
