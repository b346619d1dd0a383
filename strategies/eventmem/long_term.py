"""The long-term memory: each event's lines, how it differs from the one before, how it goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from domain.built import WatchedClip
from domain.memories import Memory, MemorySource
from domain.people import TAG
from domain.time import TimeSpan

SINCE, NEXT = "Since the event before: ", "Into the next event: "
"""How the two lines of a change log begin."""
_COUNT = re.compile(r"^(?:an?|\d+) ")
NAMED = 8
"""People and things that a change log names at most."""


@dataclass(frozen=True)
class Presence:
    """Who and what is there in an event, each in the order in which it is first there."""

    people: tuple[str, ...] = ()
    things: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Return both."""
        return (*self.people, *self.things)


def presence(clips: Iterable[WatchedClip], span: TimeSpan) -> Presence:
    """Return who is seen, heard or named by tag, and which things are detected, in a span."""
    lines = [
        line
        for clip in clips
        for line in clip.lines
        if span.start_ms <= line.span.start_ms < span.end_ms
    ]
    lines.sort(key=lambda line: (line.span.start_ms, line.id))
    people = dict.fromkeys(who for line in lines for who in _people(line))
    things = dict.fromkeys(
        thing
        for line in lines
        if line.source is MemorySource.OBJECTS
        for thing in _things(line.text)
    )
    return Presence(tuple(people), tuple(things))


def _things(text: str) -> list[str]:
    """Return the things of a line such as "Seen: 2 people, a cup."."""
    counted = text.partition(":")[2].strip(" .").split(", ")
    return [_COUNT.sub("", one) for one in counted if one]


def _people(line: Memory) -> list[str]:
    tags = [match[0] for match in TAG.finditer(line.text)]
    return [*([line.speaker] if line.speaker else []), *line.tags, *tags]


def since_log(before: Presence, now: Presence) -> str:
    """Return how an event differs from the one before."""
    new = [one for one in now.all if one not in before.all][:NAMED]
    gone = [one for one in before.all if one not in now.all][:NAMED]
    parts = [f"new {', '.join(new)}" if new else "", f"gone {', '.join(gone)}" if gone else ""]
    return SINCE + ("; ".join(part for part in parts if part) or "the same people and things")


def next_log(now: Presence, after: Presence) -> str:
    """Return how an event passes into the next."""
    stay = [one for one in now.all if one in after.all][:NAMED]
    return NEXT + (f"{', '.join(stay)} stay" if stay else "nobody and nothing stays")
