"""Describes each keyframe in words: as a model that saw it wrote, else by what was recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from domain.media import Keyframe, Percept
from domain.memories import KeyframeDescription, MemoryDraft, MemoryKind, MemorySource
from domain.people import TAG, escape_tags
from domain.sentences import describe_picture
from domain.time import TimeSpan
from people.characters import ClipPeople
from perception.likeness import LEVELS, colour_shares

NEAR_MS = 1_000
"""A face that is seen within this time of a keyframe is said to be in view on it."""


def recognised_descriptions(
    percept: Percept, people: ClipPeople
) -> tuple[KeyframeDescription, ...]:
    """Describe keyframes by the people, objects and text that were recognised on them.

    A keyframe on which nothing was recognised has no description.
    """
    return tuple(
        KeyframeDescription(time_ms=frame.time_ms, text=text)
        for frame in percept.keyframes
        if (text := _recognised(frame, percept, people))
    )


def _recognised(frame: Keyframe, percept: Percept, people: ClipPeople) -> str:
    return describe_picture(
        dict.fromkeys(
            people.faces[group.number].tag
            for group in percept.faces
            if any(
                one.span.start_ms - NEAR_MS <= frame.time_ms <= one.span.end_ms + NEAR_MS
                for one in group.sightings
            )
        ),
        [thing for thing in percept.objects if thing.time_ms == frame.time_ms],
        [escape_tags(one.text) for one in percept.screen_texts if one.time_ms == frame.time_ms],
    )


def checked_descriptions(
    texts: Sequence[tuple[int, str]], shown: Sequence[int], people: ClipPeople
) -> tuple[tuple[KeyframeDescription, ...], tuple[str, ...]]:
    """Return what of a model's words on the keyframes it was shown can be stored, and what cannot.

    Args:
        texts: The number of an image, from 1, and what was written of it.
        shown: The times in ms of the keyframes that were shown: image 1, image 2 and so on.
        people: Whose tags may be used.

    Returns:
        One description of each keyframe at most, the first where there are several. ``dropped``
        says what is missing or cannot be stored.
    """
    known = people.tags()
    usable: dict[int, KeyframeDescription] = {}
    dropped: list[str] = []
    for number, text in texts:
        if not 1 <= number <= len(shown):
            dropped.append("the description of an image that is no keyframe of the clip")
            continue
        time_ms, plain = shown[number - 1], " ".join(text.split())
        if any(found[0] not in known for found in TAG.finditer(plain)):
            dropped.append(f"{_of(time_ms)}: it names somebody who is not in the clip")
        elif number not in usable and plain:
            usable[number] = KeyframeDescription(time_ms=time_ms, text=plain)
    written = {number for number, text in texts if text.strip()}
    dropped += [
        f"{_of(time_ms)}: the model wrote none that can be read"
        for number, time_ms in enumerate(shown, 1)
        if number not in written
    ]
    ordered = tuple(usable[number] for number in sorted(usable))
    return ordered, tuple(dict.fromkeys(dropped))


def fill_descriptions(
    first: Sequence[KeyframeDescription], others: Sequence[KeyframeDescription]
) -> tuple[KeyframeDescription, ...]:
    """Return ``first``, with those of ``others`` whose keyframes have none; in order of time."""
    by_time = {one.time_ms: one for one in (*others, *first)}
    return tuple(by_time[time_ms] for time_ms in sorted(by_time))


def _of(time_ms: int) -> str:
    return f"the description of the keyframe at {time_ms / 1000:.1f} s"


# One line on a clip's colours, where nothing else was recognised besides speech.

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
        # Without saturation a colour is grey, and brown is a dull orange.
        if saturation == 0:
            name = _GREYS[value]
        else:
            dull = saturation < LEVELS - 1 or value < LEVELS - 1
            plain = "brown" if _HUES[hue] == "orange" and dull else _HUES[hue]
            name = f"dark {plain}" if value == 0 else plain
        named[name] = named.get(name, 0.0) + float(share)
    most = sorted((-share, name) for name, share in named.items() if share >= MOSTLY)[:TOLD]
    colours = " and ".join(name for _, name in most)
    centres = (np.arange(LEVELS) + 0.5) / LEVELS
    value = float(shares.sum(axis=(0, 1)) @ centres)
    light = "dark" if value <= DARK else "bright" if value >= BRIGHT else ""
    parts = [light, f"mostly {colours}" if colours else "of many colours"]
    return ", ".join(part for part in parts if part)
