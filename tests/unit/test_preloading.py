"""Models loaded beside something else: made once, in order, errors told to who wants them."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any, cast

import pytest

from domain.errors import WeightsMissing
from models.preload import preloading
from models.toolbox import Toolbox


class Slow:
    """A toolbox whose models are made when they are let; it tells what was made where."""

    def __init__(self, missing: bool = False) -> None:
        self.let, self.missing = threading.Event(), missing
        self.made: list[tuple[str, bool]] = []

    @cached_property
    def text(self) -> str:
        return self._make("text")

    @cached_property
    def reranker(self) -> str:
        assert self.let.wait(10)
        return self._make("reranker")

    def _make(self, name: str) -> str:
        self.made.append((name, threading.current_thread() is threading.main_thread()))
        if self.missing:
            raise WeightsMissing(f"{name} is not there")
        return name


def as_toolbox(slow: Slow) -> Toolbox:
    return cast(Toolbox, slow)


def test_models_are_loaded_once_beside_what_is_done() -> None:
    slow = Slow()
    with preloading(as_toolbox(slow), ("text", "reranker")):
        assert slow.text == "text", "waits for no model that comes after it"
        slow.let.set()
        assert slow.reranker == "reranker"
    assert slow.made == [("text", False), ("reranker", False)]


def test_what_is_loading_is_waited_for_at_the_end() -> None:
    slow = Slow()
    slow.let.set()
    with pytest.raises(KeyboardInterrupt), preloading(as_toolbox(slow), ("text", "reranker")):
        raise KeyboardInterrupt
    assert [name for name, _ in slow.made] == ["text", "reranker"]


def test_a_model_that_is_missing_is_told_to_who_wants_it(capsys: Any) -> None:
    slow = Slow(missing=True)
    with (
        preloading(as_toolbox(slow), ("text",)),
        pytest.raises(WeightsMissing, match="text is not there"),
    ):
        _ = slow.text
    assert capsys.readouterr().err == ""
