"""A search of several videos: what answers in each of them, under its title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from domain.search import Finding, Structure, VideoQuote
from retrieval.result import Retrieval

FEW_VIDEOS = 5
"""A question over more videos is answered from all of them as one."""


class VideoResult(NamedTuple):
    """The search of one of several videos by itself."""

    video: str
    title: str
    found: Retrieval


def answered_by_video(structure: Structure, results: Sequence[VideoResult]) -> Retrieval | None:
    """Join the findings of several videos, each with its title; None if none has any."""
    found = [
        (result, result.finding.model_copy(update={"title": title}))
        for _, title, result in results
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


def quoted_by_video(whole: Retrieval, results: Sequence[VideoResult]) -> Retrieval:
    """Add to a search of several videos what answers best in each of them.

    Args:
        whole: The search of all; one with a finding is returned as it is.
        results: The search of each video by itself; empty: they are answered from as one.
    """
    if not results or whole.finding is not None:
        return whole
    quotes = tuple(_quote(*result) for result in results)
    known = {piece.ref for piece in whole.evidence}
    quoted = {ref for quote in quotes for ref in quote.refs} - known
    more = tuple(piece for *_, found in results for piece in found.evidence if piece.ref in quoted)
    far = whole.nothing_close and not any(quote.refs for quote in quotes)
    evidence = (*whole.evidence, *more)
    return whole.model_copy(update={"evidence": evidence, "by_video": quotes, "nothing_close": far})


def _quote(video: str, title: str, found: Retrieval) -> VideoQuote:
    events = (piece.ref for piece in found.evidence if piece.ref.startswith("s"))
    event = "" if found.nothing_close else next(events, "")
    return VideoQuote(
        video=video,
        title=title,
        close=found.extract is not None,
        extract=found.extract,
        event=event,
    )
