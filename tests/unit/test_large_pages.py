"""Asking for large pages: when it is asked, of which memory, and that nothing is lost by it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
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


def wait(done: Callable[[], bool]) -> None:
    """For what a thread beside does."""
    for _ in range(500):
        if done():
            return
        Event().wait(0.01)
    pytest.fail("waited in vain")


def test_who_asks_while_it_is_asked_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    times, goes_on = [], Event()

    def ask() -> None:
        times.append(1)
        assert goes_on.wait(30)

    monkeypatch.setattr(large_pages, "ask_for_large_pages", ask)
    pages = LargePages()
    pages.want()
    wait(lambda: len(times) == 1)
    pages.want()
    pages.want()
    goes_on.set()
    wait(lambda: len(times) == 2 and not pages._under_way)
    pages.want()
    wait(lambda: len(times) == 3 and not pages._under_way)


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


@pytest.mark.skipif(sys.platform != "linux", reason="large pages are asked for on Linux alone")
def test_memory_keeps_what_is_in_it() -> None:
    held = bytearray(range(256)) * (4 * LARGE // 256)
    ask_for_large_pages()
    assert held == bytearray(range(256)) * (4 * LARGE // 256)


def large_kilobytes() -> int:
    told = Path("/proc/self/smaps_rollup").read_text("ascii")
    found = re.search(r"AnonHugePages:\s+(\d+)", told)
    return int(found[1]) if found else 0


@pytest.mark.skipif(
    not large_pages.ALLOWED.is_file() or "[madvise]" not in large_pages.ALLOWED.read_text("ascii"),
    reason="here the system gives large pages always, never, or not on request",
)
def test_memory_in_small_pages_comes_into_large_ones() -> None:
    before, held = large_kilobytes(), bytearray(b"x") * (8 * LARGE)
    assert large_kilobytes() < before + 4 * LARGE // 1024
    ask_for_large_pages()
    if large_kilobytes() == before:
        pytest.skip("the system is older than asking for what there is already, or has none left")
    assert large_kilobytes() > before
    assert len(held) == 8 * LARGE
