"""The people of a view: faces and voices with their times, and the most at one time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from domain.memories import MemorySource
from domain.people import TAG
from domain.search import Asks, Finding, Structure, StructurePart
from retrieval.people_in_query import ViewPerson
from retrieval.query_context import QueryContext
from retrieval.structural.rows import merge_spans, total_ms
from retrieval.terms import terms
from retrieval.view_lines import ViewLine

BRIEF_MS = 2_000
"""A person seen for less time and never heard may be a picture or a false detection."""
BRIEF_SHARE = 0.25
"""The time limit is at most this share of the longest time that anybody is seen."""
SHOWN = 3
"""Maximum number of lines cited for one person."""
PLACES = "where people are was not recorded"
"""Why people at a place cannot be counted."""
_COUNTED = re.compile(r"\b(\d+) people\b")


@dataclass(frozen=True)
class PersonInView:
    """A person with the lines in which they are seen and heard."""

    person: ViewPerson
    seen: tuple[ViewLine, ...]
    heard: tuple[ViewLine, ...]

    @property
    def rows(self) -> tuple[ViewLine, ...]:
        """Representative lines: the longest ones seen and heard, in the order of time."""
        seen, heard = (sorted(lines, key=_longest)[:SHOWN] for lines in (self.seen, self.heard))
        chosen = [*seen[:1], *heard[:2]] if heard else seen[:2]
        return tuple(sorted(chosen, key=lambda row: row.line.start_ms))


def _longest(row: ViewLine) -> tuple[int, int]:
    return (row.line.start_ms - row.line.end_ms, row.line.start_ms)


def all_people(context: QueryContext) -> tuple[PersonInView, ...]:
    """Return the people seen or heard in the view: seen ones first, by falling duration."""
    rows = context.rows
    shown = [row for row in rows if row.presence]
    spoken = [row for row in rows if row.spoken and row.line.speaker]
    people_seen = [_person_in_view(person, shown, spoken) for person in context.people.people]
    known = [person for person in people_seen if person.seen or person.heard]
    return tuple(sorted(known, key=_order))


def _person_in_view(
    person: ViewPerson, shown: Sequence[ViewLine], spoken: Sequence[ViewLine]
) -> PersonInView:
    tags = frozenset(person.tags)
    names = {person.character.name, *person.character.aliases} - {None}
    return PersonInView(
        person,
        tuple(r for r in shown if r.video == person.video and tags & _tags(r.line.text)),
        tuple(r for r in spoken if r.video == person.video and r.line.speaker in tags | names),
    )


def _tags(text: str) -> set[str]:
    return {match[0] for match in TAG.finditer(text)}


def _order(in_view: PersonInView) -> tuple[bool, int, int]:
    spans = [row.span for row in in_view.seen or in_view.heard]
    return (not in_view.seen, -total_ms(merge_spans(spans)), in_view.person.character.number)


def people(
    context: QueryContext, structure: Structure
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """Return who is in view and how many; None without identified people.

    Those at a place that the question names can be told only where everybody is in view at once.
    """
    people_seen = all_people(context)
    if structure.manner == "said":
        people_seen = tuple(person for person in people_seen if person.heard)
    if not people_seen:
        return None
    parts = _with_brief([_part(person) for person in people_seen])
    # By the faces that were detected, or the people counted as objects: not each has a line.
    counted = [
        int(number)
        for row in context.rows
        if row.line.source == MemorySource.OBJECTS
        for number in _COUNTED.findall(row.line.text)
    ]
    together = max([context.faces_together(), *counted])
    why = "" if not structure.subject or _all_at_once(parts, together) else PLACES
    return (
        Finding(
            asks=structure.asks,
            manner=structure.manner,
            parts=tuple(parts),
            together=together,
            unrecorded=why,
        ),
        tuple(row for person in people_seen for row in person.rows),
    )


def _all_at_once(parts: Sequence[StructurePart], together: int) -> bool:
    return sum(bool(part.seen) for part in parts) == together


def _part(in_view: PersonInView) -> StructurePart:
    character = in_view.person.character
    line = (in_view.seen or in_view.heard)[0]
    spoken_tag = line.line.speaker if not in_view.seen else _tag_in_line(line, in_view.person)
    return StructurePart(
        label=character.shown(spoken_tag or character.tag),
        refs=tuple(row.ref for row in in_view.rows),
        seen=merge_spans(row.span for row in in_view.seen),
        heard=merge_spans(row.span for row in in_view.heard),
    )


def _tag_in_line(row: ViewLine, person: ViewPerson) -> str:
    return next((tag for tag in person.tags if tag in row.line.text), person.character.tag)


def _with_brief(parts: Sequence[StructurePart]) -> list[StructurePart]:
    """Mark people who are seen too briefly to be certain, and sort them last."""
    longest = max(total_ms(part.seen) for part in parts)
    marked = [
        part.model_copy(update={"brief": _is_brief(part, longest) and len(parts) > 1})
        for part in parts
    ]
    return sorted(marked, key=lambda part: part.brief)


def _is_brief(part: StructurePart, longest: int) -> bool:
    shown = total_ms(part.seen)
    return bool(part.seen) and not part.heard and shown < min(BRIEF_MS, BRIEF_SHARE * longest)


def speakers(
    context: QueryContext, structure: Structure
) -> tuple[Finding, tuple[ViewLine, ...]] | None:
    """Return who speaks when, or when one person speaks.

    None without identified voices, or if the subject is a sound other than speech.
    """
    heard = [person for person in all_people(context) if person.heard]
    if not heard or _is_sound(context, structure.subject):
        return None
    if not structure.subject:
        parts = [
            _spoken(person)
            for person in sorted(heard, key=lambda person: person.heard[0].line.start_ms)
        ]
        return _finding(
            structure, parts, [row for person in heard for row in _representative_speech(person)]
        )
    person_meant = _person_meant(context, structure.subject, heard)
    if person_meant is None:
        why = f"which of the {len(heard)} voices is meant by {structure.subject!r} was not recorded"
        return _finding(
            structure,
            [_spoken(person) for person in heard],
            [_representative_speech(person)[0] for person in heard],
            why,
        )
    return _finding(structure, [_spoken(person_meant)], _representative_speech(person_meant))


def _is_sound(context: QueryContext, subject: str) -> bool:
    words = set(terms(subject))
    return any(words & row.sound for row in context.rows)


def _finding(
    structure: Structure, parts: Sequence[StructurePart], rows: Sequence[ViewLine], why: str = ""
) -> tuple[Finding, tuple[ViewLine, ...]]:
    finding = Finding(
        asks=Asks.SPEAKERS, subject=structure.subject, manner="said", parts=tuple(parts)
    )
    return finding.model_copy(update={"unrecorded": why}), tuple(rows)


def _spoken(in_view: PersonInView) -> StructurePart:
    label = in_view.person.character.shown(
        in_view.heard[0].line.speaker or in_view.person.character.tag
    )
    rows = _representative_speech(in_view)
    return StructurePart(
        label=label,
        refs=tuple(row.ref for row in rows),
        heard=merge_spans(row.span for row in in_view.heard),
    )


def _representative_speech(in_view: PersonInView) -> list[ViewLine]:
    """Return the longest line of each of the longest stretches of a person's speech."""
    stretches = sorted(
        merge_spans(row.span for row in in_view.heard),
        key=lambda stretch: stretch.start_ms - stretch.end_ms,
    )
    firsts = (
        max(
            (
                row
                for row in in_view.heard
                if stretch.start_ms <= row.line.start_ms <= stretch.end_ms
            ),
            key=_length,
        )
        for stretch in stretches[:SHOWN]
    )
    return list(firsts)


def _length(row: ViewLine) -> int:
    return row.line.end_ms - row.line.start_ms


def _person_meant(
    context: QueryContext, subject: str, heard: Sequence[PersonInView]
) -> PersonInView | None:
    """Resolve a subject to a speaker: by name or tag, by a role on screen, or the only one."""
    named = {person.character.number for person in context.people.named_in(subject)}
    candidates = [person for person in heard if person.person.character.number in named]
    candidates = candidates or [person for person in heard if _has_role(context, subject, person)]
    if candidates:
        return candidates[0] if len(candidates) == 1 else None
    unnamed = subject.islower() or subject.lower().startswith(("the ", "he", "she"))
    return heard[0] if len(heard) == 1 and unnamed else None


def _has_role(context: QueryContext, subject: str, in_view: PersonInView) -> bool:
    words = set(terms(subject))
    notes = (row for row in context.rows if row.names_somebody)
    notes_of_video = (row for row in notes if row.video == in_view.person.video)
    return bool(words) and any(
        words <= set(terms(row.line.text)) and _tags(row.line.text) & set(in_view.person.tags)
        for row in notes_of_video
    )
