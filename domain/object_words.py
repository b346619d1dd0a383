"""Things in view, in words: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from domain.media import SeenObject

_PLURALS = {"person": "people", "knife": "knives", "mouse": "mice", "sheep": "sheep"}
_ONLY_PLURAL = frozenset({"skis", "scissors"})
_WITHOUT_NUMBER = frozenset({"broccoli"})


def listing(counts: Mapping[str, int]) -> str:
    """``3 people, a laptop, scissors``, in the order given."""
    return ", ".join(_told(label, count) for label, count in counts.items())


def _told(label: str, count: int) -> str:
    if label in _ONLY_PLURAL | _WITHOUT_NUMBER:
        return label
    if count == 1:
        return f"an {label}" if label[0] in "aeiou" else f"a {label}"
    return f"{count} {plural(label)}"


def plural(label: str) -> str:
    """Several of a kind."""
    if label in _PLURALS:
        return _PLURALS[label]
    hisses = label.endswith(("s", "x", "ch", "sh"))
    return f"{label}es" if hisses else f"{label}s"


def counted(things: Iterable[SeenObject]) -> dict[str, int]:
    """How many of each kind are in view at one time at most: people first, then by number, name."""
    at_once = Counter((thing.time_ms, thing.label) for thing in things)
    most: dict[str, int] = {}
    for (_, label), count in at_once.items():
        most[label] = max(count, most.get(label, 0))
    order = sorted(most, key=lambda label: (label != "person", -most[label], label))
    return {label: most[label] for label in order}


def by_time(things: Sequence[SeenObject]) -> list[tuple[int, str]]:
    """What is in view at each time, in words."""
    times = sorted({thing.time_ms for thing in things})
    return [(ms, listing(counted(t for t in things if t.time_ms == ms))) for ms in times]
