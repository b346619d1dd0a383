"""Redaction of settings, events, errors and logs, so that strangers may read them.

Nothing is taken out: only what is known to have no content is put in.
"""

from __future__ import annotations

import builtins
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from domain import errors
from domain.asking import Mode
from telemetry.tracing import IDS, mask_id

_WORD = re.compile(r"[a-z][a-z_ -]{0,30}")
_WORDS_OF_EVENTS = frozenset(
    {"mode", "verdict", "rule", "purpose", "where", "state", "machine", "kind"}
)
_CLASSES = frozenset(
    name
    for room in (builtins, errors)
    for name, found in vars(room).items()
    if isinstance(found, type) and issubclass(found, BaseException)
) | {"OperationalError", "InterfaceError", "DataError", "IntegrityError", "ValidationError"}
_KINDS = {
    "did not answer": "the model did not answer",
    "does not let us in": "the model refused the key",
    "does not fit": "the reply does not fit",
    "cannot be read": "could not be read",
    "was cut off": "the reply was cut off",
    "no reply": "the reply is missing",
    "decoded": "could not be decoded",
    "damaged": "damaged",
    "could not be watched": "clips failed",
    "database": "the database",
    "memory": "memory",
    "No space": "no space",
}
_PHRASES = (
    *("out of memory", "No space left", "too many clients", "could not write", "PANIC", "FATAL"),
    *("terminating connection", "was interrupted", "deadlock", "Traceback", "ERROR", "WARNING"),
)
_STEP = re.compile(r"((?:[\w.-]+/)+[\w.-]+\.py):\d+ [\w<>.]+")
_FIELD = re.compile(r'(?<!\w)(\w++)=("(?:[^"\\]|\\.)*+"|\[[^\s\[\]]*+\](?= |$)|[^\s"]++)')
_TEXT = re.compile(r"(\S{20,40}) (debug|info|warning|error) ([a-z ]+):")
_STEPS = (
    "ingest",
    "clip",
    "perceive",
    "remember",
    "build windows",
    "question",
    "round",
    "model call",
)
_EVENT_WORDS = frozenset(
    f"{step} {end}"
    for step in (*_STEPS, *(f"search {mode}" for mode in Mode))
    for end in ("done", "failed", "stopped")
) | {"error", "debug", "info", "warning"}
_AT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")
_NAMES = frozenset(
    {*IDS, "ms", "pid", "errno", "sqlstate", "clips", "fresh", "failed", "rounds"}
    | {"tokens", "tokens_in", "tokens_out", "max_tokens", "found", "videos", "temperature"}
)


def error_kind(message: str) -> str:
    """Classify an error's message, if it is one of Homer's."""
    known = (kind for words, kind in _KINDS.items() if words in message)
    return next(known, "something else")


def error_class(message: str) -> str | None:
    """Return the exception class that a message begins with: ``ModelError: ...``."""
    first = message.partition(":")[0]
    return first if first in _CLASSES else None


def numbers_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's numbers and booleans, at any depth, and texts of one plain word."""
    shown: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            shown[key] = numbers_of(value)
        elif isinstance(value, str):
            shown |= {key: value} if _WORD.fullmatch(value) else {}
        elif value is None or isinstance(value, int | float):
            shown[key] = value
    return shown


def redact_event(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's numbers, lengths of lists, and words of the code."""
    shown: dict[str, Any] = {}
    for key, value in payload.items():
        if isinstance(value, bool | int | float):
            shown[key] = value
        elif isinstance(value, list):
            shown[f"{key}_count"] = len(value)
        elif isinstance(value, str) and key in ("message", "error"):
            shown["class"] = error_class(value) or error_kind(value)
        elif isinstance(value, str) and key in _WORDS_OF_EVENTS and _WORD.fullmatch(value):
            shown[key] = value
    return shown


def redact_log(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of Homer's log, in either form, with what is known to have no content."""
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            head = _TEXT.match(line)
            found = dict(zip(("at", "level", "event"), head.groups(), strict=True)) if head else {}
            found |= {key: _value(value) for key, value in _FIELD.findall(line)} if head else {}
        found = found if isinstance(found, dict) else {}
        at, level, event = (str(found.get(key, "")) for key in ("at", "level", "event"))
        if _AT.fullmatch(at):
            level, event = (one if one in _EVENT_WORDS else "another" for one in (level, event))
            kept = {key: _plain(key, found[key]) for key in found if key in _NAMES}
            shown = {"at": at, "level": level, "event": event} | kept
            for key in ("error", "cause"):
                if found.get(key) is not None:
                    shown[key] = str(found[key]) if str(found[key]) in _CLASSES else "another"
            if isinstance(found.get("trace"), list):
                steps = [str(step) for step in found["trace"]]
                shown["trace"] = [
                    step if _STEP.fullmatch(step) or step in _CLASSES else "elsewhere"
                    for step in steps
                ]
            yield shown


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _plain(key: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if key == "sqlstate":
        return value if re.fullmatch(r"[0-9A-Z]{5}", str(value)) else None
    return mask_id(str(value))


def count_known_words(lines: Iterable[str]) -> dict[str, Any]:
    """Count known phrases and exception classes in the log of another program."""
    count, phrases, classes = 0, Counter[str](), Counter[str]()
    for line in lines:
        count += 1
        phrases.update(one for one in _PHRASES if one in line)
        name = line.partition(":")[0].rpartition(".")[2].strip()
        classes.update([name] if name in _CLASSES else [])
    return {"lines": count, "phrases": dict(phrases), "errors": dict(classes)}
