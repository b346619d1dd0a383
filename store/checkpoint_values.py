"""Serialisation of checkpoint values: plain JSON types and nothing else.

LangGraph's own serializer imports and calls whatever the bytes name, and checkpoints arrive with
exports and back-ups. So values are JSON: anything else is rejected.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from domain.errors import InputError

JSON, NOTHING = "json", "null"
_NO_VALUE = "empty"
"""LangGraph's format name for a channel without a value, which has no bytes."""

MAX_BYTES = 8 << 20
"""The largest value accepted; a state has a few kilobytes."""

BLOBS, WRITES = "checkpoint_blobs", "checkpoint_writes"


def pack_value(value: Any) -> tuple[str, bytes]:
    """Serialise a value; return the name of its format and the bytes.

    Raises:
        TypeError: It is not made of plain JSON types.
    """
    if value is None:
        return NOTHING, b""
    _check_plain(value)
    return JSON, json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def unpack_value(kind: str, data: bytes | None) -> Any:
    """Deserialise a value written by ``pack_value``.

    Raises:
        InputError: It is anything else.
    """
    body = bytes(data or b"")
    if kind == NOTHING:
        return None
    if kind != JSON:
        raise _refused(f"the format {kind[:40]!r}")
    if len(body) > MAX_BYTES:
        raise _refused(f"a value of {len(body)} bytes")
    try:
        value = json.loads(body)
        _check_plain(value)
    except (ValueError, TypeError, RecursionError) as exc:
        raise _refused("a value that is no plain data") from exc
    return value


def check_row(table: str, row: Mapping[str, Any]) -> None:
    """Check that a row of a checkpoint table, given as JSON, holds a plain value.

    Raises:
        InputError: It does not.
    """
    if table.rpartition(".")[2] not in (BLOBS, WRITES) or row.get("type") is None:
        return
    kind, body = row["type"], row.get("blob")
    if not isinstance(kind, str) or not isinstance(body, str | None):
        raise _refused("a value that is no plain data")
    # Without this prefix Postgres would read the text as the bytes themselves.
    if body is not None and not re.fullmatch(r"\\x([0-9a-f]{2})*", body):
        raise _refused("a value that is no plain data")
    from_hex = bytes.fromhex(body[2:]) if body else b""
    check_value(kind, from_hex)


def check_value(kind: str, data: bytes | None) -> None:
    """Check that a value can be deserialised.

    Raises:
        InputError: It cannot.
    """
    if kind == _NO_VALUE and not data:
        return
    unpack_value(kind, data)


def _check_plain(value: Any) -> None:
    """Raise TypeError unless a value has only types that JSON restores unchanged."""
    if value is None or type(value) in (str, int, bool):
        return
    if type(value) is float and math.isfinite(value):
        return
    if type(value) is list:
        for item in value:
            _check_plain(item)
    elif type(value) is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise TypeError(f"a key in a checkpoint is {type(key).__name__}, not a text")
            _check_plain(item)
    else:
        raise TypeError(f"a value in a checkpoint is {type(value).__name__}, not plain data")


def _refused(problem: str) -> InputError:
    return InputError(
        f"a checkpoint holds {problem}, which Homer never writes: it came with an import or a "
        "back-up that was altered, and is not read"
    )
