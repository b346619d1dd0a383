"""How a result looks in a terminal: a sentence, a table by the type of its rows, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from json import dumps
from typing import Any

from pydantic_core import to_jsonable_python

from cli import reports
from cli.console import escaped, note, say, say_json, table
from domain.built import cited_times
from domain.people import tags_in_words
from domain.time import in_seconds
from domain.trajectory import canonical_event
from domain.words import counted, format_span, format_time, shortened
from library.answers import answer_line
from library.params import Page
from library.skills import policy_lines, strategy_line

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
    "Asked": {
        "id": lambda one: one.id,
        "state": lambda one: one.state,
        "question": lambda one: shortened(one.question, 50),
        "answer": lambda one: shortened(one.answer or "", 40),
        "fork": lambda one: shortened(one.fork, 90),
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
    yield all_of_them.standing


def _sees(one: Any) -> Iterator[str]:
    if one.everything:
        yield f"{one.user} sees everything, and may change it"
    elif not one.videos:
        yield f"{one.user} sees nothing: homer rights give {one.user} --video VIDEO"
    else:
        yield from (f"{video}  {title}" for video, title in one.videos.items())


def _schedule(one: Any) -> Iterator[str]:
    yield f"{one.name}: {one.kind}, {one.when}, {'on' if one.on else 'paused'}"
    yield from (f"  {key} = {shortened(str(value))}" for key, value in one.options.items())
    if one.last:
        yield f"last: {one.last.state} {_clock(one.last.at)} {one.last.told}".rstrip()


def _recap(written: Any) -> Iterator[str]:
    for one in written.recaps:
        yield f"{one.period}: {one.title}"
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


def _asked(one: Any) -> Iterator[str]:
    yield f"{one.id}  {one.state}  {one.profile}  {one.seconds:.1f} s"
    yield f"question: {one.question}"
    yield from one.steps
    if one.result is None:
        yield "no answer"
        yield f"resume it with: homer resume {one.id}"
        return
    option = f"{one.result.option}. " if one.result.option else ""
    yield f"answer: {option}{one.result.answer}"
    for cited in one.result.citations:
        text = shortened(cited.text, 160)
        yield f"  {format_span(cited.span)}  {text}  ({cited.title}) [{cited.ref}]"


def _round(one: Any) -> Iterator[str]:
    yield from (f"plan {line.id}: {line.text}" for line in one.plan or ())
    if one.action is not None:
        yield f"{one.action.kind} {one.action.mode or ''} {one.action.query or one.action.answer}"
    for piece in one.evidence or ():
        text = shortened(tags_in_words(piece.full_text))
        yield f"  {piece.score:.2f}  {format_span(piece.span)}  [{piece.ref}] {text}"


def _usage(used: Any) -> Iterator[str]:
    heads = ("calls", "failed", "tokens in", "tokens out", "US dollars", "seconds")
    rounds = {str(number) if number else "before": s for number, s in used.by_round.items()}
    for what, parts in (("purpose", used.by_purpose), ("round", rounds)):
        rows = (
            (name, s.calls, s.failed, s.tokens_in, s.tokens_out, f"{s.cost_usd:.4f}", s.ms / 1000)
            for name, s in [*parts.items(), ("all", used.total)]
        )
        yield from table((what, *heads), rows)
        yield ""
    yield f"{used.tokens_in_a_round:.0f} input tokens a round, over {counted(used.rounds, 'round')}"


def _replayed(result: Any) -> Iterator[str]:
    parting = result.divergence
    if parting is None:
        end = "" if result.ended else ", up to where it was interrupted"
        yield (
            f"replay matches exactly ({counted(result.events, 'event')}){end}; "
            f"{counted(result.calls, 'model call')} and {counted(result.searches, 'search')} "
            "from the record, none made"
        )
        return
    yield f"event {parting.at} is the first that differs"
    for side, event in (("recorded", parting.recorded), ("replayed", parting.replayed)):
        yield f"{side}: {canonical_event(event) if event else 'none'}"
    if parting.why:
        yield f"because {parting.why}"


def _difference(found: Any) -> Iterator[str]:
    if not found.same_question:
        yield f"different questions: {found.question_a.text} | {found.question_b.text}"
    for what, parting in (("actions", found.action), ("evidence", found.evidence)):
        if parting is None:
            yield f"{what}: the same in every round"
            continue
        yield f"{what}: differ from round {parting.round} on"
        for side, step in (("A", parting.a), ("B", parting.b)):
            action = step and step.action
            if step is None:
                done = "had ended"
            elif what == "evidence":
                done = " ".join(f"[{ref}]" for ref in step.seen) or "nothing"
            elif action is None:
                done = f"{step.subtask}: nothing"
            else:
                said = (
                    action.answer if action.kind == "answer" else f"{action.mode} {action.query!r}"
                )
                done = f"{step.subtask}: {action.kind} {said}"
            yield f"  {side}: {done}"
    yield f"found by both: {counted(found.both, 'moment')}"
    for side, only in (("A", found.only_a), ("B", found.only_b)):
        for piece in only:
            text = shortened(tags_in_words(piece.text), 90)
            yield f"  only {side}: {format_span(piece.span)}  [{piece.ref}] {text}"
    a, b = (
        answer_line(answer, question) if answer else "nothing"
        for answer, question in (
            (found.answer_a, found.question_a),
            (found.answer_b, found.question_b),
        )
    )
    yield from (
        [f"both answer: {a}"] if found.same_answer else [f"A answers: {a}", f"B answers: {b}"]
    )


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
    "Outline": _from("portrait", "outline_lines"),
    "Found": _found,
    "Asked": _asked,
    "Answered": _from("answers", "answered_lines"),
    "SideBySide": _from("answers", "compared_lines"),
    "ForkEdit": _round,
    "TrajectoryUsage": _usage,
    "Replayed": _replayed,
    "Difference": _difference,
    "dict": lambda event: [escaped(dumps(event, ensure_ascii=False))],
    "LibrarySkill": _skill,
    "Skill": lambda one: [f"{one.name}: version {one.version}"],
    "LearningResult": _learned,
    "Rights": _rights,
    "Sees": _sees,
    "SharedLink": lambda link: [link.url],
    "ScheduleEntry": _schedule,
    "RecapFile": _recap,
}
"""The lines that show one of these."""

NOTES: dict[str, Callable[[Any], Iterable[str]]] = {}
"""What is said beside these, in lines for the reader and not for a program."""

NOTES["SideBySide"] = lambda compared: [
    f"{name}: {why}" for one in compared for name, why in one.failed.items()
]
NOTES["SharedLink"] = lambda links: [
    f"valid until {_clock(links[0].expires_at)}; homer share revoke {links[0].id}"
]


# People


def _who(one: Any) -> str:
    name, number = tags_in_words(one.label), f"person {one.number}"
    return name if name == number.capitalize() else f"{name} ({number})"


def _beside_forgotten(done: Iterable[Any]) -> Iterable[str]:
    for one in done:
        if one.undo_file:
            yield f"undo it with: homer people undo {one.video} --from {one.undo_file}"
        if one.path:
            yield f"the file is still called {one.path}: rename it, then homer ingest finds it"
        if one.alerts:
            yield f"removed {counted(one.alerts, 'alert')} that named them"


TABLES["PersonOfVideo"] = {
    "number": lambda one: one.number,
    "person": lambda one: tags_in_words(one.label),
    "names": lambda one: ", ".join(f"{name.name} ({name.source})" for name in one.names),
    "tags": lambda one: " ".join(tag.strip("<>") for tag in one.tags),
    "seen": lambda one: one.seen,
    "heard": lambda one: one.heard,
    "when": lambda one: format_span(one.span) if one.span else "",
}
TABLES["LibraryPerson"] = {
    "person": lambda one: tags_in_words(one.label),
    "in": lambda one: ", ".join(f"{each.title} ({each.number})" for each in one.characters),
    "last seen": lambda one: (
        f"{format_span(one.last_seen.span)} of {one.last_seen.title}"
        f"{'' if one.last_seen.seen else ' (heard)'}"
        if one.last_seen
        else ""
    ),
    "picture": lambda one: one.last_seen and one.last_seen.keyframe,
}
TABLES["LikelySame[PersonOfVideo]"] = {
    "video": lambda pair: pair.one.title,
    "person": lambda pair: _who(pair.one),
    "other video": lambda pair: pair.other.title,
    "other": lambda pair: _who(pair.other),
    "alike in": lambda pair: pair.kind,
    "cosine": lambda pair: f"{pair.cosine:.2f}",
    "sure": lambda pair: "yes" if pair.sure else "",
}
SHOWN["Correction"] = lambda one: [
    f"{one.number}: {tags_in_words(one.told)}{'  (undone)' if one.undone else ''}"
]
SHOWN["Forgotten"] = lambda one: [
    f"person {one.number} is forgotten: {counted(one.rewritten, 'text')} rewritten, "
    f"{counted(one.images, 'image')} and {counted(one.answers, 'answer')} deleted"
]
NOTES["PersonOfVideo"] = lambda people: [
    f"person {one.number} may be person {same.number}: {same.reason}"
    for one in people
    for same in one.maybe
    if one.number < same.number
]
NOTES["LibraryPerson"] = lambda _: ["who may be the same in different videos: homer people alike"]
NOTES["LikelySame[PersonOfVideo]"] = lambda pairs: [
    "merge the first two with: homer people merge "
    f"{pairs[0].one.video} {pairs[0].one.number} {pairs[0].other.number}"
    f"{'' if pairs[0].one.video == pairs[0].other.video else f' --of {pairs[0].other.video}'}"
]
NOTES["Correction"] = lambda made: [
    f"undo it with: homer people undo {one.video} {one.number}"
    for one in made[-1:]
    if not one.undone
]
NOTES["Forgotten"] = _beside_forgotten


# Upkeep and evaluations

TABLES |= reports.TABLES
SHOWN |= reports.SHOWN
NOTES |= reports.NOTES


def table_lines(kind: str, rows: Sequence[Any]) -> Iterable[str]:
    columns = TABLES[kind]
    return table([*columns], ([cell(one) for cell in columns.values()] for one in rows))


def render(result: Any, *, json: bool, empty: str = "") -> None:
    """Print the result of an act; of an empty list what is said of it.

    A list is a table, where there are columns of what is in it.
    """
    rows = result.items if isinstance(result, Page) else result
    # Lines that come one by one are JSON, and printed as they come.
    if isinstance(result, Iterator):
        for line in result:
            say(escaped(line))
        return None
    if json:
        told = to_jsonable_python(rows)
        # A round is edited and read again: it is written as it is stored.
        return say_json(told if type(rows).__name__ == "ForkEdit" else in_seconds(told))
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
        if result.next:
            notes.append(f"{len(many)} of {result.total}: --offset {result.next}")
    notes += NOTES[kind](many) if kind in NOTES else ()
    for line in filter(None, notes):
        note(line)
    return None
