"""How a skill was used, and whether it helped: what pages and people look at before a ban."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from domain.base import Frozen
from domain.skills import Policy
from skills.bans import Shares, usual_without
from store.queries import skill_use as stored
from store.queries.skill_use import SkillTally, Unit, Use

if TYPE_CHECKING:
    from store.database import Store

__all__ = ["Record", "SkillTally", "Use", "page_of_sources", "page_of_uses", "record_of"]

DAYS, WEEKS = 60, 400
"""Days up to which use is told day by day, and week by week."""


class Record(Frozen):
    """The use of a skill. ``tallies`` are by ``unit``, without those in which there was none.

    ``judged`` answers to questions that were given it, ``right`` of them; ``expected``: how many
    of them would be right if they went as others like them (``skills.bans``) without it.
    """

    given: int
    judged: int
    right: int
    expected: float
    unit: Unit
    tallies: tuple[SkillTally, ...]


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


def expected(mine: Shares, every: Shares) -> float:
    """How many of ``mine`` would be right if they went as the other answers that are like them.

    Those that no other is like count as they went.
    """
    usual = usual_without(mine, every)
    return sum(
        one.judged * usual[alike] if alike in usual else one.right for alike, one in mine.items()
    )


def page_of_uses(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Questions that were given a skill, newest first, and how many there are."""
    with store.begin(snapshot=True) as session:
        return stored.uses_page(session, name, offset, limit), stored.count_uses(session, name)


def page_of_sources(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Questions that a skill was learned from, newest first, and how many there are."""
    with store.begin(snapshot=True) as session:
        found = stored.sources_page(session, name, offset, limit)
        return found, stored.count_sources(session, name)


def policy_lines(policy: Policy) -> Iterator[str]:
    """What a policy changes, in words."""
    if policy.modes:
        yield f"search in the order {', '.join(policy.modes)}"
    if policy.split is not None:
        yield "split the question" if policy.split else "leave the question whole"
