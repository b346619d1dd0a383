"""``homer skills``: the advice that questions are given, and taking it out of use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json, Profile
from domain.skills import JudgedTrajectory
from flows.learning import learn_in_batches, question_type
from flows.workspace import open_workspace
from skills.files import read_skills, write_skills
from skills.learn import LearningResult
from skills.learn import judge as store_judgement
from skills.library import (
    LibrarySkill,
    find_skill,
    list_skills,
    set_banned,
    store_skills,
    trajectories_given,
    trajectories_learned_from,
)
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import find_trajectory
from views.skill_use import policy_lines, strategy_line
from views.words import plain_line, shortened

GUIDE = """List, add and ban skills: short advice on how to search for one kind of question.

A question gets the skills whose description and triggers are similar to it. Positive skills apply
from the start, cautionary ones once a search goes badly. 'homer trajectory ID' shows the skills of
a question.

\b
Examples:
  homer skills
  homer skills show order-of-events
  homer skills import mine.toml
  homer skills ban order-of-events
  homer skills export --out skills.json
"""

VERDICTS = {"right": True, "wrong": False, "unknown": None}
Name = Annotated[str, typer.Argument(metavar="SKILL", help="The skill's name.")]


def _store() -> Store:
    return open_store(Home.default())


def list_all(json: Json = False) -> None:
    """List the skills with version, topic, number of uses, and whether they are banned.

    \b
    Examples:
      homer skills list
      homer skills list --json
    """
    with _store() as store:
        found = list_skills(store)
    if json:
        return say_json([entry.model_dump(mode="json") for entry in found])
    if not found:
        return note("there are no skills yet; 'homer skills import FILE' puts some in")
    heads = ("skill", "version", "topic", "tone", "given", "state", "for")
    return say_table(heads, map(_row, found))


def _row(entry: LibrarySkill) -> tuple[object, ...]:
    skill = entry.skill
    state = "banned" if entry.banned else "in use"
    about = shortened(skill.description, 60)
    return (skill.name, skill.version, skill.topic, skill.tone, entry.uses, state, about)


def show(name: Name, json: Json = False) -> None:
    """Show a skill: its advice, when it applies, and the answers that used it.

    \b
    Examples:
      homer skills show order-of-events
    """
    with _store() as store:
        entry = find_skill(store, name)
        sources, trajectories = (
            trajectories_learned_from(store, name),
            trajectories_given(store, name),
        )
    if json:
        origins = {"learned_from": sources, "trajectories": trajectories}
        return say_json(entry.model_dump(mode="json") | origins)
    for line in _lines(entry):
        say(plain_line(line))
    if sources:
        say(f"learned from {' '.join(sources)}")
    return say(f"given to {entry.uses} questions: {' '.join(trajectories)}".rstrip(": "))


def _lines(entry: LibrarySkill) -> Iterator[str]:
    skill, policy = entry.skill, entry.skill.policy
    state = ", banned" if entry.banned else ""
    yield f"{skill.name}, version {skill.version}: {skill.topic}, {skill.tone}{state}"
    yield f"for: {skill.description}"
    if skill.triggers:
        yield f"triggers: {', '.join(skill.triggers)}"
    yield from (f"- {line}" for line in skill.instructions)
    yield from (f"without a language model: {line}" for line in policy_lines(policy))
    if chosen := strategy_line(policy):
        yield chosen


def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML or JSON file with skills.")],
) -> None:
    """Add skills from a file. A skill with a known name becomes its next version.

    The file has a [[skills]] table for each skill (TOML), or is what 'homer skills export' writes
    (JSON). Code checks each skill: at most five plain sentences, without names, answers or syntax.
    If one is rejected, none is added.

    \b
    Examples:
      homer skills import mine.toml
    """
    skills = read_skills(file)
    with _store() as store:
        fresh = store_skills(store, skills)
    for skill in fresh:
        say(f"{skill.name}: version {skill.version}")
    if len(fresh) < len(skills):
        note(f"{len(skills) - len(fresh)} are in the library as they are")


def export(
    out: Annotated[Path, typer.Option(metavar="FILE", help="JSON file to write.")],
) -> None:
    """Export all skills to a JSON file, which 'homer skills import' reads.

    \b
    Examples:
      homer skills export --out skills.json
    """
    with _store() as store:
        found = [entry.skill for entry in list_skills(store)]
    write_skills(out, found)
    note(f"{out}: {len(found)} skills")


def ban(name: Name) -> None:
    """Stop using a skill. It stays in the list, and 'homer skills unban' reverses this.

    \b
    Examples:
      homer skills ban order-of-events
    """
    _set(name, banned=True)


def unban(name: Name) -> None:
    """Use a banned skill again.

    \b
    Examples:
      homer skills unban order-of-events
    """
    _set(name, banned=False)


def judge(
    trajectory: Annotated[str, typer.Argument(metavar="ID", help="Id of the answer's trajectory.")],
    verdict: Annotated[
        str,
        typer.Argument(metavar="VERDICT", help="right, wrong, or unknown to remove a judgement."),
    ],
) -> None:
    """Judge an answer as right or wrong, for 'homer skills learn'.

    \b
    Examples:
      homer skills judge 3f2a right
    """
    if verdict not in VERDICTS:
        raise typer.BadParameter("say right, wrong or unknown")
    with _store() as store:
        with store.begin() as session:
            row = find_trajectory(session, trajectory)
        kind = question_type(row.question)
        right = VERDICTS[verdict]
        judged = JudgedTrajectory(trajectory=row.id, question_type=kind, right=right)
        store_judgement(store, judged)
    note(f"{row.id}: {verdict}")


def learn(profile: Profile = None, json: Json = False) -> None:
    """Learn skills from the answers judged since the last time.

    A pattern that recurs 8 times for questions of one type becomes a skill, or a new version of
    one. Where several strategies answered the same 8 questions of one type, the one that was right
    most often becomes a skill too: 'homer ask --strategy auto' asks by it. A skill that makes
    answers worse is banned.

    \b
    Examples:
      homer skills learn
      homer skills learn --profile gemini
    """
    with open_workspace(profile) as workspace:
        batches = list(learn_in_batches(workspace))
    if json:
        return say_json([batch.model_dump(mode="json") for batch in batches])
    for line in (line for batch in batches for line in _changes(batch)):
        say(plain_line(line))
    return note(f"learned from {sum(batch.answers for batch in batches)} answers")


def _changes(batch: LearningResult) -> Iterator[str]:
    yield from (f"{skill.name}: version {skill.version}" for skill in batch.written)
    yield from (f"rejected: {fault}" for fault in batch.refused)
    yield from (f"{name} is banned: answers were worse with it" for name in batch.banned)


def _set(name: str, *, banned: bool) -> None:
    with _store() as store:
        set_banned(store, name, banned=banned)
    note(f"{name} is {'banned' if banned else 'in use'}")


def _list_by_default(context: typer.Context) -> None:
    """List the skills for ``homer skills`` without a command."""
    if context.invoked_subcommand is None:
        list_all()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    group.callback()(_list_by_default)
    group.command("list")(list_all)
    group.command()(show)
    group.command("import", no_args_is_help=True)(put)
    group.command()(export)
    group.command()(ban)
    group.command()(unban)
    group.command(no_args_is_help=True)(judge)
    group.command()(learn)
    app.add_typer(group, name="skills", help=GUIDE)
