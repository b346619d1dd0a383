"""How a result looks in a terminal: a sentence, a table by the type of its rows, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from cli.console import note, say, say_json, say_table
from domain.alerts import Alert, AlertKind, Hit
from domain.people import (
    Correction,
    Forgotten,
    LibraryPerson,
    LikelySame,
    PersonOfVideo,
    tags_in_words,
)
from domain.time import in_seconds
from library.params import Page
from views.words import counted, format_span, plain_line

Columns = Mapping[str, Callable[[Any], object]]

TABLES: dict[type[BaseModel], Columns] = {
    Alert: {
        "alert": lambda one: one.name,
        "waits for": lambda one: one.wants,
        "video": lambda one: one.title or "all",
        "threshold": lambda one: f"{one.threshold:g}" if one.kind is AlertKind.TEXT else "",
        "delivery": lambda one: (
            one.place or (f"{one.delivery} of another machine" if one.delivery else "")
        ),
        "hits": lambda one: one.hits,
    },
    Hit: {
        "recorded": lambda one: f"{one.recorded.astimezone():%Y-%m-%d %H:%M:%S}",
        "alert": lambda one: one.alert,
        "video": lambda one: one.title,
        "time": lambda one: format_span(one.span),
        "score": lambda one: f"{one.score:.2f}",
        "delivery": lambda one: f"{one.state}: {one.error}" if one.error else str(one.state),
        "what": lambda one: one.text,
    },
}
"""The columns of a table of these, by their heads."""


SHOWN: dict[type, Callable[[Any], Iterable[str]]] = {}
"""The lines that show one of these."""

NOTES: dict[type, Callable[[Any], Iterable[str]]] = {}
"""What is said beside these, in lines for the reader and not for a program."""


# People

LikelyPeople = LikelySame[PersonOfVideo]


def _who(one: PersonOfVideo) -> str:
    name, number = tags_in_words(one.label), f"person {one.number}"
    return name if name == number.capitalize() else f"{name} ({number})"


def _beside_forgotten(done: Iterable[Forgotten]) -> Iterable[str]:
    for one in done:
        if one.undo_file:
            yield f"undo it with: homer people undo {one.video} --from {one.undo_file}"
        if one.path:
            yield f"the file is still called {one.path}: rename it, then homer ingest finds it"
        if one.alerts:
            yield f"removed {counted(one.alerts, 'alert')} that named them"


TABLES[PersonOfVideo] = {
    "number": lambda one: one.number,
    "person": lambda one: tags_in_words(one.label),
    "names": lambda one: ", ".join(f"{name.name} ({name.source})" for name in one.names),
    "tags": lambda one: " ".join(tag.strip("<>") for tag in one.tags),
    "seen": lambda one: one.seen,
    "heard": lambda one: one.heard,
    "when": lambda one: format_span(one.span) if one.span else "",
}
TABLES[LibraryPerson] = {
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
TABLES[LikelyPeople] = {
    "video": lambda pair: pair.one.title,
    "person": lambda pair: _who(pair.one),
    "other video": lambda pair: pair.other.title,
    "other": lambda pair: _who(pair.other),
    "alike in": lambda pair: pair.kind,
    "cosine": lambda pair: f"{pair.cosine:.2f}",
    "sure": lambda pair: "yes" if pair.sure else "",
}
SHOWN[Correction] = lambda one: [
    f"{one.number}: {tags_in_words(one.told)}{'  (undone)' if one.undone else ''}"
]
SHOWN[Forgotten] = lambda one: [
    f"person {one.number} is forgotten: {counted(one.rewritten, 'text')} rewritten, "
    f"{counted(one.images, 'image')} and {counted(one.answers, 'answer')} deleted"
]
NOTES[PersonOfVideo] = lambda people: [
    f"person {one.number} may be person {same.number}: {same.reason}"
    for one in people
    for same in one.maybe
    if one.number < same.number
]
NOTES[LibraryPerson] = lambda _: ["who may be the same in different videos: homer people alike"]
NOTES[LikelyPeople] = lambda pairs: [
    "merge the first two with: homer people merge "
    f"{pairs[0].one.video} {pairs[0].one.number} {pairs[0].other.number}"
    f"{'' if pairs[0].one.video == pairs[0].other.video else f' --of {pairs[0].other.video}'}"
]
NOTES[Correction] = lambda made: [
    f"undo it with: homer people undo {one.video} {one.number}"
    for one in made[-1:]
    if not one.undone
]
NOTES[Forgotten] = _beside_forgotten


def render(result: Any, *, json: bool, empty: str = "") -> None:
    """Print the result of an act; of an empty list what is said of it."""
    rows = result.items if isinstance(result, Page) else result
    if json:
        return say_json(in_seconds(to_jsonable_python(rows)))
    if isinstance(rows, str):
        return say(rows)
    rows = rows if isinstance(rows, list | tuple) else [rows]
    if not rows and empty:
        return note(empty)
    kind = type(rows[0]) if rows else BaseModel
    if kind in SHOWN:
        for line in (line for one in rows for line in SHOWN[kind](one)):
            say(plain_line(line))
    else:
        columns = TABLES.get(kind, {})
        say_table([*columns], ([cell(one) for cell in columns.values()] for one in rows))
    for line in NOTES[kind](rows) if kind in NOTES else ():
        note(plain_line(line))
    if isinstance(result, Page) and result.next:
        note(f"{len(rows)} of {result.total}: --offset {result.next}")
    return None
