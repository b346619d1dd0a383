"""Counts a data set that was read, beside what its authors tell of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from evals.dataset import Counts, Dataset


@dataclass(frozen=True)
class Census:
    """How much a copy holds. ``unlike`` tells, a line each, where it is not the published whole.

    ``types`` and ``by_video`` count questions; ``as_of`` are those asked as of a moment,
    ``answered`` those whose answer is known, ``timed`` those whose answer has a time. ``missing``
    are the videos of which neither a file nor captions are there.
    """

    name: str
    videos: int
    questions: int
    types: dict[str, int]
    by_video: dict[str, int]
    as_of: int
    answered: int
    timed: int
    missing: tuple[str, ...]
    compared: bool
    unlike: tuple[str, ...]

    @property
    def whole(self) -> bool | None:
        """Whether the counts are those that were published; None: none were."""
        return not self.unlike if self.compared else None


def census(found: Dataset, published: Counts) -> Census:
    """The counts of ``found``."""
    asked = found.questions
    types = Counter(kind for one in asked for kind in one.types)
    return Census(
        name=found.name,
        videos=len(found.videos),
        questions=len(asked),
        types=dict(types.most_common()),
        by_video=dict(Counter(one.video for one in asked)),
        as_of=sum(one.as_of_ms is not None for one in asked),
        answered=sum(bool(one.answer) for one in asked),
        timed=sum(bool(one.spans) for one in asked),
        missing=tuple(v.name for v in found.videos if not (v.file or v.captions)),
        compared=published != Counts(),
        unlike=tuple(_unlike(found, types, published)),
    )


def _unlike(found: Dataset, types: Counter[str], published: Counts) -> Iterator[str]:
    wanted = {
        "videos": (len(found.videos), published.videos),
        "questions": (len(found.questions), published.questions),
        **{f"type {kind}": (types[kind], count) for kind, count in published.types.items()},
    }
    for what, (here, there) in wanted.items():
        if there not in (None, here):
            yield f"{what}: {here}, published {there}"
