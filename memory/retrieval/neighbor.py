"""NEIGHBOR: the focus moves along an edge, to a segment called by its label."""

from __future__ import annotations

from domain.asking import Mode
from domain.errors import InputError
from memory.retrieval.event import EdgesOf, Ranked, around, rank_segments
from memory.retrieval.result import Retrieval, UnknownLabel
from memory.retrieval.sought import Sought


def neighbor(sought: Sought, focus: int | None, edges_of: EdgesOf, neighbours: int) -> Retrieval:
    """Move to the neighbour of ``focus`` whose label the query is; case and spaces do not count.

    Raises:
        InputError: there is no focus yet, or it is not in view.
        UnknownLabel: no neighbour has that label.
    """
    ranked = rank_segments(sought)
    here = None if focus is None else ranked.place(focus)
    if here is None:
        raise InputError("NEIGHBOR moves from a segment: search EVENT first")
    place = _labelled(sought, ranked, here, edges_of)
    return around(sought, ranked, place, edges_of, neighbours, Mode.NEIGHBOR)


def _labelled(sought: Sought, ranked: Ranked, here: int, edges_of: EdgesOf) -> int:
    segment = ranked.found[here].segment
    edges = edges_of(segment)
    ids = sorted({e.source for e in edges} | {e.target for e in edges} - {segment.id})
    places = [place for i in ids if i != segment.id and (place := ranked.place(i)) is not None]
    wanted = _plain(sought.query)
    found = [p for p in places if _plain(ranked.found[p].label) == wanted]
    if not found:
        labels = tuple(ranked.found[place].label for place in places)
        raise UnknownLabel(sought.query, labels)
    return found[0]


def _plain(label: str) -> str:
    return " ".join(label.casefold().strip(" \"'.").split())
