"""Where all objects stay, none are looked through; afterwards they are again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from domain.garbage import garbage_collection_paused


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    was = gc.isenabled()
    gc.enable()
    yield
    if not was:
        gc.disable()


def test_garbage_is_looked_for_again_when_the_last_one_leaves() -> None:
    first, second = garbage_collection_paused(), garbage_collection_paused()
    first.__enter__()
    second.__enter__()
    assert not gc.isenabled()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_an_error_leaves_too() -> None:
    with pytest.raises(ValueError, match="broken"), garbage_collection_paused():
        raise ValueError("broken")
    assert gc.isenabled()


def test_what_was_off_stays_off() -> None:
    gc.disable()
    with garbage_collection_paused():
        pass
    assert not gc.isenabled()
