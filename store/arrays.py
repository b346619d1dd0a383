"""Many values as one parameter: Postgres takes at most 65 535 of them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, any_, cast


def among(column: Any, values: Iterable[int]) -> ColumnElement[bool]:
    """Whether a whole-number column is one of ``values``, however many they are."""
    found: ColumnElement[bool] = column == any_(cast(sorted(set(values)), ARRAY(BigInteger)))
    return found
