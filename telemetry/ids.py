"""The ids of what is under way, which its spans and log records have."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Value = str | int | float | bool
Fields = Mapping[str, Value]

IDS = ("video", "clip", "trajectory", "flow_run", "round")
"""The fields that everything below a span has too."""

_ANONYMOUS = re.compile(r"[0-9a-f]{16}|x[0-9a-f]{15}|[0-9a-f-]{36}")
_ids: ContextVar[Fields] = ContextVar("ids", default={})  # noqa: B039 - never changed in place


def current_ids() -> Fields:
    """Return the ids of what is under way here."""
    return _ids.get()


@contextmanager
def bind_ids(**ids: Value) -> Iterator[None]:
    """Give these ids to all spans and records inside."""
    token = _ids.set({**_ids.get(), **{key: mask_id(value) for key, value in ids.items()}})
    try:
        yield
    finally:
        _ids.reset(token)


def mask_id(value: Value) -> Value:
    """Return an id that says nothing: that of captions is made of their file's name."""
    if not isinstance(value, str) or _ANONYMOUS.fullmatch(value):
        return value
    return f"x{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:15]}"
