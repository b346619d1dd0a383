"""Who is in a view: people seen and voices heard, with their times, and how many at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.memories import MemorySource
from domain.people import TAG
from domain.search import Asks, Finding, Structure, StructurePart
from retrieval.people_in_query import ViewPerson
from retrieval.query_context import QueryContext
from retrieval.structural.rows import joined, length_ms
from retrieval.terms import terms
from retrieval.view_lines import ViewLine

BRIEF_MS = 2_000
"""Who is seen for less, and never heard, may be a picture or a mistake."""
BRIEF_SHARE = 0.25
"""Unless nobody is seen for much longer."""
SHOWN = 3
"""Lines that are cited for one person at most."""
_COUNTED = re.compile(r"\b(\d+) people\b")


@dataclass(frozen=True)
class PersonInView:
    """A person with the lines in which they are seen and heard."""

    person: ViewPerson
    seen: tuple[ViewLine, ...]
    heard: tuple[ViewLine, ...]

    @property
    def rows(self) -> tuple[ViewLine, ...]:
        """The lines that show them best: the longest, each kind by turns, by time."""
        seen, heard = (sorted(some, key=_longest)[:SHOWN] for some in (self.seen, self.heard))
        chosen = [*seen[:1], *heard[:2]] if heard else seen[:2]
        return tuple(sorted(chosen, key=lambda row: row.line.start_ms))


def _longest(row: ViewLine) -> tuple[int, int]:
    return (row.line.start_ms - row.line.end_ms, row.line.start_ms)


def everybody(context: QueryContext) -> tuple[PersonInView, ...]:
    """All who are seen or heard in the view, those seen first, the longest first."""
    rows = context.rows
    shown = [row for row in rows if row.presence]
    spoken = [row for row in rows if row.spoken and row.line.speaker]
    met = [_met(person, shown, spoken) for person in context.people.people]
    known = [one for one in met if one.seen or one.heard]
    return tuple(sorted(known, key=_order))


def _met(person: ViewPerson, shown: Sequence[ViewLine], spoken: Sequence[ViewLine]) -> PersonInView:
    tags = frozenset(person.tags)
    names = {person.character.name, *person.character.aliases} - {None}
    return PersonInView(
        person,
        tuple(r for r in shown if r.video == person.video and tags & _tags(r.line.text)),
        tuple(r for r in spoken if r.video == person.video and r.line.speaker in tags | names),
    )


def _tags(text: str) -> set[str]:
    return {found[0] for found in TAG.finditer(text)}


def _order(one: PersonInView) -> tuple[bool, int, int]:
    spans = [row.span for row in one.seen or one.heard]
    return (not one.seen, -length_ms(joined(spans)), one.person.character.number)


def people(context: QueryContext, asked: Structure) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """Who is in it, or how many; None where nobody was told apart."""
    met = everybody(context)
    if asked.manner == "said":
        met = tuple(one for one in met if one.heard)
    if not met:
        return None
    parts = _with_brief([_part(one) for one in met])
    return (
        Finding(
            asks=asked.asks,
            manner=asked.manner,
            parts=tuple(parts),
            together=_together(context.rows),
        ),
        tuple(row for one in met for row in one.rows),
    )


def _part(one: PersonInView) -> StructurePart:
    tag = one.person.character
    own = (one.seen or one.heard)[0]
    spoken_tag = own.line.speaker if not one.seen else _own_tag(own, one.person)
    return StructurePart(
        label=tag.shown(spoken_tag or tag.tag),
        refs=tuple(row.ref for row in one.rows),
        seen=joined(row.span for row in one.seen),
        heard=joined(row.span for row in one.heard),
    )


def _own_tag(row: ViewLine, person: ViewPerson) -> str:
    return next((tag for tag in person.tags if tag in row.line.text), person.character.tag)


def _with_brief(parts: Sequence[StructurePart]) -> list[StructurePart]:
    """The people with those marked who are seen too shortly to be sure of, at the end."""
    longest = max(length_ms(one.seen) for one in parts)
    marked = [
        one.model_copy(update={"brief": _is_brief(one, longest) and len(parts) > 1})
        for one in parts
    ]
    return sorted(marked, key=lambda one: one.brief)


def _is_brief(one: StructurePart, longest: int) -> bool:
    shown = length_ms(one.seen)
    return bool(one.seen) and not one.heard and shown < min(BRIEF_MS, BRIEF_SHARE * longest)


def _together(rows: Sequence[ViewLine]) -> int:
    """The most people shown at one time: by their faces, or as counted on an image."""
    faces = [len(_tags(row.line.text)) for row in rows if row.presence]
    counted = [
        int(number)
        for row in rows
        if row.line.source == MemorySource.OBJECTS
        for number in _COUNTED.findall(row.line.text)
    ]
    return max([0, *faces, *counted])


def speakers(
    context: QueryContext, asked: Structure
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """Who speaks and when, or when one person does.

    None where no voices were told apart, or a sound that is no voice is meant.
    """
    heard = [one for one in everybody(context) if one.heard]
    if not heard or _is_sound(context, asked.subject):
        return None
    if not asked.subject:
        every = [_spoken(one) for one in sorted(heard, key=lambda o: o.heard[0].line.start_ms)]
        return _finding(asked, every, [row for one in heard for row in _talk(one)])
    meant = _meant(context, asked.subject, heard)
    if meant is None:
        why = f"which of the {len(heard)} voices is meant by {asked.subject!r} was not recorded"
        return _finding(asked, [_spoken(o) for o in heard], [_talk(o)[0] for o in heard], why)
    return _finding(asked, [_spoken(meant)], _talk(meant))


def _is_sound(context: QueryContext, subject: str) -> bool:
    words = set(terms(subject))
    return any(row.sound and words & set(terms(row.line.text)) for row in context.rows)


def _finding(
    asked: Structure, parts: Sequence[StructurePart], rows: Sequence[ViewLine], why: str = ""
) -> tuple[Finding, tuple[ViewLine, ...]]:
    found = Finding(asks=Asks.SPEAKERS, subject=asked.subject, manner="said", parts=tuple(parts))
    return found.model_copy(update={"unrecorded": why}), tuple(rows)


def _spoken(one: PersonInView) -> StructurePart:
    label = one.person.character.shown(one.heard[0].line.speaker or one.person.character.tag)
    rows = _talk(one)
    return StructurePart(
        label=label,
        refs=tuple(row.ref for row in rows),
        heard=joined(row.span for row in one.heard),
    )


def _talk(one: PersonInView) -> list[ViewLine]:
    """The lines that show best when somebody speaks: the first of the longest stretches."""
    stretches = sorted(joined(row.span for row in one.heard), key=lambda s: s.start_ms - s.end_ms)
    firsts = (
        max((r for r in one.heard if s.start_ms <= r.line.start_ms <= s.end_ms), key=_length)
        for s in stretches[:SHOWN]
    )
    return list(firsts)


def _length(row: ViewLine) -> int:
    return row.line.end_ms - row.line.start_ms


def _meant(
    context: QueryContext, subject: str, heard: Sequence[PersonInView]
) -> PersonInView | None:
    """Whom the words mean: by name or tag, by a role that was shown, or the only one there is."""
    named = {one.character.number for one in context.people.named_in(subject)}
    found = [one for one in heard if one.person.character.number in named]
    found = found or [one for one in heard if _has_role(context, subject, one)]
    if found:
        return found[0] if len(found) == 1 else None
    unnamed = subject.islower() or subject.lower().startswith(("the ", "he", "she"))
    return heard[0] if len(heard) == 1 and unnamed else None


def _has_role(context: QueryContext, subject: str, one: PersonInView) -> bool:
    words = set(terms(subject))
    notes = (row for row in context.rows if row.names_somebody)
    own = (row for row in notes if row.video == one.person.video)
    return bool(words) and any(
        words <= set(terms(row.line.text)) and _tags(row.line.text) & set(one.person.tags)
        for row in own
    )
