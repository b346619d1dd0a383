"""Detected objects described in words: counting, listing, plurals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from domain.media import SeenObject

_PLURALS = {"person": "people", "knife": "knives", "mouse": "mice", "sheep": "sheep"}
_ONLY_PLURAL = frozenset({"skis", "scissors"})
_WITHOUT_NUMBER = frozenset({"broccoli"})


def describe_counts(counts: Mapping[str, int]) -> str:
    """Describe counted objects in the order given: ``3 people, a laptop, scissors``."""
    return ", ".join(_describe(label, count) for label, count in counts.items())


def _describe(label: str, count: int) -> str:
    if label in _ONLY_PLURAL | _WITHOUT_NUMBER:
        return label
    if count == 1:
        return f"an {label}" if label[0] in "aeiou" else f"a {label}"
    return f"{count} {pluralise(label)}"


def pluralise(label: str) -> str:
    """Return the plural of an object's label."""
    if label in _PLURALS:
        return _PLURALS[label]
    sibilant = label.endswith(("s", "x", "ch", "sh"))
    return f"{label}es" if sibilant else f"{label}s"


def count_objects(objects: Iterable[SeenObject]) -> dict[str, int]:
    """Count the most objects of each kind in view at once: people first, then by number, name."""
    at_once = Counter((item.time_ms, item.label) for item in objects)
    most: dict[str, int] = {}
    for (_, label), count in at_once.items():
        most[label] = max(count, most.get(label, 0))
    order = sorted(most, key=lambda label: (label != "person", -most[label], label))
    return {label: most[label] for label in order}


def describe_by_time(objects: Sequence[SeenObject]) -> list[tuple[int, str]]:
    """Describe the objects in view at each time."""
    times = sorted({item.time_ms for item in objects})
    return [
        (ms, describe_counts(count_objects(item for item in objects if item.time_ms == ms)))
        for ms in times
    ]
