"""One log for all of Homer's processes: ``HOMER_HOME/logs/homer.log``, a record a line.

A record has its time, its level, an event in words of the code, and fields: ids, numbers, names of
errors. What was said, asked, shown or answered is in none; nor is what an error says, which may
quote it, but at the level ``debug``.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from domain.errors import InputError
from store.files import make_private
from store.home import Home
from telemetry import tracing

FORM, LEVEL, PLACE = "HOMER_LOG", "HOMER_LOG_LEVEL", "HOMER_LOG_TO"
FORMS = ("json", "text")
LEVELS = ("debug", "info", "warning", "error")

LIMIT = 5_000_000
"""Bytes of a log; then it becomes ``homer.log.1``, and so on up to ``KEPT`` older ones."""
KEPT = 3
FRAMES = 30
"""The innermost steps of a way to an error that are told."""

_LOG = logging.getLogger("homer")
_PACKAGES = Path(__file__).resolve().parents[1]
_LOUD = (tracing.Work.FLOW, tracing.Work.CLIP, tracing.Work.QUESTION)
"""What is told at the level ``info``; the rest is told at ``debug``."""


def log_path(home: Home) -> Path:
    """The file that records go to."""
    return home.logs / "homer.log"


def set_up(home: Home, level: str | None = None) -> None:
    """From here on, this process's records go to the log.

    Args:
        home: the data directory; it is not made before there is something to write.
        level: one of ``LEVELS``; None is ``$HOMER_LOG_LEVEL``'s, else ``info``.

    Raises:
        InputError: there is no such level, form or place.
    """
    chosen = _among(level or os.environ.get(LEVEL), LEVELS, "info", LEVEL)
    form = _among(os.environ.get(FORM), FORMS, "json", FORM)
    place = _among(os.environ.get(PLACE), ("file", "stderr"), "file", PLACE)
    for old in _LOG.handlers[:]:
        _LOG.removeHandler(old)
    handler = _LogFile(log_path(home)) if place == "file" else logging.StreamHandler(sys.stderr)
    handler.setFormatter(_RecordFormatter(form))
    _LOG.addHandler(handler)
    _LOG.setLevel(chosen.upper())
    _LOG.propagate = False
    if not any(isinstance(one, LogObserver) for one in tracing.observers):
        tracing.observers.append(LogObserver())


def _among(given: str | None, known: tuple[str, ...], default: str, variable: str) -> str:
    chosen = (given or default).strip().lower()
    if chosen not in known:
        raise InputError(f"{variable} is one of {', '.join(known)}, not {chosen!r}")
    return chosen


def log_error(error: BaseException, event: str = "error") -> Path | None:
    """Writes an error down with the way to it; the log's file, where there is one."""
    _tell(logging.ERROR, event, {**tracing.about(), **_fields_of(error)}, error)
    files = [one.path for one in _LOG.handlers if isinstance(one, _LogFile) and not one.broken]
    return files[0] if files else None


class LogObserver:
    """Tells the log what was done, how long it took and how it ended."""

    def began(self, span: tracing.Span) -> None:
        """Only ends are told."""

    def inside(self, span: tracing.Span) -> AbstractContextManager[object]:
        """Nothing is needed there."""
        del span
        return nullcontext()

    def ended(self, span: tracing.Span, error: BaseException | None) -> None:
        """A record at the end of a span."""
        loud = span.work in _LOUD
        fields = {**span.about, **span.fields, "ms": round(span.seconds * 1000)}
        if error is None or isinstance(error, KeyboardInterrupt):
            how = "done" if error is None else "stopped"
            _tell(logging.INFO if loud else logging.DEBUG, f"{span.name} {how}", fields)
        else:
            level = logging.WARNING if loud else logging.DEBUG
            _tell(level, f"{span.name} failed", fields | _fields_of(error), error)

    def number(self, number: tracing.Number, value: float, fields: tracing.Fields) -> None:
        """Numbers are for metrics: what they count has its span."""


