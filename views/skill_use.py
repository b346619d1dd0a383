"""Read models of the use of a skill, and whether it helped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from domain.base import Frozen
from domain.skills import Policy
from skills.learn import Shares, usual_without
from store.queries import learning as stored
from store.queries.learning import SkillTally, Unit, Use
from views.translation import translate

if TYPE_CHECKING:
    from store.database import Store

__all__ = [
    "SkillTally",
    "SkillUseRecord",
    "Use",
    "page_of_sources",
    "page_of_uses",
    "skill_use_record",
]

DAYS, WEEKS = 60, 400
"""Days up to which use is counted by day, and by week."""


class SkillUseRecord(Frozen):
    """The use of a skill. ``tallies`` are by ``unit``, without empty units.

    ``judged`` answers to questions that were given it, ``right`` of them; ``expected``: how many of
    them would be right at the rate of similar answers without it (``skills.learn``).
    """

    given: int
    judged: int
    right: int
    expected: float
    unit: Unit
    tallies: tuple[SkillTally, ...]


def skill_use_record(store: Store, name: str) -> SkillUseRecord:
    """Return how a skill was used, from its first to its last question."""
    with store.begin(snapshot=True) as session:
        between = stored.used_between(session, name)
        unit = tally_unit(*between) if between else "day"
        tallies = tuple(stored.tallies(session, name, unit))
        own, total = stored.right_shares(session, name), stored.right_shares(session)
    return SkillUseRecord(
        given=sum(tally.given for tally in tallies),
        judged=sum(tally.judged for tally in tallies),
        right=sum(tally.right for tally in tallies),
        expected=expected_right(own, total),
        unit=unit,
        tallies=tallies,
    )


def tally_unit(first: datetime, last: datetime) -> Unit:
    """Return the unit in which use between two moments is counted."""
    lasted = last - first
    if lasted <= timedelta(days=DAYS):
        return "day"
    return "week" if lasted <= timedelta(days=WEEKS) else "month"


def expected_right(mine: Shares, every: Shares) -> float:
    """Return how many of ``mine`` would be right at the rate of similar answers.

    Answers without similar ones count with their own verdict.
    """
    usual = usual_without(mine, every)
    return sum(
        share.judged * usual[alike] if alike in usual else share.right
        for alike, share in mine.items()
    )


def page_of_uses(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Return questions that were given a skill, newest first, and their number."""
    with store.begin(snapshot=True) as session:
        return stored.uses_page(session, name, offset, limit), stored.count_uses(session, name)


def page_of_sources(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Return questions that a skill was learned from, newest first, and their number."""
    with store.begin(snapshot=True) as session:
        page = stored.sources_page(session, name, offset, limit)
        return page, stored.count_sources(session, name)


def policy_lines(policy: Policy) -> Iterator[str]:
    """Yield what a policy changes for a reasoner that follows rules, in words."""
    if policy.modes:
        yield translate("search in the order {modes}").format(modes=", ".join(policy.modes))
    if policy.split is not None:
        yield (
            translate("split the question")
            if policy.split
            else translate("leave the question whole")
        )


def strategy_line(policy: Policy) -> str:
    """Return which strategy a policy chooses, in words; "" if none."""
    if policy.strategy is None:
        return ""
    line = translate("with --strategy auto: {strategy}").format(strategy=policy.strategy)
    if not policy.rounds:
        return line
    return line + translate(", in at most {count} rounds").format(count=policy.rounds)
