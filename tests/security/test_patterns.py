"""Time that grows with the square of a text lets one long line stop a machine: no pattern may."""

from __future__ import annotations

import re

import pytest

from retrieval.heuristics.questions import order_of
from tests.support.full_suite import in_full, is_full
from tests.support.regular_expressions import PACKAGES, Attack, Use, attacks, calls, sources, uses
from tests.support.relative_cpu_time import cpu, is_linear

FIRST = 24
"""Characters at which the time of an exponential pattern shows already."""
SCREEN = 1_000
"""Characters of the texts that are tried first; the slowest is made longer."""
PAUSE_S = 0.1
"""Seconds that no pattern takes for so short texts, also on a busy machine."""
LENGTHS = (8_000, 62_500, 250_000, 1_000_000) if is_full() else (8_000, 62_500)
TIMES = 20
"""So many times the time of a plain pattern may be taken, for each character.

Runs that are scanned once for each of their characters take more at 8,000 of them, and hundreds of
times as much at a megabyte.
"""

NOT_FROM_OUTSIDE = {"store/files.py:_FLOCK": "the kernel's list of locks"}
MADE_WHEN_USED = {
    "evals/dataset.py": "what whoever marked a set of questions wrote of right answers",
    "models/sentences.py": "names of people, which are short, each taken literally",
    "people/names.py": "names of people, which are short, each taken literally",
    "people/characters.py": "names of people, which are short, each taken literally",
    "skills/writer.py": "words that are short, taken literally",
    "store/embedded.py": "one of three patterns that stand beside it",
    "store/files.py": "the name of a file, taken literally",
    "library/transcript.py": "names of people, which are short, each taken literally",
}
"""Files with patterns that are put together while they run, and of what."""


def slow(use: Use) -> str | None:
    """An attack under which the time of a pattern grows beyond all proportion, in words."""
    costs: list[tuple[float, int, Attack]] = []
    for number, one in enumerate(attacks(use.pattern)):
        for length in (FIRST, SCREEN):
            seconds = cpu(lambda: use.run(one.text(length)))  # noqa: B023 - run at once
            if seconds > PAUSE_S:
                # Python may have collected the garbage of other tests in between.
                seconds = cpu(lambda: use.run(one.text(length)))  # noqa: B023 - run at once
            if seconds > PAUSE_S:
                return f"{use.where} {use.method}: {seconds:.2f} s for {length} of {one}"
        costs.append((seconds, -number, one))
    worst, second = sorted(costs, reverse=True)[:2]
    tried = [(worst[2], length) for length in LENGTHS] + [(second[2], LENGTHS[0])]
    for one, length in tried:
        text = one.text(length)
        if not is_linear(lambda: use.run(text), length, TIMES):  # noqa: B023 - run at once
            return f"{use.where} {use.method}: {length} characters of {one}"
    return None


@pytest.mark.parametrize("package", PACKAGES)
def test_no_pattern_takes_more_than_linear_time(package: str) -> None:
    found = [use for use in uses() if use.where.startswith(f"{package}/")]
    asked = [use for use in found if use.where not in NOT_FROM_OUTSIDE]
    assert [output for use in asked if (output := slow(use))] == []


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        in_full((r"\s+and\s+", "search")),
        in_full((r"<[^>]*>", "sub")),
        (r"<[^>]*$", "sub"),
        in_full((r"[.!?…]+[\"'”’)\]]*(?=\s)", "finditer")),
        (r"^who\s+(?:\w+)\s+(\w+.*)$", "match"),
        in_full((r"(\w+\s?)+:", "match")),
        in_full((r":(?=[-+\w]*[a-z_][-+\w]*:)", "sub")),
    ],
)
def test_patterns_that_take_too_long_are_found(pattern: str, method: str) -> None:
    assert slow(Use("an example", re.compile(pattern), method))


def test_every_pattern_is_one_that_is_tried() -> None:
    """A pattern stands in its module, or is a literal where it is used."""
    unseen = {one.file for one in calls() if one.method == "compile" and one.in_function}
    unseen |= {one.file for one in calls() if one.method != "compile" and one.pattern is None}
    assert unseen == set(MADE_WHEN_USED)


def test_schemas_and_queries_leave_patterns_to_engines_without_backtracking() -> None:
    """Pydantic's own engine is linear; Postgres' is not asked to match patterns at all."""
    words = re.compile(r"python-re|regexp_|\bSIMILAR TO\b|op\(\s*[\"']!?~")
    assert [file for file, text in sources().items() if words.search(text)] == []


def test_a_question_of_any_length_is_read_at_once() -> None:
    for asks in ("when is the first ", "what comes after ", "what is after .. ", "who  before "):
        text = (asks * (1 + 1_000_000 // len(asks)))[:1_000_000]
        assert cpu(lambda: order_of(text)) < PAUSE_S  # noqa: B023 - run at once
