"""Counts of a data set that was read, compared with the published ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import computed_field
from pydantic.dataclasses import dataclass

from evals.dataset import Counts, Dataset


@dataclass(frozen=True)
class Census:
    """The size of a copy. ``unlike`` lists, a line each, the differences from the published set.

    ``types`` and ``by_video`` count questions; ``as_of``: those asked as of a moment; ``answered``:
    those with a known answer; ``timed``: those whose answer has a time. ``missing``: the videos
    without a file or captions.
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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def whole(self) -> bool | None:
        """Check whether the counts are the published ones; None: none are published."""
        return not self.unlike if self.compared else None

    @property
    def exit_code(self) -> int:
        """The code of a command that ends with it: 1 where it differs from what was published."""
        return 1 if self.unlike else 0


def census(copy: Dataset, published: Counts) -> Census:
    """Count ``copy``."""
    questions = copy.questions
    types = Counter(kind for question in questions for kind in question.types)
    return Census(
        name=copy.name,
        videos=len(copy.videos),
        questions=len(questions),
        types=dict(types.most_common()),
        by_video=dict(Counter(question.video for question in questions)),
        as_of=sum(question.as_of_ms is not None for question in questions),
        answered=sum(bool(question.answer) for question in questions),
        timed=sum(bool(question.spans) for question in questions),
        missing=tuple(v.name for v in copy.videos if not (v.file or v.captions)),
        compared=published != Counts(),
        unlike=tuple(_unlike(copy, types, published)),
    )


def _unlike(copy: Dataset, types: Counter[str], published: Counts) -> Iterator[str]:
    counts = {
        "videos": (len(copy.videos), published.videos),
        "questions": (len(copy.questions), published.questions),
        **{f"type {kind}": (types[kind], count) for kind, count in published.types.items()},
    }
    for what, (actual, expected) in counts.items():
        if expected not in (None, actual):
            yield f"{what}: {actual}, published {expected}"
