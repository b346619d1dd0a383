"""Whole sentences of lines: speech recognition cuts at pauses, also within sentences."""

from __future__ import annotations

import re

from retrieval.lines import LineSet

REACH = 3
"""Maximum number of lines that are joined in either direction."""
SENTENCE_PAUSE_MS = 2_000
"""A longer silence ends a sentence."""
SHORT = 5
"""A sentence of fewer words goes with the next one."""

SPOKEN = ("said", "subtitle")
"""Sources whose sentences continue from line to line."""

_ENDS = re.compile(r"[.!?…。！？][\"'”’)\]」』]*$")


def complete_sentences(line_set: LineSet, line: int) -> tuple[int, ...]:
    """Return a line with the lines before and after it that continue its sentences."""
    lines = [line]
    while len(lines) <= REACH and _continues(
        line_set, before := _adjacent(line_set, lines[0], -1), lines[0]
    ):
        lines.insert(0, before)
    maximum = len(lines) + REACH
    while len(lines) < maximum and _continues(
        line_set, lines[-1], after := _adjacent(line_set, lines[-1], 1)
    ):
        lines.append(after)
    last = _adjacent(line_set, lines[-1], 1)
    words = sum(len(line_set.line(number)[1].text.split()) for number in lines)
    if words < SHORT and _same_speech(line_set, lines[-1], last):
        lines.append(last)
    return tuple(lines)


def _adjacent(line_set: LineSet, line: int, step: int) -> int:
    """Return the next line in a direction; speech skips its subtitles and vice versa."""
    source, number = line_set.line(line)[1].source, line + step
    other = next((name for name in SPOKEN if name != source), "") if source in SPOKEN else ""
    while 0 <= number < line_set.line_count and line_set.line(number)[1].source == other:
        number += step
    return number


def _continues(line_set: LineSet, first: int, second: int) -> bool:
    """Check whether a sentence of line ``first`` continues in line ``second``."""
    if not _same_speech(line_set, first, second):
        return False
    return not _ENDS.search(line_set.line(first)[1].text.strip())


def _same_speech(line_set: LineSet, first: int, second: int) -> bool:
    """Check whether both lines are from one speaker and source, without a long pause."""
    if first < 0 or second >= line_set.line_count:
        return False
    (video, before), (source, after) = line_set.line(first), line_set.line(second)
    return (
        video == source
        and before.source == after.source
        and before.source in SPOKEN
        and before.speaker == after.speaker
        and after.start_ms - before.end_ms <= SENTENCE_PAUSE_MS
    )
