"""A structural search of several videos: the finding of each, under its title."""

from __future__ import annotations

from collections.abc import Sequence

from domain.search import Finding, Structure
from retrieval.result import Retrieval

MOST_VIDEOS = 5
"""With more videos in view, a question is answered from all of them as one."""


def answered_by_video(
    structure: Structure, results: Sequence[tuple[str, Retrieval]]
) -> Retrieval | None:
    """Join the results of several videos, each with its title; None if none has a finding."""
    found = [
        (result, result.finding.model_copy(update={"title": title}))
        for title, result in results
        if result.finding is not None and not result.finding.unrecorded
    ]
    if not found:
        return None
    first = found[0][0]
    whole = Finding(
        asks=structure.asks,
        subject=structure.subject,
        manner=structure.manner,
        each=tuple(finding for _, finding in found),
    )
    return first.model_copy(
        update={
            "evidence": tuple(piece for result, _ in found for piece in result.evidence),
            "searched": "; ".join(result.searched for result, _ in found),
            "finding": whole,
        }
    )
