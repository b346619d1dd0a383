"""Answers worded from the results of structural searches that the ledger holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from agent.reasoners.concluding import answering_subtasks, found_for, quote_parts, searched_videos
from agent.reasoners.port import Conclusion, DecisionContext
from agent.whereabouts import last_seen_sentences
from domain.asking import Evidence, Subtask, Support
from domain.search import Asks, Finding, StructurePart
from domain.texts import first_number
from domain.time import TimeSpan, format_clock
from domain.trajectory import EvidenceRetrieved, Resolution

MOST_SPANS = 4
"""Time spans listed per person at most."""
PEOPLE = 8
"""People listed at most."""
CANNOT = "This can't be told from what was recorded: {why}. The nearest moments are cited."
SURE, FAIR, UNSURE, DECLINED = 0.85, 0.6, 0.4, 0.1
"""Confidence of an answer from structure: measured, by similarity, a guess, and declined."""

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
        """Return the support of each ref, which equals the answer's confidence."""
        return tuple(Support(ref=ref, score=self.sure) for ref in self.refs)


def by_structure(decision: DecisionContext) -> Conclusion | None:
    """Answer from structural searches; None if none was made.

    Over a few videos, what answers another part of the question is quoted of each.
    """
    held = {e.ref: e for e in decision.held}
    titles = searched_videos(decision)
    tasks = answering_subtasks(decision.ledger.subtasks)
    if not any(_finding(task, decision) for task in tasks):
        return None
    if decision.question.options:
        return _by_number(decision, held)
    said = [_said(task, decision, held, titles) for task in tasks]
    answers = [answer for answer in said if answer is not None]
    if not answers:
        return None
    refs = tuple(dict.fromkeys(ref for answer in answers for ref in answer.refs))
    return Conclusion(
        text=("\n" if titles else " ").join(answer.text for answer in answers),
        refs=refs,
        ranked=refs,
        support=tuple(support for answer in answers for support in answer.support),
        sure=min(answer.sure for answer in answers),
        declined=all(answer.declined for answer in answers),
    )


def claimed(
    decision: DecisionContext, task: Subtask, retrieval: EvidenceRetrieved
) -> Resolution | None:
    """Return the resolution that a structural search gives for its subtask."""
    if retrieval.finding is None or decision.question.options:
        return None
    answer = said_of(retrieval.finding, retrieval.evidence, {e.ref: e for e in retrieval.evidence})
    if answer is None:
        return None
    return Resolution(subtask=task.id, answer=answer.text, refs=answer.refs, support=answer.support)


def _finding(task: Subtask, decision: DecisionContext) -> EvidenceRetrieved | None:
    """Return the last search for a subtask that has a structural finding."""
    results = [s.found for s in decision.searches if s.subtask == task.id and s.found.finding]
    return results[-1] if results else None


def _said(
    task: Subtask, decision: DecisionContext, held: Held, titles: Mapping[str, str]
) -> PartAnswer | None:
    retrieval = _finding(task, decision)
    if retrieval is not None and retrieval.finding is not None:
        return said_of(retrieval.finding, retrieval.evidence, held)
    found = quote_parts([found_for(task, decision.searches)], held, titles)
    return None if found is None else PartAnswer(*found, FAIR)


def said_of(finding: Finding, evidence: Sequence[Evidence], held: Held) -> PartAnswer | None:
    """Word a finding from those of its parts that the ledger still holds."""
    if finding.unrecorded:
        near = tuple(e.ref for e in evidence if e.ref in held)
        text = CANNOT.format(why=finding.unrecorded)
        return PartAnswer(text, near, DECLINED, declined=True) if near else None
    if finding.each:
        return _of_each_video(finding, evidence, held)
    parts = finding.restricted_to(held.keys()).parts
    if parts and finding.put:
        return PartAnswer(" ".join(part.text for part in parts), _refs(parts), FAIR)
    return _WORDED[finding.asks](finding, parts, held) if parts else None


def _of_each_video(finding: Finding, evidence: Sequence[Evidence], held: Held) -> PartAnswer | None:
    """Answer for each video, after its title; as sure as the least sure of these answers."""
    worded = [(one.title, said_of(one, evidence, held)) for one in finding.each]
    answers = [(title, answer) for title, answer in worded if answer is not None]
    if not answers:
        return None
    return PartAnswer(
        "\n".join(f"{title}: {answer.text}" for title, answer in answers),
        tuple(ref for _, answer in answers for ref in answer.refs),
        min(answer.sure for _, answer in answers),
    )


def _refs(parts: Sequence[StructurePart]) -> tuple[str, ...]:
    """Return the refs to cite: the first of each part, then the others."""
    firsts = [part.refs[0] for part in parts]
    return tuple(dict.fromkeys([*firsts, *(ref for part in parts for ref in part.refs[1:])]))


