"""An answer and its rounds as lines of text, for commands and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from domain.asking import (
    LIKELIEST_ONLY,
    NOTE,
    PICTURES_NOT_SEARCHED,
    Answer,
    Question,
    level_of_confidence,
)
from domain.moments import Answered
from domain.people import tags_in_words
from domain.trajectory import PartialReply, RunEvent
from domain.words import format_number, format_span, marked, plain_line, short_times, translate
from graphs.forks import fork_line
from models.structured import latest_text


def event_lines(event: RunEvent) -> Iterable[str]:
    """Return the lines of text for an event of a run; most events have none."""
    write = _LINES.get(event.kind)
    return write(event) if write is not None else ()


def _found(event: Any) -> str:
    if event.refused:
        return one_line(event.refused)
    if event.nothing_close or not event.evidence:
        return "nothing close"
    best = event.evidence[0]
    return f"{len(event.evidence)} found, best {format_span(best.span)} ({best.score:.2f})"


def _plan(event: Any) -> list[str]:
    return [f"plan {subtask.id}: {one_line(subtask.text)}" for subtask in event.subtasks]


_LINES: Mapping[str, Callable[[Any], list[str]]] = {
    "question": lambda event: (
        [f"strategy: {plain_line(event.choice.why)}"] if event.choice is not None else []
    ),
    "fork": lambda event: [one_line(fork_line(event))],
    "skills": lambda event: (
        [f"skills: {', '.join(f'{one.name} ({one.score:.2f})' for one in event.skills)}"]
        if event.skills
        else []
    ),
    "plan": _plan,
    "replan": _plan,
    "round": lambda event: [f"round {event.round}: {event.subtask}: {one_line(event.text)}"],
    "call": lambda event: [
        f"  {event.purpose}: {event.model}: {event.tokens_in} tokens in, {event.tokens_out} out, "
        f"{event.ms / 1000:.1f} s"
    ],
    "guard": lambda event: (
        [] if event.accepted else [f"  refused ({event.rule}): {one_line(event.complaint)}"]
    ),
    "retrieve": lambda event: [f"  {event.mode} {one_line(event.query)!r}: {_found(event)}"],
    "look": lambda event: [
        f"  {len(event.shown)} images looked at",
        *(f"  seen: {one_line(one.text)} [{one.ref}]" for one in event.seen),
    ],
    "assess": lambda event: [
        f"  {one.subtask} resolved: {one_line(one.answer)} "
        f"{' '.join(f'[{ref}]' for ref in one.refs)}".rstrip()
        for one in event.resolved
    ],
    "record": lambda event: [f"  {plain_line(event.warning)}"] if event.warning else [],
    "force": lambda event: [f"  next: {event.mode}, because {one_line(event.reason)}"],
    "error": lambda event: [f"  {event.where} failed: {plain_line(event.message)}"],
}


FIXED_NOTES = (
    NOTE,
    marked("The memory was written by rules."),
    LIKELIEST_ONLY,
    PICTURES_NOT_SEARCHED,
)
"""Sentences of notes that are stored with answers."""


def confidence_line(answer: Answer | Answered) -> str:
    """Return an answer's confidence in words and as a number, and its standing."""
    confidence = translate("confidence {level} ({number})").format(
        level=translate(level_of_confidence(answer.confidence)),
        number=format_number(answer.confidence, ".2f"),
    )
    return f"{confidence}; {translate(answer.standing)}" if answer.standing else confidence


def note_line(answer: Answer) -> str:
    """Return an answer's note, with its fixed sentences in the language of the page."""
    note = answer.note
    # Notes are stored in English: what is fixed of them is translated where it is shown.
    for sentence in FIXED_NOTES:
        note = note.replace(sentence, translate(sentence))
    return note


def chosen_option(answer: Answer, question: Question) -> str | None:
    """Return the option that an answer chose; None without any."""
    if answer.option is None:
        return None
    place = ord(answer.option) - ord("A")
    return plain_line(question.options[place]) if place < len(question.options) else ""


def answer_line(answer: Answer, question: Question) -> str:
    """Return the answer's text, with the letter of the chosen option."""
    return option_line(one_line(answer.text), answer.option, chosen_option(answer, question))


def option_line(text: str, letter: str | None, option: str | None) -> str:
    """Return the text of an answer with the option that it chose, if there were any."""
    if letter is None:
        return text
    return f"{letter}. {option}" + ("" if text in ("", option, letter) else f" ({text})")


def answer_lines(answer: Answer, question: Question) -> list[str]:
    """Return the lines of an answer: several where each of several videos is answered."""
    lines = [] if answer.option else answer.text.splitlines()
    return [one_line(line) for line in lines] or [answer_line(answer, question)]


def one_line(text: str) -> str:
    """Return ``text`` on one line, with words for people without a name, and short times."""
    return plain_line(short_times(tags_in_words(text)))


def reply_tail(reply: PartialReply, width: int) -> str:
    """Return the end of a partial reply on one line."""
    words, width = plain_line(latest_text(reply.text)), max(0, width)
    shown = words if len(words) <= width else f"…{words[len(words) - width :]}"
    return f"{reply.purpose}: {shown}"
