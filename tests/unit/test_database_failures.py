"""What a failing database says, in one line with what to do, and without the password."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)

from store.driver import explain_failure, is_database_failure, pack_halfvec, unpack_halfvecs
from store.queries.conditions import is_any_of
from store.tables.schema import MemoryRow

WHERE = "database homer on db.example:5433"


def failed(
    cause: BaseException, kind: type[DBAPIError] = OperationalError, lost: bool = False
) -> DBAPIError:
    return kind("SELECT secret", {"password": "hunter2"}, cause, connection_invalidated=lost)


@pytest.mark.parametrize(
    ("cause", "output"),
    [
        (errors.DiskFull("could not extend file: No space left"), "the disk of the {w} is full"),
        (errors.OutOfMemory("out of memory"), "the {w} is out of memory (out of memory)"),
        (errors.OperationalError("refused\nIs it running?"), "the {w} cannot be reached"),
        (
            errors.AdminShutdown("terminating connection"),
            "the {w} gave up (terminating connection)",
        ),
        (errors.DeadlockDetected("deadlock detected"), "the {w} gave up (deadlock detected)"),
        (errors.OperationalError(""), "the {w} cannot be reached (OperationalError)"),
    ],
)
def test_each_failure_says_what_to_do(cause: BaseException, output: str) -> None:
    said = explain_failure(failed(cause), WHERE)
    assert output.format(w=WHERE) in said
    assert "run this again" in said
    assert "\n" not in said
    assert "hunter2" not in said
    assert "SELECT" not in said


def test_a_connection_that_was_lost_in_use_cannot_be_reached() -> None:
    lost = failed(errors.AdminShutdown("terminated"), lost=True)
    assert "cannot be reached (terminated)" in explain_failure(lost, WHERE)
    assert is_database_failure(lost)


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        (OperationalError, False),
        (InterfaceError, False),
        (IntegrityError, True),
        (ProgrammingError, True),
        (DataError, True),
    ],
)
def test_our_own_mistake_is_no_failure_of_the_database(kind: type[DBAPIError], ours: bool) -> None:
    assert is_database_failure(failed(errors.Error("x"), kind)) is not ours
    assert is_database_failure(failed(errors.Error("x"), kind, lost=True))


@given(st.lists(st.integers(-(2**62), 2**62), max_size=50))
def test_many_values_are_one_parameter_each_once_and_in_order(values: list[int]) -> None:
    (sent,) = is_any_of(MemoryRow.id, values).compile().params.values()
    assert sent == sorted(set(values))


HALVES = st.lists(st.floats(-60_000, 60_000, width=16), max_size=40)


@given(st.lists(st.none() | HALVES, max_size=5))
def test_vectors_travel_packed_and_come_back_equal(vectors: list[list[float] | None]) -> None:
    back = unpack_halfvecs([pack_halfvec(one) for one in vectors])
    assert [one.tolist() for one in back] == [one or [] for one in vectors]
    assert all(one.dtype == np.float32 for one in back)