def _tell(
    level: int, event: str, fields: Mapping[str, Any], error: BaseException | None = None
) -> None:
    if _LOG.handlers and _LOG.isEnabledFor(level):
        told = _way_to(error) if error is not None else {}
        _LOG.log(level, event, extra={"homer": {**fields, **told}})


def _fields_of(error: BaseException) -> dict[str, Any]:
    """What may be told of an error: its kind, and what the system or the database calls it."""
    found: dict[str, Any] = {"error": type(error).__name__}
    cause = error.__cause__ or error.__context__
    if cause is not None:
        found["cause"] = type(cause).__name__
    number = getattr(error, "errno", None) or getattr(cause, "errno", None)
    if isinstance(number, int):
        found["errno"] = number
    state = getattr(getattr(error, "orig", cause), "sqlstate", None)
    return found | ({"sqlstate": state} if isinstance(state, str) else {})


def _way_to(error: BaseException) -> dict[str, Any]:
    """The steps to where an error and its causes came from; at ``debug``, what each said too."""
    told: dict[str, Any] = {"trace": list(_steps_of(error))[-FRAMES * 2 :]}
    if _LOG.isEnabledFor(logging.DEBUG):
        told["said"] = str(error)
    return told


def _steps_of(error: BaseException) -> Iterator[str]:
    for one in reversed(_chain(error)):
        yield from _frames(one.__traceback__)
        yield type(one).__name__


def _chain(error: BaseException) -> list[BaseException]:
    """An error, its cause, that one's cause, ...; an error may be its own, and is told once."""
    chain: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and not any(found is one for one in chain):
        chain.append(found)
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return chain


def _frames(trace: TracebackType | None) -> Iterator[str]:
    for frame in traceback.extract_tb(trace)[-FRAMES:]:
        yield f"{_place(Path(frame.filename))}:{frame.lineno} {frame.name}"


def _place(path: Path) -> str:
    """A source file without the folders of this machine."""
    for above in ("site-packages", f"python{sys.version_info.major}.{sys.version_info.minor}"):
        if above in path.parts:
            return "/".join(path.parts[path.parts.index(above) + 1 :])
    inside = path.is_relative_to(_PACKAGES)
    return path.relative_to(_PACKAGES).as_posix() if inside else path.name


class _RecordFormatter(logging.Formatter):
    """A record as one line: a JSON object, or words with ``key=value`` after them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level, event = record.levelname.lower(), record.getMessage()
        fields: dict[str, Any] = {**getattr(record, "homer", {}), "pid": record.process}
        if self._form == "json":
            told = {"at": at, "level": level, "event": event, **fields}
            return json.dumps(told, ensure_ascii=True, default=str)
        rest = " ".join(f"{key}={_plain(value)}" for key, value in fields.items())
        return f"{at} {level} {event}: {rest}"


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, default=str).replace(" ", "\\u0020")


class _LogFile(logging.Handler):
    """Appends whole lines; several processes may write, and any of them begins a new file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.broken = path, False

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a record. A log that cannot be written stops no work."""
        try:
            line = (self.format(record) + "\n").encode()
            make_private(self.path.parent)
            self._append(line)
            self.broken = False
        except OSError:
            self.broken = True

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self.path, flags, 0o600)
        try:
            os.write(descriptor, line)
            if os.fstat(descriptor).st_size > LIMIT:
                self._turn(descriptor)
        finally:
            os.close(descriptor)

    def _turn(self, descriptor: int) -> None:
        """Puts the full file aside, unless another process has done so already."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if self.path.stat().st_ino != os.fstat(descriptor).st_ino:
                return
        for number in range(KEPT, 0, -1):
            suffix = f".{number - 1}" if number > 1 else ""
            older = self.path.with_name(self.path.name + suffix)
            with suppress(FileNotFoundError):
                older.replace(self.path.with_name(f"{self.path.name}.{number}"))
