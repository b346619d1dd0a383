"""Skills: the advice that questions are given, taking it out of use, and learning it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from domain.skills import JudgedTrajectory, Skill
from flows.learning import learn_in_batches, question_type
from flows.workspace import Workspace
from library.params import OnCommandLine
from skills import library as skill_library
from skills.learn import LearningResult
from skills.learn import judge as record_judgement
from skills.library import LibrarySkill, read_skills, store_skills, write_skills
from store.database import Store
from store.queries.trajectories import find_trajectory

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
