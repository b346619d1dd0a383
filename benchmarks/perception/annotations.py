"""Readers of sound annotations: turns (RTTM), spans (UEM), transcripts (STM, SRT, VTT).

Who speaks when (RTTM), which part of a recording was marked (UEM), what was said (STM, SRT, VTT).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.perception.metrics import SpeakerSpan
from domain.errors import InputError
from memory.captions import read_captions

Turns = dict[str, list[SpeakerSpan]]
Spans = dict[str, list[tuple[int, int]]]


def read_rttm(path: Path) -> Turns:
    """Read the speaker turns of each recording of an RTTM file, in the file's order.

    Raises:
        InputError: a line is not valid RTTM.
    """
    turns: Turns = {}
    for line, fields in _lines(path):
        if fields[0] == "SPEAKER":
            start, length = _ms(path, line, fields[3:5])
            _need(len(fields) > 7, f"{path}, line {line}: no speaker where one should be")
            turns.setdefault(fields[1], []).append(SpeakerSpan(start, start + length, fields[7]))
    return turns


def read_uem(path: Path) -> Spans:
    """Read the marked spans of each recording of a UEM file, in milliseconds.

    Raises:
        InputError: a line is not valid UEM.
    """
    spans: Spans = {}
    for line, fields in _lines(path):
        start, end = _ms(path, line, fields[2:4])
        spans.setdefault(fields[0], []).append((start, end))
    return spans


def read_transcript(path: Path) -> str:
    """Read all speech of an STM or caption file, as one line.

    Raises:
        InputError: the file is neither.
    """
    if path.suffix == ".stm":
        return " ".join(" ".join(fields[5:]) for _, fields in _lines(path))
    return " ".join(line.text for line in read_captions(path).lines)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and fields of each line that has any; ";;" begins a comment."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fields = line.split()
        if fields and not line.startswith(";;"):
            yield number, fields


def _ms(path: Path, line: int, fields: list[str]) -> tuple[int, int]:
    message = f"{path}, line {line}: no times in seconds where they should be"
    _need(len(fields) == 2, message)
    try:
        return round(float(fields[0]) * 1000), round(float(fields[1]) * 1000)
    except (ValueError, OverflowError) as error:
        raise InputError(message) from error


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InputError(otherwise)
