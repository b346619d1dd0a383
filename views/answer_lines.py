"""An answer and its rounds as lines of text, for commands and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from domain.asking import (
    LIKELIEST_ONLY,
    NOTE,
    PICTURES_NOT_SEARCHED,
    Answer,
    Citation,
    Question,
    level_of_confidence,
)
from domain.marked import marked
from domain.people import tags_in_words
from domain.trajectory import PartialReply, RunEvent
from graphs.forks import fork_line
from models.json_repair import latest_text
from views.translation import format_number, translate
from views.words import format_span, plain_line, short_times

SHOWN = 160
"""Characters of a citation's text that are shown."""


def event_lines(event: RunEvent) -> Iterator[str]:
    """Yield the lines of text for an event of a run; most events have none."""
    write = _WRITERS.get(event.kind)
    if write is not None:
        yield from write(event)


def _question(event: Any) -> Iterator[str]:
    if event.choice is not None:
        yield f"strategy: {plain_line(event.choice.why)}"


def _plan(event: Any) -> Iterator[str]:
    for subtask in event.subtasks:
        yield f"plan {subtask.id}: {one_line(subtask.text)}"


def _skills(event: Any) -> Iterator[str]:
    if event.skills:
        names = ", ".join(f"{skill.name} ({skill.score:.2f})" for skill in event.skills)
        yield f"skills: {names}"


def _round(event: Any) -> Iterator[str]:
    yield f"round {event.round}: {event.subtask}: {one_line(event.text)}"


def _guard(event: Any) -> Iterator[str]:
    if not event.accepted:
        yield f"  refused ({event.rule}): {one_line(event.complaint)}"


def _retrieve(event: Any) -> Iterator[str]:
    prefix = f"  {event.mode} {one_line(event.query)!r}:"
    if event.refused:
        yield f"{prefix} {one_line(event.refused)}"
    elif event.nothing_close or not event.evidence:
        yield f"{prefix} nothing close"
    else:
        best = event.evidence[0]
        place = format_span(best.span)
        yield f"{prefix} {len(event.evidence)} found, best {place} ({best.score:.2f})"


def _call(event: Any) -> Iterator[str]:
    usage = f"{event.tokens_in} tokens in, {event.tokens_out} out, {event.ms / 1000:.1f} s"
    yield f"  {event.purpose}: {event.model}: {usage}"


def _look(event: Any) -> Iterator[str]:
    yield f"  {len(event.shown)} images looked at"
    for one in event.seen:
        yield f"  seen: {one_line(one.text)} [{one.ref}]"


def _assess(event: Any) -> Iterator[str]:
    for resolution in event.resolved:
        refs = " ".join(f"[{ref}]" for ref in resolution.refs)
        yield f"  {resolution.subtask} resolved: {one_line(resolution.answer)} {refs}".rstrip()


def _warning(event: Any) -> Iterator[str]:
    if event.warning:
        yield f"  {plain_line(event.warning)}"


def _force(event: Any) -> Iterator[str]:
    yield f"  next: {event.mode}, because {one_line(event.reason)}"


def _error(event: Any) -> Iterator[str]:
    yield f"  {event.where} failed: {plain_line(event.message)}"


def _fork(event: Any) -> Iterator[str]:
    yield one_line(fork_line(event))


_WRITERS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "question": _question,
    "fork": _fork,
    "skills": _skills,
    "plan": _plan,
    "replan": _plan,
    "round": _round,
    "call": _call,
    "guard": _guard,
    "retrieve": _retrieve,
    "look": _look,
    "assess": _assess,
    "record": _warning,
    "force": _force,
    "error": _error,
}


FIXED_NOTES = (
    NOTE,
    marked("The memory was written by rules."),
    LIKELIEST_ONLY,
    PICTURES_NOT_SEARCHED,
)
"""Sentences of notes that are stored with answers."""


def confidence_line(answer: Answer) -> str:
    """Return an answer's confidence in words and as a number, and its standing."""
    confidence = translate("confidence {level} ({number})").format(
        level=translate(level_of_confidence(answer.confidence)),
        number=format_number(answer.confidence, ".2f"),
    )
    return f"{confidence}; {translate(answer.standing)}" if answer.standing else confidence


def note_line(answer: Answer) -> str:
    """Return an answer's note, with its fixed sentences in the language of the page."""
    note = answer.note
    for sentence in FIXED_NOTES:
        note = note.replace(sentence, translate(sentence))
    return note


def answer_line(answer: Answer, question: Question) -> str:
    """Return the answer's text, with the letter of the chosen option."""
    text = one_line(answer.text)
    if answer.option is None:
        return text
    place = ord(answer.option) - ord("A")
    option = plain_line(question.options[place]) if place < len(question.options) else ""
    return f"{answer.option}. {option}" + (
        "" if text in ("", option, answer.option) else f" ({text})"
    )


def answer_lines(answer: Answer, question: Question) -> list[str]:
    """Return the lines of an answer: several where each of several videos is answered."""
    lines = [] if answer.option else answer.text.splitlines()
    return [one_line(line) for line in lines] or [answer_line(answer, question)]


def one_line(text: str) -> str:
    """Return ``text`` on one line, with words for people without a name, and short times."""
    return plain_line(short_times(tags_in_words(text)))


def citation_line(citation: Citation, titles: Mapping[str, str]) -> str:
    """Return ``m:ss-m:ss``, what was said or seen, the video's title and the reference."""
    text = one_line(citation.full_text)
    text = text if len(text) <= SHOWN else text[: SHOWN - 3].rstrip() + "..."
    title = plain_line(titles.get(citation.video, citation.video))
    return f"{format_span(citation.span)}  {text}  ({title}) [{plain_line(citation.ref)}]"


def reply_tail(reply: PartialReply, width: int) -> str:
    """Return the end of a partial reply on one line."""
    words, width = plain_line(latest_text(reply.text)), max(0, width)
    shown = words if len(words) <= width else f"…{words[len(words) - width :]}"
    return f"{reply.purpose}: {shown}"
