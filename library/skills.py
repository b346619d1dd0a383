"""Skills: the advice that questions are given, taking it out of use, and learning it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from domain.base import Frozen
from domain.skills import JudgedTrajectory, Policy, Skill
from domain.words import translate
from flows.learning import learn_in_batches, question_type
from flows.workspace import Workspace
from library.params import OnCommandLine
from skills import library as skill_library
from skills.learn import LearningResult, Shares, usual_without
from skills.learn import judge as record_judgement
from skills.library import LibrarySkill, read_skills, store_skills, write_skills
from store.database import Store
from store.queries import learning as stored
from store.queries.learning import SkillTally, Unit, Use
from store.queries.trajectories import find_trajectory

DAYS, WEEKS = 60, 400
"""Days up to which use is counted by day, and by week."""
VERDICTS = {"right": True, "wrong": False, "unknown": None}

Name = Annotated[str, Field(description="The skill's name."), OnCommandLine(metavar="SKILL")]


def skills(store: Store) -> list[LibrarySkill]:
    """List the skills with version, topic, number of uses, and whether they are banned.

    Examples:
      homer skills list
      homer skills list --json
    """
    return skill_library.list_skills(store)


def skill(store: Store, name: Name) -> LibrarySkill:
    """Show a skill: its advice, when it applies, and the answers that used it.

    Examples:
      homer skills show order-of-events

    Raises:
        NotFound: there is no skill of that name.
    """
    found = skill_library.find_skill(store, name)
    origins = {
        "learned_from": tuple(skill_library.trajectories_learned_from(store, name)),
        "trajectories": tuple(skill_library.trajectories_given(store, name)),
    }
    return found.model_copy(update=origins)


def add_skills(
    store: Store,
    file: Annotated[
        Path,
        Field(description="TOML or JSON file with skills."),
        OnCommandLine(metavar="FILE", only=True),
    ],
) -> list[Skill]:
    """Add skills from a file. A skill with a known name becomes its next version.

    The file has a [[skills]] table for each skill (TOML), or is what 'homer skills export' writes
    (JSON). Code checks each skill: at most five plain sentences, without names, answers or syntax.
    If one is rejected, none is added. Those that are in the library as they are stay so.

    Examples:
      homer skills import mine.toml

    Raises:
        InputError: the file cannot be read, or a skill is rejected.
    """
    return store_skills(store, read_skills(file))


def export_skills(
    store: Store,
    out: Annotated[
        Path, Field(description="JSON file to write."), OnCommandLine("--out", only=True)
    ],
) -> str:
    """Export all skills to a JSON file, which 'homer skills import' reads.

    Examples:
      homer skills export --out skills.json

    Raises:
        InputError: the file cannot be written.
    """
    found = [entry.skill for entry in skill_library.list_skills(store)]
    write_skills(out, found)
    return f"{out}: {len(found)} skills"


def ban_skill(store: Store, name: Name) -> str:
    """Stop using a skill. It stays in the list, and 'homer skills unban' reverses this.

    Examples:
      homer skills ban order-of-events

    Raises:
        NotFound: there is no skill of that name.
    """
    skill_library.set_banned(store, name, banned=True)
    return f"{name} is banned"


def unban_skill(store: Store, name: Name) -> str:
    """Use a banned skill again.

    Examples:
      homer skills unban order-of-events

    Raises:
        NotFound: there is no skill of that name.
    """
    skill_library.set_banned(store, name, banned=False)
    return f"{name} is in use"


def judge_answer(
    store: Store,
    id: Annotated[str, Field(description="Id of the answer's trajectory.")],  # noqa: A002 - what users type
    verdict: Annotated[
        Literal["right", "wrong", "unknown"],
        Field(description="right, wrong, or unknown to remove a judgement."),
    ],
) -> str:
    """Judge an answer as right or wrong, for 'homer skills learn'.

    Examples:
      homer skills judge 3f2a right

    Raises:
        NotFound: there is no such trajectory.
    """
    with store.begin() as session:
        row = find_trajectory(session, id)
    # Answers are compared with those to questions of the same type.
    kind = question_type(row.question)
    judged = JudgedTrajectory(trajectory=row.id, question_type=kind, right=VERDICTS[verdict])
    record_judgement(store, judged)
    return f"{row.id}: {verdict}"


def learn_skills(workspace: Workspace) -> list[LearningResult]:
    """Learn skills from the answers judged since the last time.

    A pattern that recurs 8 times for questions of one type becomes a skill, or a new version of
    one. Where several strategies answered the same 8 questions of one type, the one that was right
    most often becomes a skill too: 'homer ask --strategy auto' asks by it. A skill that makes
    answers worse is banned.

    Examples:
      homer skills learn
      homer skills learn --profile gemini
    """
    return list(learn_in_batches(workspace))


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
        unit = tally_unit(between[0], between[1]) if between else "day"
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
    """Return how many of ``mine`` would be right at the rate of similar answers."""
    usual = usual_without(mine, every)
    return sum(
        # Answers without similar ones count with their own verdict.
        share.judged * usual[alike] if alike in usual else share.right
        for alike, share in mine.items()
    )


def page_of_uses(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Return questions that were given a skill, newest first, and their number."""
    with store.begin(snapshot=True) as session:
        return stored.uses_page(session, name, offset, limit)


def page_of_sources(store: Store, name: str, offset: int, limit: int) -> tuple[list[Use], int]:
    """Return questions that a skill was learned from, newest first, and their number."""
    with store.begin(snapshot=True) as session:
        return stored.sources_page(session, name, offset, limit)


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
