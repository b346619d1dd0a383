"""A slice of ``make fuzz``, what was found by it once, and that what it looks for is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.errors import HomerError
from tests.fuzz.campaign import run
from tests.fuzz.targets import TARGETS, Target, corpus

KEPT = Path(__file__).parents[1] / "fuzz" / "corpus"
SLICES = {
    "subtitles": 80,
    "patches": 60,
    "replies": 80,
    "exports": 120,
    "back-ups": 120,
    "settings": 30,
    "data sets": 20,
    "names": 40,
}
"""Cases of the parsers that cannot take the process along."""


def begun(name: str) -> Target:
    target = TARGETS[name]
    if not target.made:
        target.begin()
    return target


def read(target: Target, path: Path) -> str:
    """Whether a case is read or refused; anything else fails the test."""
    try:
        target.read(path)
    except HomerError:
        return "refused"
    return "read"


@pytest.mark.full
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_begun_from_is_read(name: str, tmp_path: Path) -> None:
    target = begun(name)
    for kind, data in target.made.items():
        path = tmp_path / f"case0-{kind}"
        path.write_bytes(data)
        assert read(target, path) == "read", kind


@pytest.mark.parametrize(("name", "count"), SLICES.items())
def test_a_parser_reads_or_refuses(name: str, count: int, tmp_path: Path) -> None:
    target, outcomes = begun(name), set()
    for number in range(count):
        kind, data = target.case(2, number)
        path = tmp_path / f"case{number}-{kind}"
        path.write_bytes(data)
        outcomes.add(read(target, path))
    assert "read" in outcomes
    assert name == "names" or "refused" in outcomes


def test_containers_are_read_or_refused() -> None:
    tally = run("containers", 2, 0, 60)
    assert tally.findings == []
    assert tally.outcomes["read"] > 10
    assert tally.errors.keys() == {"MediaError"}


@pytest.mark.parametrize(("name", "path"), corpus(KEPT), ids=lambda one: Path(one).name)
def test_what_was_found_once_is_read_or_refused(name: str, path: Path) -> None:
    assert read(begun(name), path) in ("read", "refused")


@pytest.mark.full
def test_every_way_to_go_wrong_is_seen_and_the_rest_is_read() -> None:
    tally = run("bad", 1, 0, 9, worker="tests.support.bad_parsers")
    assert tally.cases == 9
    assert tally.outcomes == {"read": 3, "refused": 1, "crash": 3, "hang": 1, "memory": 1}
    output = dict(tally.findings)
    assert output[2].startswith("crash: KeyError at bad_parsers.py:")
    assert (output[3], output[4]) == ("crash: SIGSEGV", "hang: beyond its time")
    assert output[5].startswith("memory: ")
    assert output[6] == "crash: exit code 3"
