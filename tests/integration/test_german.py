"""German words are stored as they are, and found by German questions with a word in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from PIL import Image
from sqlalchemy import select
from streamlit.testing.v1 import AppTest

from domain.asking import Mode
from domain.memories import MemoryView, Scope
from domain.moments import Retrieval
from domain.settings import Settings
from library.memory import show_video
from library.sharing import share_answer
from memory.captions import CaptionTrack, read_captions
from memory.writers import make_writers
from models.profile import Profile
from models.toolbox import Toolbox
from retrieval.retrievers import Retrievers
from store.blobs import BlobStore
from store.database import Store
from store.queries.clips import memory_view
from store.tables.schema import MemoryRow
from tests.support import marked_library
from tests.support.app_pages import app_over, open_page, open_page_in, output, press, words
from tests.support.asking import PARTY, remember_party
from tests.support.catalogues import po_files, read
from tests.support.event_graphs import import_with_events
from tests.support.full_suite import ends
from tests.support.library_templates import FilledLibraries
from tests.support.obedient_model import LlmToolbox
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import Said, Tools, watch
from tests.support.runs import ask
from tests.support.searching_model import PLAY, searching
from tests.support.tiny_text_encoder import encoder
from ui.navigation import PAGE_NAMES

LINES = ["Hund", "Tor", "Regen", "Tor", "Gewicht", "Hund", "Regen", "Hund"]
"""Lines without a word of the questions."""


def test_a_multilingual_encoder_finds_what_rules_miss(store: Store, tmp_path: Path) -> None:
    """English rules take "Last time", a load at a time, for words of order, and drop them."""
    folder = encoder(tmp_path / "tiny")
    profile = Profile(name="own", text=str(folder), text_languages=("de", "en"))
    text = Toolbox(profile, folder).text
    watch(store, "talk", [[Said(line)] for line in LINES])
    vectors = dict(zip(LINES, text.embed(LINES).tolist(), strict=True))
    with store.begin() as session:
        for row in session.scalars(select(MemoryRow)):
            row.embedding = vectors[row.text]
    retrievers = Retrievers(store, Tools(text), Settings())
    view = MemoryView(scopes=(Scope(video="talk", last_clip=len(LINES) - 1),))
    assert (
        retrievers.search(view, Mode.VIDEO, "Wer hat die Last time ?").evidence[0].text == "Gewicht"
    )


@pytest.fixture
def track(shared_media: Callable[[str], Path]) -> CaptionTrack:
    return read_captions(shared_media("agent327_german.vtt"))


@pytest.fixture
def search(store: Store, toolbox: Toolbox, track: CaptionTrack) -> Callable[[str], Retrieval]:
    profile = toolbox.profile
    import_with_events(store, track, make_writers(toolbox, profile), toolbox, profile.settings)
    retrievers = Retrievers(store, toolbox, profile.settings)
    with store.begin() as session:
        view = memory_view(session, [track.id])
    return lambda query: retrievers.search(view, Mode.VIDEO, query)


def test_every_line_is_stored_to_the_letter(
    store: Store, search: Callable[[str], Retrieval], track: CaptionTrack
) -> None:
    shown = [line.text for clip in show_video(store, track.id).clips for line in clip.lines]
    output = " ".join(" ".join(shown).split())
    for line in track.lines:
        for word in line.text.split():
            assert word in output
    assert any("schöner Ort" in line for line in shown)
    assert any("Unterstützung" in line for line in shown)
    assert search("schöner Ort").evidence


@pytest.mark.parametrize(
    ("question", "word"),
    ends(
        [
            ("Wer ist der Chef?", "Chef"),
            ("Was ist mit dem Haarschnitt?", "Haarschnitt"),
            ("Wo ist die Unterstützung?", "Unterstützung"),
            ("Was wird aus dem Rekruten?", "Rekruten"),
            ("Wer hat die Kunst bewundert?", "Kunst"),
            ("Wer wünscht dem Agenten viel Glück?", "Glück"),
        ]
    ),
)
def test_a_question_finds_the_word_it_has_in_common_and_says_what_it_cannot(
    question: str, word: str, search: Callable[[str], Retrieval]
) -> None:
    found = search(question)
    assert word in found.evidence[0].text
    assert not found.nothing_close
    assert "made for en; in German only equal words" in found.searched


def test_english_finds_no_german_and_claims_none(search: Callable[[str], Retrieval]) -> None:
    assert search("Who wants a haircut?").nothing_close


# Every page in German: nothing that the catalogue has in German is still drawn in English.


ASKED = "ASKED"
"""Stands for the trajectory."""
ADDRESSES: tuple[tuple[str, dict[str, str]], ...] = (
    *(("ask", {}), ("ask", {"trajectory": ASKED}), ("search", {"q": "play"}), ("search", {})),
    *(("library", {}), ("library", {"delete": PARTY})),
    *(("library", {"q": "zebra"}), ("people", {"video": PARTY, "person": "1"})),
    ("people", {"of": "All videos"}),
    *(
        ("video", {"video": video, "show": shown})
        for video in (PARTY, marked_library.VIDEO)
        for shown in ("Events", "Clips", "Memory", "Search", "Live")
    ),
    *(("history", {}), ("trajectory", {"trajectory": ASKED}), ("alerts", {}), ("recaps", {})),
    *(("compare", {"trajectory": ASKED}), ("skills", {}), ("skills", {"example": "1"})),
    *(("evaluations", {}), ("schedules", {}), ("health", {})),
)
WORDS_IN = {
    *("label", "body", "help", "placeholder", "options", "caption", "alt", "text", "content"),
    *("name", "value", "title", "none", "kind", "earlier_label", "later_label", "arcs_name"),
}
"""Fields of Streamlit's messages that have words for people."""


