"""How strongly the evidence of a search speaks for each option of the question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domain.asking import Evidence
from domain.ranking import Weighed
from memory.retrieval.field import Scores
from memory.retrieval.moments import line_scores
from memory.retrieval.sought import Sought

DIGITS = 4
"""Decimals that are kept of a score."""
TEMPERATURE = 8.0
"""Deviations added up, divided by this, are about logits: fitted on judged answers, and rounded."""


def temperature(sought: Sought) -> float:
    """What scores of this search are divided by to be logits; 1 where they are logits already."""
    field = sought.field
    return 1.0 if field is None or field.line_support is not None else TEMPERATURE


def weighed(sought: Sought, evidence: Sequence[Evidence]) -> tuple[Weighed, ...]:
    """Lines and images by option; a segment is weighed by its lines, where they are found.

    A line by its clip and its own words, an image by its clip.
    """
    if sought.field is None or not sought.asked.options:
        return ()
    lines = _lines(sought, [e for e in evidence if e.ref.startswith("m")])
    images = [
        (e.ref, _of_clip(sought, e))
        for e in evidence
        if e.ref.startswith("k") and e.clip is not None
    ]
    told = [*lines, *((ref, scores) for ref, scores in images if scores is not None)]
    return tuple(
        Weighed(ref=ref, scores=tuple(round(float(s), DIGITS) for s in scores))
        for ref, scores in told
    )


def _lines(sought: Sought, evidence: Sequence[Evidence]) -> list[tuple[str, Scores]]:
    view, field = sought.panorama, sought.field
    ids = np.array(sorted(int(e.ref[1:]) for e in evidence), dtype=np.int64)
    numbers = np.flatnonzero(np.isin(view.ids, ids))
    if field is None or not len(numbers):
        return []
    cells = view.cell_of_line[numbers]
    actors = field.support[:, cells] - field.options[:, cells]
    scores = line_scores(view, sought.asked, field, numbers) + actors
    return [(f"m{view.ids[n]}", scores[:, i]) for i, n in enumerate(numbers)]


def _of_clip(sought: Sought, image: Evidence) -> Scores | None:
    field = sought.field
    cells = sought.panorama.cells_of(image.video, [image.clip or 0])
    if field is None or not len(cells):
        return None
    return np.asarray(field.support[:, cells[0]], dtype=np.float64)
