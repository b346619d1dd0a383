"""One log for all of Homer's processes: ``HOMER_HOME/logs/homer.log``, a record a line.

A record has its time, its level, an event in words of the code, and fields (``extra={"homer":
...}``): ids, numbers, names of errors. What was said, asked, shown or answered is in none; nor is
what an error says, which may quote it, but at the level ``debug``. Modules log to the logger
``homer.<module>``.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domain.errors import InputError
from store.files import lock_file, make_private
from store.home import Home
from telemetry.tracing import current_ids

FORM, LEVEL, PLACE = "HOMER_LOG", "HOMER_LOG_LEVEL", "HOMER_LOG_TO"
FORMS = ("json", "text")
LEVELS = ("debug", "info", "warning", "error")

LIMIT = 5_000_000
"""Bytes of a log; then it becomes ``homer.log.1``, and so on up to ``BACKUPS`` older ones."""
BACKUPS = 3
FRAMES = 30
"""The innermost frames of a traceback that are logged."""

_ROOT_LOG = logging.getLogger("homer")
_LOG = logging.getLogger(f"homer.{__name__}")
_PACKAGES = Path(__file__).resolve().parents[1]


def log_path(home: Home) -> Path:
    return home.logs / "homer.log"


def set_up_logging(home: Home, level: str | None = None) -> None:
    """Write this process's records to the log from here on.

    Args:
        home: The data directory; it is not made before there is something to write.
        level: One of ``LEVELS``; None is ``$HOMER_LOG_LEVEL``'s, else ``info``.

    Raises:
        InputError: There is no such level, form or place.
    """
    chosen = _choice(level or os.environ.get(LEVEL), LEVELS, "info", LEVEL)
    form = _choice(os.environ.get(FORM), FORMS, "json", FORM)
    place = _choice(os.environ.get(PLACE), ("file", "stderr"), "file", PLACE)
    for old in _ROOT_LOG.handlers[:]:
        _ROOT_LOG.removeHandler(old)
    handler = LogFile(log_path(home)) if place == "file" else logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordFormatter(form))
    _ROOT_LOG.addHandler(handler)
    _ROOT_LOG.setLevel(chosen.upper())


def _choice(given: str | None, known: tuple[str, ...], default: str, variable: str) -> str:
    chosen = (given or default).strip().lower()
    if chosen not in known:
        raise InputError(f"{variable} is one of {', '.join(known)}, not {chosen!r}")
    return chosen


def log_error(error: BaseException, event: str = "error") -> Path | None:
    """Log an error with its traceback; return the log's file, if it could be written."""
    _LOG.error(event, exc_info=error, extra={"homer": current_ids()})
    written = (one for one in _ROOT_LOG.handlers if isinstance(one, LogFile) and not one.broken)
    return next((one.path for one in written), None)


def _steps_of(error: BaseException) -> Iterator[str]:
    # An error, its cause, that one's cause, ..., each once: an error may be its own.
    chain: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and not any(found is one for one in chain):
        chain.append(found)
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    for one in reversed(chain):
        for frame in traceback.extract_tb(one.__traceback__)[-FRAMES:]:
            yield f"{_place(Path(frame.filename))}:{frame.lineno} {frame.name}"
        yield type(one).__name__


def _place(path: Path) -> str:
    """Return a source file without the folders of this machine."""
    for above in ("site-packages", f"python{sys.version_info.major}.{sys.version_info.minor}"):
        if above in path.parts:
            return "/".join(path.parts[path.parts.index(above) + 1 :])
    inside = path.is_relative_to(_PACKAGES)
    return path.relative_to(_PACKAGES).as_posix() if inside else path.name


class RecordFormatter(logging.Formatter):
    """A record as one line: a JSON object, or words with ``key=value`` after them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level, event = record.levelname.lower(), record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        about_error: dict[str, Any] = {}
        if error is not None:
            # Its class and cause, the system's or the database's number for it, and the frames that
            # led to it; at ``debug``, its message too.
            about_error["error"] = type(error).__name__
            cause = error.__cause__ or error.__context__
            if cause is not None:
                about_error["cause"] = type(cause).__name__
            number = getattr(error, "errno", None) or getattr(cause, "errno", None)
            if isinstance(number, int):
                about_error["errno"] = number
            state = getattr(getattr(error, "orig", cause), "sqlstate", None)
            if isinstance(state, str):
                about_error["sqlstate"] = state
            about_error["trace"] = list(_steps_of(error))[-FRAMES * 2 :]
            if _ROOT_LOG.isEnabledFor(logging.DEBUG):
                about_error["said"] = str(error)
        fields = {**getattr(record, "homer", {}), **about_error, "pid": record.process}
        if self._form == "json":
            line = {"at": at, "level": level, "event": event, **fields}
            return json.dumps(line, ensure_ascii=True, default=str)
        plain = ((key, json.dumps(value, default=str)) for key, value in fields.items())
        rest = " ".join(f"{key}=" + text.replace(" ", "\\u0020") for key, text in plain)
        return f"{at} {level} {event}: {rest}"


class LogFile(logging.Handler):
    """Appends whole lines; several processes may write, and any of them begins a new file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.broken = path, False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = (self.format(record) + "\n").encode()
            make_private(self.path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            descriptor = os.open(self.path, flags, 0o600)
            try:
                os.write(descriptor, line)
                if os.fstat(descriptor).st_size > LIMIT:
                    self._rotate(descriptor)
            finally:
                os.close(descriptor)
            self.broken = False
        except OSError:
            # A log that cannot be written stops no work.
            self.broken = True

    def _rotate(self, descriptor: int) -> None:
        """Set the full file aside."""
        lock_file(descriptor)
        with suppress(FileNotFoundError):
            # Another process has done so already.
            if self.path.stat().st_ino != os.fstat(descriptor).st_ino:
                return
        for number in range(BACKUPS, 0, -1):
            suffix = f".{number - 1}" if number > 1 else ""
            older = self.path.with_name(self.path.name + suffix)
            with suppress(FileNotFoundError):
                older.replace(self.path.with_name(f"{self.path.name}.{number}"))


# Setting up what a process reports: its log, and a collector where the environment names one.


_COLLECTOR_VARIABLES = (
    *("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    *("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"),
)


def set_up_telemetry(home: Home, level: str | None = None) -> None:
    """Log what this process does, and send it where the environment names a collector.

    Where a collector is named and the extra ``otel`` is not installed, nothing is sent, which
    ``homer doctor`` says.

    Raises:
        InputError: The environment asks for a log that there is not.
    """
    set_up_logging(home, level)
    # Without a collector OpenTelemetry's SDK is not even looked for.
    if any(os.environ.get(name) for name in _COLLECTOR_VARIABLES):
        from telemetry.otel import installed, start_export, wanted

        if (wanted("TRACES") or wanted("METRICS")) and installed():
            start_export()
