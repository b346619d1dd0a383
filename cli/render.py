"""How a result looks in a terminal: a sentence, a table by the type of its rows, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from pydantic_core import to_jsonable_python

from cli.console import escaped, note, say, say_json, table
from domain.time import in_seconds
from library.params import Page
from views.recap_links import cited_times
from views.skill_use import policy_lines, strategy_line
from views.words import format_span, format_time, shortened

Columns = Mapping[str, Callable[[Any], object]]

TABLES: dict[str, Columns] = {
    "Alert": {
        "alert": lambda one: one.name,
        "waits for": lambda one: one.wants,
        "video": lambda one: one.title or "all",
        "threshold": lambda one: f"{one.threshold:g}" if one.kind == "text" else "",
        "delivery": lambda one: (
            one.place or (f"{one.delivery} of another machine" if one.delivery else "")
        ),
        "hits": lambda one: one.hits,
    },
    "Hit": {
        "recorded": lambda one: f"{one.recorded.astimezone():%Y-%m-%d %H:%M:%S}",
        "alert": lambda one: one.alert,
        "video": lambda one: one.title,
        "time": lambda one: format_span(one.span),
        "score": lambda one: f"{one.score:.2f}",
        "delivery": lambda one: f"{one.state}: {one.error}" if one.error else str(one.state),
        "what": lambda one: one.text,
    },
    "LibrarySkill": {
        "skill": lambda one: one.skill.name,
        "version": lambda one: one.skill.version,
        "topic": lambda one: one.skill.topic,
        "tone": lambda one: one.skill.tone,
        "given": lambda one: one.uses,
        "state": lambda one: "banned" if one.banned else "in use",
        "for": lambda one: shortened(one.skill.description, 60),
    },
    "SharedLink": {
        "link": lambda one: one.id,
        "shows": lambda one: (
            f"answer {one.trajectory}" if one.span is None else f"{one.video} {one.span}"
        ),
        "valid until": lambda one: _clock(one.expires_at),
        "address": lambda one: one.url,
    },
    "ScheduleEntry": {
        "schedule": lambda one: one.name,
        "kind": lambda one: one.kind,
        "when": lambda one: one.when,
        "state": lambda one: "on" if one.on else "paused",
        "next": lambda one: _clock(one.next),
        "last": lambda one: one.last and one.last.state,
        "at": lambda one: one.last and _clock(one.last.at),
        "found": lambda one: one.last and shortened(one.last.told, 80),
    },
    "LibraryEntry": {
        "id": lambda one: one.id,
        "title": lambda one: one.title,
        "length": lambda one: format_time(one.duration_ms),
        "clips": lambda one: f"{one.done}/{one.clips}",
        "state": lambda one: one.state,
        "profile": lambda one: one.profile,
    },
    "VideoReduction": {
        "id": lambda one: one.video,
        "title": lambda one: one.title,
        "keeps": lambda one: one.keep,
        "images deleted": lambda one: one.images,
        "smaller": lambda one: one.smaller,
        "MB": lambda one: f"{one.bytes / 1e6:.2f}",
    },
    "Moment": {
        "score": lambda one: f"{one.score:.2f}",
        "time": lambda one: format_span(one.span),
        "video": lambda one: one.title,
        "ref": lambda one: one.ref,
        "what": lambda one: shortened(one.text),
    },
    "AuditEntry": {
        "when": lambda one: f"{one.at:%Y-%m-%d %H:%M:%S}",
        "who": lambda one: one.who,
        "did": lambda one: one.deed,
        "what": lambda one: one.subject,
    },
}
"""The columns of a table of these, by their heads.

