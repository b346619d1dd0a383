"""The text of a recap: a language model's with checked citations, else put together by rules.

Both are Markdown of one line for each thing that happened, with the time of day before it and the
events that it rests on behind it: ``[00:30-01:00, s12]``. The last line says who wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import Field

from agent.ask_model import AskModel
from agent.reasoners.port import Unreadable
from domain.errors import ModelError
from domain.memories import Segment
from domain.texts import WORD_JOINER
from domain.words import counted, shortened, without_markup
from flows.prompts import prompt
from memory.prompts import join_lines, sanitise
from models.messages import assistant, system, user
from models.reply_schema import StrictReply
from retrieval.terms import terms

MAX_SUMMARY = 400
MAX_LINE = 600
"""Most characters of a line that a language model writes."""
MAX_LINES = 12
"""Most lines that a language model writes."""
NOTHING = "No event is on record."
_MOMENT = r"(?:d\d+ )?[\d:]+"
_CITATION = re.compile(rf"(?<!\\)\[({_MOMENT})-({_MOMENT}), s(\d+)\]")
_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
_LEADING_ZERO = re.compile(r"(?<![:\d])0(\d:)")
_ENTITY = re.compile(r"&(?=\w+;)")
"""Begins a character by its name in HTML, such as ``&colon;``."""


@dataclass(frozen=True)
class RecapMaterial:
    """The events that a recap rests on, by time, with names of people as they are known.

    ``began`` is the time of day of the video's time 0, ``period`` the name of the day or hour.
    """

    period: str
    began: datetime
    events: tuple[Segment, ...]


class RecapLine(StrictReply):
    """A line of a recap."""

    text: str
    events: list[int] = Field(description="the numbers of the events that it rests on")


class WrittenRecap(StrictReply):
    """A recap, in order of time."""

    lines: list[RecapLine]

    def complaints(self, events: Sequence[Segment]) -> list[str]:
        """Return what the model is asked to put right, given the events that it was shown."""
        wrong = [] if self.lines else ["there is no line"]
        if len(self.lines) > MAX_LINES:
            wrong.append(f"there are more than {MAX_LINES} lines")
        for number, line in enumerate(self.lines, 1):
            wrong += (f"line {number} {why}" for why in _complaints(line, events))
        return wrong


def _complaints(line: RecapLine, events: Sequence[Segment]) -> list[str]:
    if not line.text.strip():
        return ["is empty"]
    if len(line.text) > MAX_LINE:
        return [f"is longer than {MAX_LINE} characters"]
    unknown = [number for number in line.events if not 1 <= number <= len(events)]
    if unknown:
        return [f"names event {unknown[0]}, which there is not"]
    if not line.events:
        return ["names no event"]
    shown = " ".join(f"{one.label} {one.summary}" for one in _cited(line, events))
    if not set(terms(line.text)) & set(terms(shown)):
        return ["says nothing that is in the events that it names"]
    return []


def _cited(line: RecapLine, events: Sequence[Segment]) -> list[Segment]:
    return [events[number - 1] for number in sorted(set(line.events))]


def recap_text(material: RecapMaterial, model: AskModel | None) -> str:
    """Return the text of a recap: the model's if its citations hold, else one by rules."""
    if not material.events:
        return NOTHING
    count = counted(len(material.events), "event")
    if model is None:
        return f"{_by_rules(material)}\n\nPut together from the summaries of {count}."
    try:
        written = _ask(material, model)
    except (Unreadable, ModelError):
        why = "what the language model wrote could not be used"
        return f"{_by_rules(material)}\n\nPut together from the summaries of {count}: {why}."
    return f"{_by_model(material, written)}\n\nWritten by the language model from {count}."


def _by_rules(material: RecapMaterial) -> str:
    return "\n".join(
        f"- {_time_of_day(one, material.began)} {plain(one.label)}. {plain(one.summary)} "
        f"{_citation(one)}"
        for one in material.events
    )


def _by_model(material: RecapMaterial, written: WrittenRecap) -> str:
    lines = sorted(written.lines, key=lambda line: min(line.events))
    return "\n".join(_model_line(line, material) for line in lines)


def _model_line(line: RecapLine, material: RecapMaterial) -> str:
    cited = _cited(line, material.events)
    text = plain(line.text, MAX_LINE)
    return f"- {_time_of_day(cited[0], material.began)} {text} {' '.join(map(_citation, cited))}"


def _citation(segment: Segment) -> str:
    return f"[{segment.span}, s{segment.id}]"


def _time_of_day(segment: Segment, began: datetime) -> str:
    at = (began + timedelta(milliseconds=segment.span.start_ms)).astimezone()
    return f"{at:%H:%M}"


def plain(text: str, width: int = MAX_SUMMARY) -> str:
    """Return the first ``width`` characters of a text, with nothing that is Markdown or HTML."""
    line = without_markup(shortened(text, width))
    escaped = "".join(f"\\{char}" if char in "\\`*_{}[]<>#!|$~" else char for char in line)
    return _ENTITY.sub(r"\&", escaped)


def _ask(material: RecapMaterial, model: AskModel) -> WrittenRecap:
    """Ask for the recap, once more with the complaints if it cannot be used.

    Raises:
        Unreadable: it cannot be used then either.
        ModelError: the model cannot be reached.
    """
    events = material.events
    shown = join_lines(
        f"{number}. {_time_of_day(one, material.began)} {sanitise(one.label)}. "
        f"{sanitise(one.summary)}"
        for number, one in enumerate(events, 1)
    )
    rules = prompt("recap_system", lines=MAX_LINES)
    messages = [system(rules), user(prompt("recap", period=material.period, events=shown))]
    try:
        reply = model.ask("write", messages, WrittenRecap)
        wrong = reply.complaints(events)
        messages.append(assistant(reply.model_dump_json()))
    except Unreadable as error:
        wrong = [str(error)]
    if wrong:
        complaints = join_lines(f"- {sanitise(one)}" for one in wrong)
        messages.append(user(prompt("recap_repair", complaints=complaints)))
        reply = model.ask("write-repair", messages, WrittenRecap)
        if wrong := reply.complaints(events):
            raise Unreadable(wrong[0])
    return reply


def linked_citations(text: str, video: str, app: str = "") -> str:
    """Return a recap in Markdown whose citations lead to the events on the video's page.

    Args:
        text: the recap as it is stored.
        video: the video's id.
        app: the app's address; "": the link is for a page of the app itself.
    """
    page = f"{app}/video?video={video}"
    return _CITATION.sub(lambda found: f"[{_times(found)}]({page}&segment={found[3]})", text)


def cited_times(text: str) -> str:
    """Return a recap for a terminal: citations are times alone, and Markdown is not escaped."""
    shown = _ESCAPED.sub(r"\1", _CITATION.sub(lambda found: f"[{_times(found)}]", text))
    return shown.replace(WORD_JOINER, "")


def _times(found: re.Match[str]) -> str:
    return _LEADING_ZERO.sub(r"\1", f"{found[1]}-{found[2]}")
