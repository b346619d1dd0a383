"""Reading a pipe: what is written is read whole, and a reader that is to stop is never stuck."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from perception import live
from perception.live import Pipe, open_pipe


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader looks whether to stop after a hundredth of a second."""
    monkeypatch.setattr(live, "POLL_S", 0.01)


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """Where one reads, and where one writes."""
    reading, writing = os.pipe()
    yield reading, writing
    for one in (reading, writing):
        try:
            os.close(one)
        except OSError:
            continue


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    place = tmp_path / "camera"
    os.mkfifo(place)
    return place


def never() -> bool:
    return False


def always() -> bool:
    return True


class After:
    """True from the ``looks``-th look on."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_what_is_written_is_read_in_order_and_then_the_end(ends: tuple[int, int]) -> None:
    reading, writing = ends
    os.write(writing, b"one two three")
    os.close(writing)
    pipe = Pipe(reading, never, owned=False)
    assert (pipe.read(4), pipe.read(100)) == (b"one ", b"two three")
    assert not pipe.ended
    assert pipe.read(100) == b""
    assert pipe.ended


def test_it_waits_for_what_comes_later(ends: tuple[int, int]) -> None:
    reading, writing = ends
    Timer(0.05, os.write, (writing, b"late")).start()
    assert Pipe(reading, never, owned=False).read(10) == b"late"


@pytest.mark.parametrize(("stop", "there"), [(always, b"more"), (After(3), b"")])
def test_one_that_is_to_stop_reads_nothing(ends: tuple[int, int], stop: Any, there: bytes) -> None:
    os.write(ends[1], there)
    pipe = Pipe(ends[0], stop, owned=False)
    assert pipe.read(10) == b""
    assert not pipe.ended


@pytest.mark.parametrize(("stop", "tired"), [(never, After(2)), (After(4), never)])
def test_a_writer_that_never_came_is_given_up_and_is_no_end(
    fifo: Path, stop: Any, tired: Any
) -> None:
    pipe = open_pipe(str(fifo), stop, tired)
    assert pipe.read(10) == b""
    assert not pipe.ended
    pipe.close()


def test_but_never_one_that_has_begun_to_write(fifo: Path) -> None:
    pipe, writing = open_pipe(str(fifo), never, After(1)), os.open(fifo, os.O_WRONLY)
    os.write(writing, b"first")
    assert pipe.read(10) == b"first"
    Timer(0.05, os.write, (writing, b"second")).start()
    assert pipe.read(10) == b"second"
    os.close(writing)
    assert pipe.read(10) == b""
    assert pipe.ended
    pipe.close()


def test_standard_input_stays_open(ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = ends
    with os.fdopen(os.dup(reading)) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        pipe = open_pipe("-", never, never)
        os.write(writing, b"film")
        assert pipe.read(10) == b"film"
        pipe.close()
        os.write(writing, b"more")
        assert os.read(stdin.fileno(), 10) == b"more"


def test_a_fifo_is_let_go_of(fifo: Path) -> None:
    pipe = open_pipe(str(fifo), never, never)
    pipe.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        pipe.close()


def test_a_place_where_no_fifo_is_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_pipe(str(tmp_path / "nothing"), never, never)
