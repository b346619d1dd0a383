"""Asking for large pages: when it is asked, of which memory, and that nothing is lost by it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from models import large_pages
from models.large_pages import LARGE, LargePages, ask_for_large_pages

MAPPED = """\
00400000-00e00000 rw-p 00000000 00:00 0                                  [heap]
10100000-10900000 rw-p 00000000 00:00 0
20000000-20200000 r--p 00000000 00:00 0
30000000-30200000 rw-p 00000000 08:01 77                                 /lib/a library.so
40000000-40200000 rw-s 00000000 00:00 0
50000000-50200000 rw-p 00000000 00:00 0                                  [stack]
60000000-601ff000 rw-p 00000000 00:00 0
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Filled whenever a thread asks."""
    every: list[bool] = []
    monkeypatch.setattr(large_pages, "ask_for_large_pages", lambda: every.append(True))
    return every


def hold(pages: LargePages, amount: int) -> None:
    begun = pages.hold(amount)
    if begun is not None:
        begun.join()


def test_little_is_not_worth_it(asked: list[bool]) -> None:
    hold(LargePages(100), 99)
    assert asked == []


def test_it_is_asked_again_only_once_much_has_come(asked: list[bool]) -> None:
    pages = LargePages(100)
    for amount, times in ((100, 1), (100, 1), (124, 1), (125, 2), (150, 2), (157, 3)):
        hold(pages, amount)
        assert len(asked) == times


def test_what_is_read_in_again_after_it_was_dropped_is_asked_for_again(asked: list[bool]) -> None:
    pages = LargePages(100)
    for amount in (1_000, 10, 1_000):
        hold(pages, amount)
    assert len(asked) == 2


def test_only_memory_of_the_process_itself_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "maps").write_text(MAPPED)
    monkeypatch.setattr(large_pages, "MAPS", tmp_path / "maps")
    assert list(large_pages._own_memory()) == [(0x400000, 0xE00000), (0x10200000, 0x10800000)]


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
        pytest.skip("the system is older than asking for what there is already (Linux 6.1)")
    assert large_kilobytes() >= before + 6 * LARGE // 1024
    assert len(held) == 8 * LARGE
