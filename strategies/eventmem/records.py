"""The record of an event, as it stays with its first frame when it leaves the short-term memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from domain.built import BuiltFrame
from strategies.eventmem.event_memory import FrameUse
from strategies.eventmem.short_term import EventRecord

_RECORD = re.compile(r"first of event (\d{1,9}): (\d{1,15}\+\d{1,9}(?: \d{1,15}\+\d{1,9})*)")


def record_reason(record: EventRecord) -> str:
    """Return why the first frame of an event is kept: with when the event's frames were seen."""
    runs = " ".join(f"{start}+{frames}" for start, frames in record.runs)
    return f"{FrameUse.FIRST} of event {record.number}: {runs}"


def recorded(reason: str) -> EventRecord | None:
    """Return the record that ``record_reason`` wrote; None if it is none."""
    found = _RECORD.fullmatch(reason)
    if found is None:
        return None
    runs = (run.split("+") for run in found[2].split())
    return EventRecord(
        number=int(found[1]), runs=tuple((int(start), int(frames)) for start, frames in runs)
    )


def is_first(frame: BuiltFrame) -> bool:
    """Check whether an event begins with a frame."""
    return frame.reason == FrameUse.FIRST or recorded(frame.reason) is not None


def all_records(frames: Iterable[BuiltFrame], present: Iterable[EventRecord]) -> list[EventRecord]:
    """Return the records of events in order: of those that left, and of those still in memory."""
    known = {one.start_ms: one for one in _of_frames(frames)}
    known |= {one.start_ms: one for one in present}
    return [known[start] for start in sorted(known)]


def _of_frames(frames: Iterable[BuiltFrame]) -> Iterator[EventRecord]:
    for frame in frames:
        if (record := recorded(frame.reason)) is not None:
            yield record
