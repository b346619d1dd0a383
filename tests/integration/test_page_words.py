"""The library page over a small library without any model: all that is known, in safe words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from domain.media import ClipState, Percept, Video
from memory.watch import remember, weave_due
from models.toolbox import Toolbox
from store.database import Store
from store.queries.clips import mark_clip
from store.queries.videos import FAILED, add_video, set_video_state
from tests.support.asking import PARTY, WordToolbox, remember_party
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    clip,
    face,
    local_writers,
    percept,
    said,
    text_at,
    voice,
)
from ui import desk
from ui.desk import page_desk
from ui.files import shared_store

TOOLS: Any = Tools()
TITLE = "**my** <b>talk</b> :red[1] $x$"


@pytest.fixture
def shelf(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """The store that the pages open, without models."""
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    monkeypatch.setattr(desk, "Toolbox", lambda _profile, _weights: WordToolbox())
    for cached in (shared_store.cache_clear, page_desk.clear):
        cached()
    yield store
    shared_store().close()
    for cached in (shared_store.cache_clear, page_desk.clear):
        cached()


def script() -> None:
    from ui.library import library_page

    library_page()


def page() -> AppTest:
    shown = AppTest.from_function(script, default_timeout=120).run()
    assert not shown.exception
    return shown


def words(shown: AppTest) -> str:
    """All that stands on the page, as it would be read."""
    parts = [*shown.markdown, *shown.caption, *shown.warning, *shown.info, *shown.error]
    labels = [one.label for one in shown.expander]
    return "\n".join([*(str(part.value) for part in parts), *labels]).replace("\\", "")


def scene(n: int) -> Percept:
    start = 30 * n
    plate = (text_at(start + 5, "Grace Hopper"), text_at(start + 5, "Professor", row=1))
    return percept(
        n,
        faces=(face(0, 1, (start, start + 25)),),
        voices=(voice(0, 1, (start, start + 6)),),
        utterances=(said(start, f"Look at <script>{n}</script> and **this**.", voice=0),),
        screen_texts=plate,
    )


@pytest.fixture
def talk(shelf: Store) -> Store:
    """A talk of three clips, the last of which failed."""
    video = Video(id=VIDEO, title=TITLE, path=None, duration_ms=90_000)
    with shelf.begin() as session:
        add_video(session, video, [clip(n) for n in range(3)], {})
    for n in range(2):
        one = Perceived(scene(n))
        assert remember(shelf, VIDEO, one, local_writers(), TOOLS, SETTINGS) == ClipState.DONE
    with shelf.begin() as session:
        mark_clip(session, VIDEO, 2, ClipState.FAILED, "the model said <nothing>")
        set_video_state(session, VIDEO, FAILED, "1 clips could not be watched")
    weave_due(shelf, VIDEO, local_writers(), TOOLS, SETTINGS, final=True)
    return shelf


def test_a_video_is_listed_with_how_far_it_is(talk: Store) -> None:
    (table,) = page().dataframe
    row = table.value.iloc[0].to_dict()
    assert row == {
        "title": TITLE,
        "length": "01:30",
        "clips": "2/3",
        "state": "failed",
        "profile": "local",
        "id": VIDEO,
    }


def test_people_events_and_clips_are_shown_in_words_that_mean_nothing_to_markdown(
    talk: Store,
) -> None:
    shown = page()
    told = words(shown)
    assert "Grace Hopper (read)" in told
    assert "Look at <script>0</script> and **this**." in told
    raw = "\n".join(str(one.value) for one in shown.markdown)
    assert "<script>" not in raw
    assert "**this**" not in raw
    assert not any(one.allow_html for one in shown.markdown)


def test_what_went_wrong_is_said_where_it_went_wrong(talk: Store) -> None:
    shown = page()
    told = [str(one.value).replace("\\", "") for one in shown.warning]
    assert told == ["1 clips could not be watched", "the model said <nothing>"]
    assert [one.label.split(" ", 1)[1] for one in shown.expander][-3:] == ["done", "done", "failed"]


def test_a_video_that_nothing_is_known_of_yet_says_so(shelf: Store) -> None:
    with shelf.begin() as session:
        add_video(session, Video(id=VIDEO, title="t", path=None, duration_ms=1), [clip(0)], {})
    told = words(page())
    assert "Nobody was recognised." in told
    assert "No events yet." in told
    assert "00:00-00:30 pending" in told


def test_the_video_that_is_chosen_is_shown_and_edges_lead_to_names(talk: Store) -> None:
    remember_party(talk)
    shown = page()
    assert set(shown.selectbox[0].options) == {TITLE, PARTY}
    shown.selectbox[0].select(PARTY).run()
    told = words(shown)
    assert "before **rain and retreat**" in told
    assert "causes **music in the kitchen**" in told
    assert "Bob plays a slow song on the piano" in told
    assert "<script>" not in told


def test_a_video_with_a_file_is_shown_also_where_no_browser_says_its_address(
    shelf: Store,
) -> None:
    video = Video(id=VIDEO, title="t", path="/videos/t.mp4", duration_ms=1)
    with shelf.begin() as session:
        add_video(session, video, [clip(0)], {})
    assert "00:00-00:30 pending" in words(page())


def test_the_pages_share_one_desk_and_load_no_model(shelf: Store) -> None:
    first = page_desk()
    assert page_desk() is first
    assert first.profile == "local"
    assert isinstance(WordToolbox(), Toolbox)
