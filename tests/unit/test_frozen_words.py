"""What is stored, used by other programs or shown to models keeps its words whatever is renamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.frozen.words import SNAPSHOT, everything

AGREED: dict[str, Any] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
HOW = "if that is meant, write the snapshot anew: python -m tests.support.frozen.words"


@pytest.fixture(scope="module")
def words() -> dict[str, Any]:
    return everything()


def test_the_snapshot_has_all_kinds_of_words(words: dict[str, Any]) -> None:
    assert set(words) == set(AGREED)


@pytest.mark.parametrize("kind", sorted(AGREED))
def test_no_word_is_renamed(kind: str, words: dict[str, Any]) -> None:
    assert words[kind] == AGREED[kind], HOW
