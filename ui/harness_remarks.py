"""What the harness did in a round, in words, each of its parts in a colour of its own."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from html import escape
from typing import NamedTuple

import streamlit as st

from domain.asking import Subtask
from domain.people import tags_in_words
from domain.trajectory import (
    AnswerProposed,
    Assessed,
    Bound,
    Event,
    EvidenceRetrieved,
    Failed,
    Forced,
    Forked,
    Guarded,
    ImagesSeen,
    Interrupted,
    Planned,
    Progressed,
    Replanned,
    RoundClosed,
    TimeUp,
)
from domain.words import counted, format_number, marked, translate, translate_sentence
from graphs.forks import ledger_before
from library.rounds import History


class HarnessPart(StrEnum):
    """The four parts of the harness (SPEC section 2)."""

    INFORM = "inform"
    CONSTRAIN = "constrain"
    VERIFY = "verify"
    CORRECT = "correct"


class Remark(NamedTuple):
    """One action of the harness, in words."""

    part: HarnessPart
    text: str


COLOURS = {
    HarnessPart.INFORM: "#1d4ed8",
    HarnessPart.CONSTRAIN: "#9a3412",
    HarnessPart.VERIFY: "#6b21a8",
    HarnessPart.CORRECT: "#9f1239",
}
"""Dark enough for white text."""

STATES = {
    "running": marked("searching"),
    "done": marked("answered"),
    "stopped": marked("stopped"),
    "failed": marked("failed"),
}


def state_in_words(state: str) -> str:
    return translate(STATES.get(state, state))


_LABEL = (
    '<span style="background:{colour};color:#fff;border-radius:0.3rem;padding:0.05rem 0.45rem;'
    'font-size:0.85em;white-space:nowrap">{word}</span>'
)
_LINE = '<li dir="auto" style="margin:0.25rem 0">{mark} {text}</li>'
_LIST = '<ul style="list-style:none;padding:0;margin:0;overflow-wrap:anywhere">{lines}</ul>'


def part_label(part: HarnessPart) -> str:
    """Return the name of a part in its colour, as HTML."""
    return _LABEL.format(colour=COLOURS[part], word=translate(part.value))


def remarks_html(remarks: list[Remark]) -> str:
    """Render remarks as an HTML list, with text from outside escaped."""
    lines = [
        _LINE.format(mark=part_label(remark.part), text=escape(remark.text)) for remark in remarks
    ]
    return _LIST.format(lines="".join(lines))


def show_legend() -> None:
    meanings = {
        HarnessPart.INFORM: translate("what was shown"),
        HarnessPart.CONSTRAIN: translate("what the rules allowed or refused"),
        HarnessPart.VERIFY: translate("what was new, and which parts are answered"),
        HarnessPart.CORRECT: translate("what was corrected"),
    }
    labels = " ".join(f"{part_label(part)} {text}&nbsp;&nbsp;" for part, text in meanings.items())
    st.html(f'<div style="font-size:0.85rem">{labels}</div>')


def round_remarks(history: History, number: int) -> list[Remark]:
    """Return the remarks of the harness in a round, in order; 0 is before the first."""
    events = [event for event in history.events if event.round == number]
    return [remark for event in events for remark in harness_remarks(event)]


def harness_remarks(event: Event) -> Iterator[Remark]:
    """Yield the remarks of the harness for an event: most events have none."""
    for part, text in _remarks(event):
        if text:
            yield Remark(part, tags_in_words(text))


def _remarks(event: Event) -> Iterator[tuple[HarnessPart, str]]:
    match event:
        case EvidenceRetrieved():
            yield HarnessPart.INFORM, _shown(event)
        case Bound():
            yield (
                HarnessPart.INFORM,
                translate("{evidence} tied to {subtask}").format(
                    evidence=counted(len(event.refs), "piece of evidence"), subtask=event.subtask
                ),
            )
        case Guarded(accepted=True):
            yield HarnessPart.CONSTRAIN, translate("accepted")
        case Guarded():
            yield (
                HarnessPart.CONSTRAIN,
                translate("refused by the rule '{rule}': {complaint}").format(
                    rule=event.rule, complaint=translate_sentence(event.complaint)
                ),
            )
        case AnswerProposed():
            verdict = (
                translate("the answer was accepted")
                if event.accepted
                else translate("the answer was sent back: {complaint}")
            )
            yield HarnessPart.VERIFY, verdict.format(complaint=event.complaint)
        case ImagesSeen():
            told = [translate("images looked at: {images}").format(images=", ".join(event.shown))]
            told += (
                translate("seen on {ref}: {text}").format(ref=one.ref, text=one.text)
                for one in event.seen
            )
            yield from ((HarnessPart.VERIFY, text) for text in (*told, *event.refused))
        case Assessed():
            share = format_number(event.increment, ".0%")
            low = translate(", which is low") if event.low else ""
            told = [translate("{share} of what was found is new{low}").format(share=share, low=low)]
            if event.saturated:
                told.append(translate("saturated: two rounds in a row with little new"))
            told += (
                translate("{subtask} is resolved with {evidence}").format(
                    subtask=resolution.subtask, evidence=", ".join(resolution.refs)
                )
                for resolution in event.resolved
            )
            yield from ((HarnessPart.VERIFY, text) for text in (*told, *event.refused))
        case _:
            yield HarnessPart.CORRECT, _corrected(event)


def _shown(event: EvidenceRetrieved) -> str:
    if event.refused:
        return translate_sentence(event.refused)
    if event.nothing_close or not event.evidence:
        return translate("nothing close to '{query}'").format(query=event.query)
    images = (
        translate(" and {images}").format(images=counted(len(event.images), "image"))
        if event.images
        else ""
    )
    moments = counted(len(event.evidence), "moment")
    return translate("{moments}{images} shown; the best scored {score}").format(
        moments=moments, images=images, score=format_number(event.evidence[0].score, ".2f")
    )


def _corrected(event: Event) -> str:
    match event:
        case Planned(dropped=dropped) if dropped:
            return translate("dropped from the plan: {parts}").format(
                parts="; ".join(map(translate_sentence, dropped))
            )
        # Going on is the rule, and no remark.
        case Progressed(verdict="replan" | "finish"):
            return f"{event.verdict}: " + "; ".join(event.reasons)
        case Replanned():
            what = (
                translate("the plan stayed as it was")
                if event.empty
                else translate("the plan was repaired")
            )
            return "; ".join([what, *event.reasons, *map(translate_sentence, event.refused)])
        case Forced():
            return translate("the next mode is {mode}: {reason}").format(
                mode=event.mode, reason=event.reason
            )
        case RoundClosed():
            return event.warning
        case Failed():
            return translate("{where} failed: {message}").format(
                where=event.where, message=event.message
            )
        case Interrupted():
            return translate("stopped by a person: what follows is the best answer so far")
        case TimeUp():
            return translate("the time is up")
        case _:
            return ""


def ledger_changes(history: History, number: int) -> list[tuple[Subtask, list[str]]]:
    """Return the ledger at the end of a round, with what changed since the round before."""
    before, now = (
        ledger_before([event for event in history.events if event.round <= n]).subtasks
        if n >= 0
        else ()
        for n in (number - 1, number)
    )
    known = {subtask.id: subtask for subtask in before}
    return [(subtask, list(_marks(subtask, known.get(subtask.id)))) for subtask in now]


def _marks(now: Subtask, before: Subtask | None) -> Iterator[str]:
    if before is None:
        yield translate("new")
        return
    if now.text != before.text:
        yield translate("reworded")
    if now.state != before.state:
        yield f"{translate(before.state)} -> {translate(now.state)}"
    if now.attempts != before.attempts:
        yield translate("attempt {number}").format(number=now.attempts)
    gained = len(set(now.evidence) - set(before.evidence))
    if gained:
        yield translate("+{count} evidence").format(count=gained)
    if now.answer != before.answer:
        yield translate("answered") if now.answer else translate("answer withdrawn")


def changed_parts(fork: Forked) -> str:
    """Name what a fork changed: ``query changed``."""
    edit = fork.edit
    action = (
        marked("answer")
        if edit.action is not None and edit.action.kind == "answer"
        else marked("query")
    )
    parts = {
        marked("plan"): edit.plan,
        action: edit.action,
        marked("evidence"): edit.evidence,
        marked("models"): edit.profile,
    }
    changed = [name for name, value in parts.items() if value is not None]
    if not changed:
        return translate("decided once more")
    return translate("{parts} changed").format(parts=", ".join(map(translate, changed)))