def filled(store: Store) -> str:
    """A party that a question was asked about, beside a video with rows in every table."""
    remember_party(store)
    with OpenAIServer(searching) as server:
        asked = ask(store, LlmToolbox(server), PLAY)
    marked_library.fill(store, marked_library.VIDEO)
    share_answer(store, asked.trajectory_id, 7)
    return asked.trajectory_id


@cache
def picture() -> bytes:
    out = BytesIO()
    Image.new("RGB", (64, 36)).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture
def trajectory(
    store: Store, libraries: FilledLibraries, monkeypatch: pytest.MonkeyPatch, tampered: None
) -> Iterator[str]:
    name = libraries.fill(store, filled)
    # The stored frames of that library are words.
    monkeypatch.setattr(BlobStore, "get", lambda _store, _sha: picture())
    with app_over(store, monkeypatch):
        yield name


def drawn(page: AppTest) -> Iterator[str]:
    for root in page._tree.children.values():
        yield from _drawn(root)


def _drawn(block: Any) -> Iterator[str]:
    proto = getattr(block, "proto", None)
    if proto is not None:
        yield from _texts(MessageToDict(proto, preserving_proto_field_name=True), "")
    for child in getattr(block, "children", {}).values():
        yield from _drawn(child)


def _texts(value: Any, field: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, field)
    elif isinstance(value, str) and field in WORDS_IN and not value.startswith("<style"):
        # Each cell of a table is a line of its own.
        for line in re.sub("<[^>]*>", "\n", value.replace("\\", "")).splitlines():
            yield line.strip("* ")


@cache
def english() -> tuple[re.Pattern[str], ...]:
    """What the catalogue translates, as patterns of whole lines."""
    found = []
    for message in read(po_files()[0]):
        pairs = zip(_forms(message.id), _forms(message.string), strict=True)
        for source, translation in pairs if message.id else ():
            text = source.replace("`", "").strip("* ")
            # Values alone, single letters and words that are the same in German say nothing.
            fixed = re.sub(r"{\w+}", "", source)
            if source != translation and len(re.findall(r"[A-Za-z]{2,}", fixed)) > 1:
                found.append(re.compile(re.sub(r"\\{\w+\\}", ".*", re.escape(text))))
    return tuple(found)


def _forms(text: Any) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def test_pages_have_no_english_words_in_german(trajectory: str) -> None:
    left = set()
    for name, query in ADDRESSES:  # One library for all: it takes longer to fill than to draw.
        asked = {key: trajectory if value == ASKED else value for key, value in query.items()}
        lines = set(drawn(open_page_in("de", name, **asked)))
        assert len(lines) > 15, name
        left |= {(name, line) for line in lines for one in english() if one.fullmatch(line)}
    assert left == set()


def test_every_page_is_drawn() -> None:
    assert {name for name, _ in ADDRESSES} == set(PAGE_NAMES)


def test_the_pages_are_english_unless_another_language_is_chosen(trajectory: str) -> None:
    page = open_page("history")
    assert "Search the questions" in set(drawn(page))
    (choice,) = [one for one in page.selectbox if one.label == "Language"]
    assert choice.options == ["English", "Deutsch"]
    choice.select("de").run()
    assert "Fragen durchsuchen" in set(drawn(page))
    assert "Beantwortet, " in words(page)


def test_the_address_has_no_german_words(trajectory: str, in_german: None) -> None:
    page = open_page_in("de", "video", video=PARTY)
    (shown,) = [one for one in page.radio if one.label == "Anzeigen"]
    assert shown.options == ["Ereignisse", "Clips", "Gedächtnis", "Suchen"]
    shown.set_value("Memory").run()
    assert output(page, "show") == "Memory"
    assert "Allen Strategien gemeinsam" in words(page)


def test_what_a_press_stores_stays_english(trajectory: str, in_german: None) -> None:
    page = open_page_in("de", "trajectory", trajectory=trajectory)
    press(page, "Richtig")
    assert "Als **richtig** bewertet." in words(page)
    page = open_page("history", trajectory=trajectory)
    assert "richtig" not in words(page)