def _people(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:  # noqa: ARG001
    """List those seen, those seen only briefly, and voices without a face."""
    sure = [part for part in parts if part.seen and not part.brief]
    brief = [part for part in parts if part.brief]
    voices = [part for part in parts if not part.seen]
    sentences = []
    if sure:
        sentences.append(f"{_number(sure, finding)}: {_listed(sure)}.")
    if brief:
        sentences.append(f"Perhaps {len(brief)} more, seen only briefly: {_listed(brief)}.")
    if voices and sure:
        sentences.append(f"Heard, but not tied to a face: {_listed(voices)}.")
    elif voices:
        sentences.append(
            f"{_count(len(voices), 'voice is', 'voices are')} heard: {_listed(voices)}."
        )
    agreed = bool(sure) and len(sure) == max(1, finding.together) and not brief
    level = SURE if agreed and len(voices) <= len(sure) else FAIR if agreed else UNSURE
    return PartAnswer(" ".join(sentences), _refs([*sure, *voices, *brief]), level)


def _counted(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:
    """Answer how many there are; of voices, if the question asks who speaks."""
    return (_speakers if finding.manner == "said" else _people)(finding, parts, held)


def _number(sure: Sequence[StructurePart], finding: Finding) -> str:
    """Word how many people are seen, with a caveat where some may be the same person."""
    seen = _count(len(sure), "person is", "people are") + " seen"
    together = finding.together
    if len(sure) <= max(1, together):
        return seen
    return f"{seen} (told apart by their faces; at most {together or 1} at one time)"


def _count(number: int, singular: str, plural: str) -> str:
    return f"{number} {singular if number == 1 else plural}"


def _listed(parts: Sequence[StructurePart]) -> str:
    listed = [_when(part) for part in parts[:PEOPLE]]
    more = len(parts) - len(listed)
    return "; ".join(listed) + (f"; and {more} more" if more else "")


def _when(part: StructurePart) -> str:
    times = [("seen", part.seen), ("heard", part.heard)]
    worded = (f"{how} {_times(spans)}" for how, spans in times if spans)
    return f"{part.label} ({', '.join(worded)})"


def _times(spans: Sequence[TimeSpan]) -> str:
    times = ", ".join(str(span) for span in spans[:MOST_SPANS])
    more = len(spans) - MOST_SPANS
    return f"{times} and {more} more times" if more > 0 else times


def _speakers(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:  # noqa: ARG001
    if finding.subject:
        (speaker,) = parts[:1]
        return PartAnswer(f"{speaker.label} speaks at {_times(speaker.heard)}.", _refs(parts), SURE)
    number = _count(len(parts), "voice is", "voices are")
    voices = [part.model_copy(update={"seen": ()}) for part in parts]
    return PartAnswer(
        f"{number} heard: {_listed(voices)}.", _refs(parts), FAIR if parts[1:] else SURE
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
    text = f"{order} at {format_clock(at.start_ms)}{near}: {part.text}"
    return PartAnswer(text, part.refs, SURE if finding.exact else UNSURE)


def _last_seen(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:  # noqa: ARG001
    """Name for each person of the name the time and the video."""
    text = " ".join(last_seen_sentences(parts))
    return PartAnswer(text, _refs(parts), FAIR if parts[1:] else SURE)


def _adjacent(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer | None:
    event, *anchor = parts
    start = "After" if finding.asks is Asks.AFTER else "Before"
    if not anchor:
        return None
    text = f"{start} {_quoted(anchor, held).rstrip('.')} comes: {_quoted([event], held)}"
    return PartAnswer(text, _refs([event, *anchor]), FAIR if finding.exact else UNSURE)


def _things(finding: Finding, parts: Sequence[StructurePart], held: Held) -> PartAnswer:
    sure = FAIR if finding.exact else UNSURE
    return PartAnswer(f"Recognised on the images: {_quoted(parts, held)}", _refs(parts), sure)


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
    Asks.WHEREABOUTS: _last_seen,
    Asks.AFTER: _adjacent,
    Asks.BEFORE: _adjacent,
    Asks.THINGS: _things,
}


def _by_number(decision: DecisionContext, held: Held) -> Conclusion | None:
    """Return the only option with the number of people that was found, else None."""
    search = next(f for task in decision.ledger.subtasks if (f := _finding(task, decision)))
    finding = search.finding
    if finding is None or finding.asks is not Asks.COUNT:
        return None
    answer = said_of(finding, search.evidence, held)
    numbers = [first_number(option) for option in decision.question.options]
    if answer is None or numbers.count(first_number(answer.text)) != 1:
        return None
    letter = ascii_uppercase[numbers.index(first_number(answer.text))]
    return Conclusion(
        text=letter,
        option=letter,
        refs=answer.refs,
        ranked=answer.refs,
        support=answer.support,
        sure=answer.sure,
    )
