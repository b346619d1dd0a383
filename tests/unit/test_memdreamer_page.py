"""What MemDreamer's loop shows of a search keeps to its room."""

from __future__ import annotations

import re

import pytest

from domain.asking import Evidence
from domain.time import TimeSpan
from domain.trajectory import EvidenceRetrieved
from strategies.memdreamer.steps import found_block

ROOM = 4_000
SLACK = 200
"""Bytes of the marks, of the line of the search and of the count of what is left out."""


def found(count: int, said: str, refs: str = "PERFORMS n7") -> EvidenceRetrieved:
    """A search that found so many pieces; each tenth is near to the question."""
    pieces = tuple(
        Evidence(
            ref=f"n{number}",
            video="abcdefabcdefabcd",
            span=TimeSpan.of(number * 1_000, number * 1_000 + 500),
            text=f"event: {said}\n{refs}",
            score=0.9 if number % 10 == 0 else 0.1,
        )
        for number in range(1, count + 1)
    )
    arguments = {"macro_id": "n1"}
    return EvidenceRetrieved(mode="get_subgraph", query="x", arguments=arguments, evidence=pieces)


def shown(block: str) -> list[int]:
    return [int(number) for number in re.findall(r"^\[n(\d+)\]", block, re.M)]


@pytest.mark.parametrize("said", ["short", "a long text " * 200, "Жанна поёт песню " * 50])
@pytest.mark.parametrize("count", [1, 20, 500])
def test_a_search_keeps_to_its_room(said: str, count: int) -> None:
    block = found_block(found(count, said), ROOM)
    assert len(block.encode()) <= ROOM + SLACK
    assert shown(block)


def test_what_fits_is_shown_whole() -> None:
    block = found_block(found(3, "Ann opens the gate"), ROOM)
    assert block.count("Ann opens the gate") == 3
    assert block.count("PERFORMS n7") == 3
    assert "not shown" not in block


def test_what_is_nearest_to_the_question_is_kept_in_its_order() -> None:
    block = found_block(found(300, "somebody does something with a thing"), ROOM)
    numbers = shown(block)
    assert numbers == sorted(numbers)
    assert {1, *range(10, 301, 10)} <= set(numbers)
    left = 300 - len(numbers)
    assert f"({left} more are not shown: ask for less at a time)" in block
