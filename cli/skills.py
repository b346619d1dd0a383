"""``homer skills``: the advice that questions are given, and taking it out of use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json, Profile
from views.words import plain_line, shortened

if TYPE_CHECKING:
    from skills.learn import LearningResult
    from skills.library import LibrarySkill
    from store.database import Store

GUIDE = """Show, add and ban skills: short advice that questions like it are given.

A question is given the skills whose description and triggers are like it (cosine above 0.45), as
far as the prompt has room. Positive ones are there from the start, cautionary ones once the search
goes badly. 'homer trajectory ID' shows which skills a question had.

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
    from store.database import open_store
    from store.home import Home

    return open_store(Home.default())


def list_all(json: Json = False) -> None:
    """List the skills: name, version, topic, how often questions were given it, whether banned.

    \b
    Examples:
      homer skills list
      homer skills list --json
    """
    from skills.library import list_skills

    with _store() as store:
        kept = list_skills(store)
    if json:
        return say_json([one.model_dump(mode="json") for one in kept])
    if not kept:
        return note("there are no skills yet; 'homer skills import FILE' puts some in")
    heads = ("skill", "version", "topic", "tone", "given", "state", "for")
    return say_table(heads, (_row(one) for one in kept))


def _row(one: LibrarySkill) -> tuple[object, ...]:
    skill = one.skill
    state = "banned" if one.banned else "in use"
    about = shortened(skill.description, 60)
    return (skill.name, skill.version, skill.topic, skill.tone, one.uses, state, about)


def show(name: Name, json: Json = False) -> None:
    """Show one skill: what it says, when it applies, and the answers that had it.

    \b
    Examples:
      homer skills show order-of-events
    """
    from skills.library import find_skill, trajectories_given, trajectories_learned_from

    with _store() as store:
        one = find_skill(store, name)
        sources, trajectories = (
            trajectories_learned_from(store, name),
            trajectories_given(store, name),
        )
    if json:
        told = {"learned_from": sources, "trajectories": trajectories}
        return say_json(one.model_dump(mode="json") | told)
    for line in _lines(one):
        say(plain_line(line))
    if sources:
        say(f"learned from {' '.join(sources)}")
    return say(f"given to {one.uses} questions: {' '.join(trajectories)}".rstrip(": "))


def _lines(one: LibrarySkill) -> Iterator[str]:
    from views.skill_use import policy_lines

    skill, policy = one.skill, one.skill.policy
    state = ", banned" if one.banned else ""
    yield f"{skill.name}, version {skill.version}: {skill.topic}, {skill.tone}{state}"
    yield f"for: {skill.description}"
    if skill.triggers:
        yield f"triggers: {', '.join(skill.triggers)}"
    yield from (f"- {line}" for line in skill.instructions)
    yield from (f"without a language model: {line}" for line in policy_lines(policy))


def put(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Skills as TOML or JSON.")],
) -> None:
    """Add skills from a file; one whose name is known becomes its next version.

    TOML has a [[skills]] table for each; JSON is what 'homer skills export' writes. Each is
    reviewed by code: plain sentences, at most five, no names, no answers, no syntax. All are kept,
    or none.

    \b
    Examples:
      homer skills import mine.toml
    """
    from skills.files import read_skills
    from skills.library import store_skills

    skills = read_skills(file)
    with _store() as store:
        fresh = store_skills(store, skills)
    for one in fresh:
        say(f"{one.name}: version {one.version}")
    if len(fresh) < len(skills):
        note(f"{len(skills) - len(fresh)} are in the library as they are")


def export(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write them.")],
) -> None:
    """Write all skills to a JSON file that 'homer skills import' reads.

    \b
    Examples:
      homer skills export --out skills.json
    """
    from skills.files import write_skills
    from skills.library import list_skills

    with _store() as store:
        kept = [one.skill for one in list_skills(store)]
    write_skills(out, kept)
    note(f"{out}: {len(kept)} skills")


def ban(name: Name) -> None:
    """Give a skill to no question any more; it can be looked at, and un-banned.

    \b
    Examples:
      homer skills ban order-of-events
    """
    _set(name, banned=True)


def unban(name: Name) -> None:
    """Give a banned skill to questions again.

    \b
    Examples:
      homer skills unban order-of-events
    """
    _set(name, banned=False)


def judge(
    trajectory: Annotated[str, typer.Argument(metavar="ID", help="The answer's trajectory.")],
    verdict: Annotated[
        str, typer.Argument(metavar="VERDICT", help="right, wrong, or unknown to take it back.")
    ],
) -> None:
    """Say whether an answer was right: 'homer skills learn' learns from it.

    \b
    Examples:
      homer skills judge 3f2a right
    """
    from domain.skills import JudgedTrajectory
    from flows.learning import question_type
    from skills.learn import judge as put
    from store.queries.trajectories import find_trajectory

    if verdict not in VERDICTS:
        raise typer.BadParameter("say right, wrong or unknown")
    with _store() as store:
        with store.begin() as session:
            row = find_trajectory(session, trajectory)
        kind = question_type(row.question)
        put(store, JudgedTrajectory(trajectory=row.id, question_type=kind, right=VERDICTS[verdict]))
    note(f"{row.id}: {verdict}")


def learn(profile: Profile = None, json: Json = False) -> None:
    """Learn from the answers that were judged since the last time.

    What comes up 8 times for questions of one type becomes a skill, or a new version of one; a
    skill with which answers got worse is banned.

    \b
    Examples:
      homer skills learn
      homer skills learn --profile gemini
    """
    from flows.learning import learn_in_batches
    from flows.workspace import open_workspace

    with open_workspace(profile) as desk:
        batches = list(learn_in_batches(desk))
    if json:
        return say_json([one.model_dump(mode="json") for one in batches])
    for line in (line for batch in batches for line in _changes(batch)):
        say(plain_line(line))
    return note(f"learned from {sum(one.answers for one in batches)} answers")


def _changes(batch: LearningResult) -> Iterator[str]:
    yield from (f"{one.name}: version {one.version}" for one in batch.written)
    yield from (f"not kept: {fault}" for fault in batch.refused)
    yield from (f"{name} is banned: answers were worse with it" for name in batch.banned)


def _set(name: str, *, banned: bool) -> None:
    from skills.library import set_banned

    with _store() as store:
        set_banned(store, name, banned=banned)
    note(f"{name} is {'banned' if banned else 'in use'}")


def _all(context: typer.Context) -> None:
    """``homer skills`` alone lists them."""
    if context.invoked_subcommand is None:
        list_all()


def register(app: typer.Typer) -> None:
    """Adds the commands of this module."""
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    group.callback()(_all)
    group.command("list")(list_all)
    group.command()(show)
    group.command("import", no_args_is_help=True)(put)
    group.command()(export)
    group.command()(ban)
    group.command()(unban)
    group.command(no_args_is_help=True)(judge)
    group.command()(learn)
    app.add_typer(group, name="skills", help=GUIDE)
