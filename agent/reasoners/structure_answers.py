"""Answers worded from what structural searches found and the ledger holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from agent.reasoners.concluding import asked, found_for, quote_of
from agent.reasoners.port import Conclusion, DecisionContext
from domain.asking import Evidence, Subtask, Support
from domain.structure import Asks, Finding, StructurePart
from domain.texts import first_number
from domain.time import TimeSpan, clock
from domain.trajectory import EvidenceRetrieved, Resolution

STRETCHES = 4
"""Stretches of time that are told of one person at most."""
PEOPLE = 8
"""People that are listed at most."""
CANNOT = "This can't be told from what was recorded: {why}. The nearest moments are cited."
SURE, FAIR, UNSURE, DECLINED = 0.85, 0.6, 0.4, 0.1
"""How sure an answer from structure may be: measured, by likeness or a guess, and not at all."""

Held = Mapping[str, Evidence]


@dataclass(frozen=True)
class PartAnswer:
    """An answer to one part of the question; ``sure`` is its confidence."""

    text: str
    refs: tuple[str, ...]
    sure: float
    declined: bool = False

    @property
    def support(self) -> tuple[Support, ...]:
        """What the answer was read off supports it as far as the answer is sure."""
        return tuple(Support(ref=ref, score=self.sure) for ref in self.refs)


def by_structure(turn: DecisionContext) -> Conclusion | None:
    """The answer where a structural search found what is asked; None where none was made."""
    held = {e.ref: e for e in turn.held}
    tasks = asked(turn.ledger.subtasks)
    if not any(_finding(task, turn) for task in tasks):
        return None
    if turn.question.options:
        return _by_number(turn, held)
    said = [one for task in tasks if (one := _said(task, turn, held)) is not None]
    if not said:
        return None
    refs = tuple(dict.fromkeys(ref for one in said for ref in one.refs))
    return Conclusion(
        text=" ".join(one.text for one in said),
        refs=refs,
        ranked=refs,
        support=tuple(support for one in said for support in one.support),
        sure=min(one.sure for one in said),
        declined=all(one.declined for one in said),
    )


def claimed(turn: DecisionContext, task: Subtask, found: EvidenceRetrieved) -> Resolution | None:
    """What a structural search says of its subtask."""
    if found.finding is None or turn.question.options:
        return None
    said = said_of(found.finding, found.evidence, {e.ref: e for e in found.evidence})
    if said is None:
        return None
    return Resolution(subtask=task.id, answer=said.text, refs=said.refs, support=said.support)


def _finding(task: Subtask, turn: DecisionContext) -> EvidenceRetrieved | None:
    """The last search for a subtask that found something of structure."""
    own = [s.found for s in turn.searches if s.subtask == task.id and s.found.finding]
    return own[-1] if own else None


def _said(task: Subtask, turn: DecisionContext, held: Held) -> PartAnswer | None:
    found = _finding(task, turn)
    if found is not None and found.finding is not None:
        return said_of(found.finding, found.evidence, held)
    quote = quote_of(found_for(task, turn.searches), held)
    return None if quote is None else PartAnswer(quote.text, quote.refs, FAIR)


def said_of(finding: Finding, evidence: Sequence[Evidence], held: Held) -> PartAnswer | None:
    """A finding in words, of those of its parts that the ledger still holds."""
    if finding.unrecorded:
        near = tuple(e.ref for e in evidence if e.ref in held)
        text = CANNOT.format(why=finding.unrecorded)
        return PartAnswer(text, near, DECLINED, declined=True) if near else None
    parts = finding.of_those(held.keys()).parts
    if parts and finding.put:
        return PartAnswer(" ".join(part.text for part in parts), _refs(parts), FAIR)
    return _WORDED[finding.asks](finding, parts, held) if parts else None


def _refs(parts: Sequence[StructurePart]) -> tuple[str, ...]:
    """What is cited: the first line of each part, then the others."""
    firsts = [part.refs[0] for part in parts]
    return tuple(dict.fromkeys([*firsts, *(ref for part in parts for ref in part.refs[1:])]))


def _people(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:  # noqa: ARG001
    """Who is there: those seen, voices without a face, and who is seen only briefly."""
    sure = [part for part in parts if part.seen and not part.brief]
    brief = [part for part in parts if part.brief]
    voices = [part for part in parts if not part.seen]
    told = []
    if sure:
        told.append(f"{_number(sure, finding)}: {_listed(sure)}.")
    if brief:
        told.append(f"Perhaps {len(brief)} more, seen only briefly: {_listed(brief)}.")
    if voices and sure:
        told.append(f"Heard, but not tied to a face: {_listed(voices)}.")
    elif voices:
        told.append(f"{_count(len(voices), 'voice is', 'voices are')} heard: {_listed(voices)}.")
    agreed = bool(sure) and len(sure) == max(1, finding.together) and not brief
    level = SURE if agreed and len(voices) <= len(sure) else FAIR if agreed else UNSURE
    return PartAnswer(" ".join(told), _refs([*sure, *voices, *brief]), level)


def _counted(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:
    """How many there are: of voices, where it is asked who speaks."""
    return (_speakers if finding.manner == "said" else _people)(finding, parts, held)


def _number(sure: Sequence[StructurePart], finding: Finding) -> str:
    """How many people are seen; where they never are at one time, some may be one and the same."""
    seen = _count(len(sure), "person is", "people are") + " seen"
    together = finding.together
    if len(sure) <= max(1, together):
        return seen
    return f"{seen} (told apart by their faces; at most {together or 1} at one time)"


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _listed(parts: Sequence[StructurePart]) -> str:
    shown = [_when(part) for part in parts[:PEOPLE]]
    more = len(parts) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _when(part: StructurePart) -> str:
    times = [("seen", part.seen), ("heard", part.heard)]
    told = (f"{how} {_times(spans)}" for how, spans in times if spans)
    return f"{part.label} ({', '.join(told)})"


def _times(spans: Sequence[TimeSpan]) -> str:
    shown = ", ".join(str(span) for span in spans[:STRETCHES])
    more = len(spans) - STRETCHES
    return f"{shown} and {more} more times" if more > 0 else shown


def _speakers(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:  # noqa: ARG001
    if finding.subject:
        (one,) = parts[:1]
        return PartAnswer(f"{one.label} speaks at {_times(one.heard)}.", _refs(parts), SURE)
    number = _count(len(parts), "voice is", "voices are")
    heard = [part.model_copy(update={"seen": ()}) for part in parts]
    return PartAnswer(
        f"{number} heard: {_listed(heard)}.", _refs(parts), FAIR if parts[1:] else SURE
    )


def _about(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:  # noqa: ARG001
    text = f"The sentences closest to all that is said: {_quoted(parts, held)}"
    return PartAnswer(text, _refs(parts), FAIR)


def _ends(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:
    first = finding.asks is Asks.BEGINNING
    start = ("It begins" if first else "It ends") + " with"
    if not finding.exact:
        start = f"The {'first' if first else 'last'} of it that was recorded"
    # What is nearest to the very start or end is cited first.
    nearest = parts if first else parts[::-1]
    sure = SURE if finding.exact else UNSURE
    return PartAnswer(f"{start}: {_quoted(parts, held)}", _refs(nearest), sure)


def _mention(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:
    (part,) = parts[:1]
    at = held[part.refs[0]].span
    order = "First" if finding.asks is Asks.FIRST else "Last"
    near = "" if finding.exact else ", by likeness to the words only"
    text = f"{order} at {clock(at.start_ms)}{near}: {part.text}"
    return PartAnswer(text, part.refs, SURE if finding.exact else UNSURE)


def _beside(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer | None:
    told, *anchor = parts
    start = "After" if finding.asks is Asks.AFTER else "Before"
    if not anchor:
        return None
    text = f"{start} {_quoted(anchor, held).rstrip('.')} comes: {_quoted([told], held)}"
    return PartAnswer(text, _refs([told, *anchor]), FAIR if finding.exact else UNSURE)


def _quoted(parts: Sequence[StructurePart], held: Held) -> str:
    return " ".join(f"[{held[part.refs[0]].span}] {part.text}" for part in parts)


_WORDED = {
    Asks.PEOPLE: _people,
    Asks.COUNT: _counted,
    Asks.SPEAKERS: _speakers,
    Asks.ABOUT: _about,
    Asks.BEGINNING: _ends,
    Asks.END: _ends,
    Asks.FIRST: _mention,
    Asks.LAST: _mention,
    Asks.AFTER: _beside,
    Asks.BEFORE: _beside,
}


def _by_number(turn: DecisionContext, held: Held) -> Conclusion | None:
    """The only option that has the number of people that was found; None where none has."""
    found = next(f for task in turn.ledger.subtasks if (f := _finding(task, turn)))
    finding = found.finding
    if finding is None or finding.asks is not Asks.COUNT:
        return None
    said = said_of(finding, found.evidence, held)
    numbers = [first_number(option) for option in turn.question.options]
    if said is None or numbers.count(first_number(said.text)) != 1:
        return None
    letter = ascii_uppercase[numbers.index(first_number(said.text))]
    return Conclusion(
        text=letter,
        option=letter,
        refs=said.refs,
        ranked=said.refs,
        support=said.support,
        sure=said.sure,
    )
