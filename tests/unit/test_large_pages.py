"""Asking for large pages: when it is asked, of which memory, and that nothing is lost by it."""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
from pathlib import Path
from threading import Event

import pytest

from models import large_pages
from models.large_pages import LARGE, LargePages, ask_for_large_pages

MAPPED = [
    ("00400000-00e00000 rw-p 00000000 00:00 0                          [heap]", 10_240),
    ("10100000-10900000 rw-p 00000000 00:00 0 ", 8_192),
    ("20000000-20200000 r--p 00000000 00:00 0 ", 2_048),
    ("30000000-30200000 rw-p 00000000 08:01 77                 /lib/a\x85b\x0clibrary.so", 2_048),
    ("40000000-40200000 rw-s 00000000 00:00 0 ", 2_048),
    ("50000000-50200000 rw-p 00000000 00:00 0                          [stack]", 2_048),
    ("60000000-601ff000 rw-p 00000000 00:00 0 ", 2_044),
    ("70000000-70800000 rw-p 00000000 00:00 0 ", 120),
    ("7f0000000000-7f0000200000 rw-p 00000000 00:00 0 ", 1_600),
]
"""What is mapped, and how many kB of it are in use."""


def test_who_asks_while_it_is_asked_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []
    begun, goes_on = Event(), Event()

    def ask() -> None:
        times.append(1)
        begun.set()
        assert goes_on.wait(30)

    monkeypatch.setattr(large_pages, "ask_for_large_pages", ask)
    pages = LargePages()
    pages.want()
    assert begun.wait(30)
    pages.want()
    pages.want()
    goes_on.set()
    pages.wait()
    assert len(times) == 2
    pages.want()
    pages.wait()
    assert len(times) == 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_they_are_asked_for_again_after_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[int] = []

    def ask() -> None:
        times.append(1)
        raise MemoryError

    monkeypatch.setattr(large_pages, "ask_for_large_pages", ask)
    pages = LargePages()
    for _ in range(2):
        pages.want()
        pages.wait()
    assert len(times) == 2


def test_only_memory_of_the_process_itself_is_meant_that_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "".join(
        f"{head}\nSize:   9 kB\nKernelPageSize: 4 kB\nRss:  {used} kB\nPss: 1 kB\nVmFlags: rd wr\n"
        for head, used in MAPPED
    )
    (tmp_path / "smaps").write_text(told, "utf-8")
    monkeypatch.setattr(large_pages, "MAPPED", tmp_path / "smaps")
    assert list(large_pages._own_memory()) == [
        (0x400000, 0xE00000),
        (0x10200000, 0x10800000),
        (0x7F0000000000, 0x7F0000200000),
    ]


@pytest.mark.parametrize("allowed", ["always madvise [never]\n", None])
def test_where_they_are_switched_off_or_unknown_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str | None
) -> None:
    if allowed is not None:
        (tmp_path / "enabled").write_text(allowed)
    monkeypatch.setattr(large_pages, "ALLOWED", tmp_path / "enabled")
    monkeypatch.setattr(large_pages, "_collapse", lambda _: pytest.fail("was asked"))
    ask_for_large_pages()


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here nobody else wants to get on."""
    monkeypatch.setattr(large_pages, "_REST", 0.0)


@pytest.mark.skipif(sys.platform != "linux", reason="large pages are asked for on Linux alone")
@pytest.mark.usefixtures("restless")
def test_memory_keeps_what_is_in_it() -> None:
    held = bytearray(range(256)) * (4 * LARGE // 256)
    ask_for_large_pages()
    assert held == bytearray(range(256)) * (4 * LARGE // 256)


def large_kilobytes(address: int) -> int:
    """How much lies in large pages of the mapping that ``address`` is in."""
    told = Path("/proc/self/smaps").read_bytes().decode("utf-8", "replace")
    for one in re.finditer(r"^([0-9a-f]+)-([0-9a-f]+) (?s:.*?)^AnonHugePages:\s+(\d+)", told, re.M):
        if int(one[1], 16) <= address < int(one[2], 16):
            return int(one[3])
    return pytest.fail("it is not mapped")


@pytest.mark.skipif(
    not large_pages.ALLOWED.is_file() or "[madvise]" not in large_pages.ALLOWED.read_text("ascii"),
    reason="here the system gives large pages always, never, or not on request",
)
@pytest.mark.usefixtures("restless")
def test_memory_in_small_pages_comes_into_large_ones() -> None:
    # Mapped by itself: what the C library hands out again may lie in large pages already.
    held = mmap.mmap(-1, 8 * LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(held))
    before = large_kilobytes(address)
    held[:] = b"x" * len(held)
    assert large_kilobytes(address) == before
    ask_for_large_pages()
    if large_kilobytes(address) == before:
        pytest.skip("the system is older than asking for what there is already, or has none left")
    assert large_kilobytes(address) > before
    assert held[:] == b"x" * len(held)
