"""SQL conditions over many values passed as one parameter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, any_, cast


def is_any_of(column: Any, values: Iterable[int]) -> ColumnElement[bool]:
    """Return the condition that an integer column is one of ``values``.

    They are one array parameter, since Postgres takes at most 65 535 parameters.
    """
    condition: ColumnElement[bool] = column == any_(cast(sorted(set(values)), ARRAY(BigInteger)))
    return condition
