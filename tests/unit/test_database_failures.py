"""What a failing database says, how vectors travel, and texts embedded ahead."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from psycopg import errors
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)

from domain.media import Utterance
from memory import import_captions
from memory.import_captions import _expected_texts, _PrefetchingEmbedder
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext
from people.characters import ClipPeople
from people.names import search_text
from store.driver import explain_failure, is_database_failure, pack_halfvec, unpack_halfvecs
from store.queries.conditions import is_any_of
from store.tables.schema import MemoryRow
from tests.support.memory import WordVectors, percept, said, span

WHERE = "database homer on db.example:5433"
TEXTS = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6)


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


@given(
    st.lists(st.none() | st.lists(st.floats(-60_000, 60_000, width=16), max_size=40), max_size=5)
)
def test_vectors_travel_packed_and_come_back_equal(vectors: list[list[float] | None]) -> None:
    back = unpack_halfvecs([pack_halfvec(one) for one in vectors])
    assert [one.tolist() for one in back] == [one or [] for one in vectors]
    assert all(one.dtype == np.float32 for one in back)


class Counted(WordVectors):
    """Counts how often each text was embedded, and by whom."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.threads: set[str] = set()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen += texts
        self.threads.add(threading.current_thread().name)
        return super().embed(texts)


@given(st.lists(st.tuples(st.booleans(), TEXTS), max_size=6))
def test_rows_are_those_of_the_embedder_in_order(steps: list[tuple[bool, list[str]]]) -> None:
    plain, counted = WordVectors(), Counted()
    with _PrefetchingEmbedder(counted) as ahead:
        assert (ahead.name, ahead.dimensions) == (plain.name, plain.dimensions)
        for only_expected, texts in steps:
            if only_expected:
                ahead.prefetch(texts)
            else:
                assert np.array_equal(ahead.embed(texts), plain.embed(texts))
    assert len(counted.seen) == len(set(counted.seen))
    assert all(name.startswith("embed") for name in counted.threads)


@given(st.lists(TEXTS, min_size=1, max_size=8), st.integers(0, 4))
def test_few_are_stored_and_others_are_embedded_again(steps: list[list[str]], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch, _PrefetchingEmbedder(Counted()) as ahead:
        patch.setattr(import_captions, "MAX_CACHED_VECTORS", most)
        for texts in steps:
            assert np.array_equal(ahead.embed(texts), WordVectors().embed(texts))
            assert len(ahead._cached) <= most


class Broken(WordVectors):
    """Fails at one text."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if "bad" in texts:
            raise RuntimeError("the model broke")
        return super().embed(texts)


def test_an_error_reaches_who_asked_for_that_text_and_nobody_else() -> None:
    with _PrefetchingEmbedder(Broken()) as ahead:
        ahead.prefetch(["bad"])
        assert len(ahead.embed(["good"])) == 1
        with pytest.raises(RuntimeError, match="the model broke"):
            ahead.embed(["bad"])
        assert len(ahead.embed(["fine"])) == 1


def test_leaving_waits_for_the_thread_and_leaves_none() -> None:
    before = threading.active_count()
    with _PrefetchingEmbedder(Counted()) as ahead:
        ahead.prefetch(["a"])
    assert threading.active_count() == before
    with pytest.raises(RuntimeError):
        ahead.prefetch(["b"])


@given(st.lists(st.sampled_from(["It is late.", "Ada: <voice_1> sings", "a b " * 50]), max_size=4))
def test_what_is_expected_is_what_the_local_writer_asks_for(texts: list[str]) -> None:
    one = percept(
        0,
        utterances=tuple(said(n, text, speaker="Jake") for n, text in enumerate(texts)),
        captions=tuple(Utterance(span=span(n, n + 1), text=text) for n, text in enumerate(texts)),
    )
    written = LocalClipWriter().write(one, ClipPeople(), ClipContext(""))
    assert _expected_texts([one]) == [search_text(draft, ClipPeople()) for draft in written.drafts]
    assert _expected_texts([one, one]) == 2 * _expected_texts([one])
