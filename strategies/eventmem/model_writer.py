"""Writes the caption and the change logs of an event with a language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.builder import BuildModels
from agent.reasoners.port import Unreadable
from domain.time import TimeSpan, format_clock
from memory.prompts import join_lines, sanitise, sanitise_generated
from models.messages import assistant, system, user
from strategies.eventmem.prompts import prompt
from strategies.eventmem.replies import EventReply

SHOWN = 60
"""Lines that are shown of an event at most, the last ones of the one before."""
AROUND = 12
"""Lines that are shown of the events before and after."""


class LongMemoryWriter:
    """Writes events. It needs a language model."""

    def __init__(self, models: BuildModels) -> None:
        self._model = models.model

    def event(
        self, span: TimeSpan, lines: Sequence[str], before: Sequence[str], after: Sequence[str]
    ) -> EventReply:
        """Return the caption and the changes, asked for once more if they cannot be used.

        Raises:
            Unreadable: they cannot be used then either, or there is no model.
        """
        if self._model is None:
            raise Unreadable("there is no language model")
        page = prompt(
            "event",
            start=format_clock(span.start_ms),
            end=format_clock(span.end_ms),
            before=_shown(before[-AROUND:]),
            lines=_shown(lines[:SHOWN]),
            after=_shown(after[:AROUND]),
        )
        messages = [system(prompt("event_system")), user(page)]
        material = [*before, *lines, *after]
        try:
            reply = self._model.ask("event", messages, EventReply)
            wrong = reply.complaints(material)
            messages.append(assistant(reply.model_dump_json()))
        except Unreadable as error:
            wrong = [str(error)]
        if wrong:
            messages.append(user(repair_page(wrong)))
            reply = self._model.ask("event-repair", messages, EventReply)
            if wrong := reply.complaints(material):
                raise Unreadable(wrong[0])
        return reply


def repair_page(complaints: Iterable[str]) -> str:
    """Return the request to reply again."""
    return prompt("repair", complaints=join_lines(f"- {sanitise(one)}" for one in complaints))


def _shown(lines: Iterable[str]) -> str:
    return join_lines(map(sanitise_generated, lines)) or "(nothing)"
