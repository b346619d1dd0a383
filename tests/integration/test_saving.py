"""Which moments the app saves as files, whose content its server holds in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit

from domain.errors import InputError
from domain.media import Video
from domain.time import TimeSpan
from store.database import Store
from ui import saving

VIDEO = Video(id="ab" * 8, title="a day", path=None, duration_ms=3_600_000)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], bytes]]:
    found: list[Callable[[], bytes]] = []
    monkeypatch.setattr(saving, "is_playable", lambda *_: True)
    monkeypatch.setattr(
        streamlit, "download_button", lambda _label, cut, *_, **__: found.append(cut)
    )
    return found


def test_a_chapter_is_no_moment(drawn: list[Callable[[], bytes]], store: Store) -> None:
    saving.save_button(store, VIDEO, TimeSpan.of(0, 60_000), "a")
    assert len(drawn) == 1
    saving.save_button(store, VIDEO, TimeSpan.of(0, 3_600_000), "b")
    assert len(drawn) == 1


def test_a_large_file_is_not_read_into_memory(
    drawn: list[Callable[[], bytes]], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 1_000

    def cut(_store: Store, _video: str, _span: TimeSpan, out: Path) -> None:
        with out.open("wb") as file:
            file.truncate(size)

    monkeypatch.setattr(saving, "cut_moment", cut)
    saving.save_button(store, VIDEO, TimeSpan.of(0, 60_000), "a")
    assert len(drawn[0]()) == 1_000
    size = saving.MOST_BYTES + 1
    with pytest.raises(InputError, match="larger than 1 GB"):
        drawn[0]()
