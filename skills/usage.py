"""How a skill was used, and whether it helped: what pages and people look at before a ban."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from domain.base import Frozen
from store.queries import skill_use as stored
from store.queries.skill_use import Share, Tally, Unit, Use

if TYPE_CHECKING:
    from store.database import Store

__all__ = ["Record", "Tally", "Use", "page_of_sources", "page_of_uses", "record_of"]

DAYS, WEEKS = 60, 400
"""Days up to which use is told day by day, and week by week."""


class Record(Frozen):
    """The use of a skill. ``tallies`` are by ``unit``, without those in which there was none.

    ``judged`` answers to questions that were given it, ``right`` of them; ``expected``: how many
    of them would be right if they went as all judged questions of their types.
    """

    given: int
    judged: int
    right: int
    expected: float
    unit: Unit
    tallies: tuple[Tally, ...]


def record_of(store: Store, name: str) -> Record:
    """How a skill was used, from its first to its last question."""
    with store.begin(snapshot=True) as session:
        between = stored.used_between(session, name)
        unit = unit_for(*between) if between else "day"
        tallies = tuple(stored.tallies(session, name, unit))
        mine, every = stored.shares(session, name), stored.shares(session)
    return Record(
        given=sum(one.given for one in tallies),
        judged=sum(one.judged for one in tallies),
        right=sum(one.right for one in tallies),
        expected=expected(mine, every),
        unit=unit,
        tallies=tallies,
    )


def unit_for(first: datetime, last: datetime) -> Unit:
    """How finely use between two moments is told."""
    lasted = last - first
    if lasted <= timedelta(days=DAYS):
        return "day"
    return "week" if lasted <= timedelta(days=WEEKS) else "month"


def expected(mine: Mapping[str, Share], every: Mapping[str, Share]) -> float:
    """How many of ``mine`` would be right if each type went as ``every`` answer of it."""
    shares = {kind: one.right / one.judged for kind, one in every.items()}
    return sum(one.judged * shares.get(kind, 0.0) for kind, one in mine.items())


def page_of_uses(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Questions that were given a skill, newest first, and how many there are."""
    with store.begin(snapshot=True) as session:
        return stored.uses_page(session, name, offset, limit), stored.count_uses(session, name)


def page_of_sources(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Questions that a skill was learned from, newest first, and how many there are."""
    with store.begin(snapshot=True) as session:
        found = stored.sources_page(session, name, offset, limit)
        return found, stored.count_sources(session, name)