The shapes are named, not imported: a command imports what it works with and nothing else.
"""


def _clock(at: datetime | None) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}" if at else ""


def _skill(entry: Any) -> Iterator[str]:
    skill = entry.skill
    state = ", banned" if entry.banned else ""
    yield f"{skill.name}, version {skill.version}: {skill.topic}, {skill.tone}{state}"
    yield f"for: {skill.description}"
    if skill.triggers:
        yield f"triggers: {', '.join(skill.triggers)}"
    yield from (f"- {line}" for line in skill.instructions)
    yield from (f"without a language model: {line}" for line in policy_lines(skill.policy))
    if chosen := strategy_line(skill.policy):
        yield chosen
    if entry.learned_from:
        yield f"learned from {' '.join(entry.learned_from)}"
    yield f"given to {entry.uses} questions: {' '.join(entry.trajectories)}".rstrip(": ")


def _learned(batch: Any) -> Iterator[str]:
    yield from (f"{skill.name}: version {skill.version}" for skill in batch.written)
    yield from (f"rejected: {fault}" for fault in batch.refused)
    yield from (f"{name} is banned: answers were worse with it" for name in batch.banned)
    yield f"learned from {batch.answers} answers"


def _rights(all_of_them: Any) -> Iterator[str]:
    for one in all_of_them.grants:
        who = f"group {one.grantee}" if one.is_group else one.grantee
        sees = one.folder or one.title or one.video or "everything, and may change it"
        yield f"{who}  {sees}"
    yield from (f"{one.member} is in the group {one.group}" for one in all_of_them.members)
    yield (
        "rights are enforced"
        if all_of_them.enforced
        else "rights are not enforced, everybody sees everything: homer rights on"
    )


def _sees(one: Any) -> Iterator[str]:
    if one.everything:
        yield f"{one.user} sees everything, and may change it"
    elif not one.videos:
        yield f"{one.user} sees nothing: homer rights give {one.user} --video VIDEO"
    else:
        yield from (f"{video}  {title}" for video, title in one.videos.items())


def _link(link: Any) -> Iterator[str]:
    yield link.url
    yield f"valid until {_clock(link.expires_at)}; homer share revoke {link.id}"


def _schedule(one: Any) -> Iterator[str]:
    yield f"{one.name}: {one.kind}, {one.when}, {'on' if one.on else 'paused'}"
    yield from (f"  {key} = {shortened(str(value))}" for key, value in one.options.items())
    if one.last:
        yield f"last: {one.last.state} {_clock(one.last.at)} {one.last.told}".rstrip()


def _recap(written: Any) -> Iterator[str]:
    for one in written.recaps:
        yield f"{one.period.name}: {one.title}"
        yield from cited_times(one.text).splitlines()
    yield "nothing of that time is in memory" if written.file is None else str(written.file)


def _tool(one: Any) -> Iterator[str]:
    yield f"{one.name} ({one.strategy}): {one.description}"
    properties, needed = one.arguments["properties"], one.arguments.get("required", [])
    optional = [key for key in properties if key not in needed]
    yield f"  arguments: {', '.join([*needed, *(f'[{key}]' for key in optional)])}"


CLOSE = 10
"""Moments that are printed of a search, at most."""


def _found(found: Any) -> Iterator[str]:
    shown = found.evidence[: min(CLOSE, found.close)]
    if not shown:
        nearest = "; --json has what is nearest" if found.evidence else ""
        note(f"nothing close was found{nearest}")
    elif found.focus is not None:
        yield f"event {format_span(found.focus.span)}  {shortened(found.focus.label)}"
    yield from table_lines("Moment", shown) if shown else ()
    if shown and len(shown) < len(found.evidence):
        note(f"{len(found.evidence) - len(shown)} less close ones are not shown: --json has all")
    for one in found.neighbours if shown else ():
        yield f"near it: {format_span(one.span)}  {shortened(one.label)}"
    for line in found.notes:
        note(line)
    if found.cost:
        note(f"the search took {found.cost} of the embeddings endpoint")


def _checked(checked: Any) -> Iterator[str]:
    size = f"{checked.segments} segments, {checked.edges} edges over {checked.clips} clips"
    size += f", {checked.images} images"
    if not checked.findings:
        yield f"{checked.title}: consistent ({size})"
        return
    yield f"{checked.title}: {len(checked.findings)} findings in {size}"
    for finding in checked.findings:
        yield f"  {finding.fault}: {finding.text}  [{', '.join(finding.refs)}]"


def _cut(cut: Any) -> Iterator[str]:
    yield f"{cut.file}: {format_span(cut.span)}, {cut.file.stat().st_size / 1e6:.1f} MB"
    if not cut.copied:
        note("encoded again: no keyframe is near the start, or MP4 cannot hold it")


def _from(module: str, name: str) -> Callable[[Any], Iterable[str]]:
    """Return what shows something by a module that only commands which show it import."""
    return lambda one: getattr(import_module(f"cli.{module}"), name)(one)


SHOWN: dict[str, Callable[[Any], Iterable[str]]] = {
    "str": str.splitlines,
    "ToolLine": _tool,
    "VideoDetails": _from("portrait", "portrait_lines"),
    "VideoCheck": _checked,
    "Cut": _cut,
    "Outline": _from("outline", "outline_lines"),
    "Found": _found,
    "LibrarySkill": _skill,
    "Skill": lambda one: [f"{one.name}: version {one.version}"],
    "LearningResult": _learned,
    "Rights": _rights,
    "Sees": _sees,
    "SharedLink": _link,
    "ScheduleEntry": _schedule,
    "RecapFile": _recap,
}
"""The lines that show one of these."""


def table_lines(kind: str, rows: Sequence[Any]) -> Iterable[str]:
    """Return the lines of a table of these."""
    columns = TABLES[kind]
    return table([*columns], ([cell(one) for cell in columns.values()] for one in rows))


def render(result: Any, *, json: bool, empty: str = "") -> None:
    """Print the result of an act; of an empty list what is said of it.

    A list is a table, where there are columns of what is in it. Lines that come one by one are
    JSON, and printed as they come.
    """
    rows = result.items if isinstance(result, Page) else result
    if isinstance(result, Iterator):
        for line in result:
            say(escaped(line))
        return None
    if json:
        return say_json(in_seconds(to_jsonable_python(rows)))
    is_list = isinstance(rows, list | tuple)
    many = list(rows) if is_list else [rows]
    kind = type(many[0]).__name__ if many else ""
    is_table = kind in TABLES and (is_list or kind not in SHOWN)
    shown = (
        table_lines(kind, many) if is_table else (one for row in many for one in SHOWN[kind](row))
    )
    for line in shown:
        say(line)
    notes = [] if many else [empty]
    if isinstance(result, Page):
        notes += result.notes
        notes += [f"{len(many)} of {result.total}: --limit {result.total}"] * (
            result.total > len(many)
        )
    for line in filter(None, notes):
        note(line)
    return None
