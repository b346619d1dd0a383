"""German words are stored as they are, and found by German questions with a word in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from domain.asking import Evidence, Mode
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from library.memory import show_video
from memory.captions import CaptionTrack, read_captions
from memory.writers import make_writers
from models.ports import TextEmbedder
from models.profile import Profile
from models.toolbox import Toolbox
from retrieval.result import Retrieval
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries.clips import memory_view
from store.tables.schema import MemoryRow
from tests.support.event_graphs import import_with_events
from tests.support.full_suite import ends
from tests.support.remembered import Said, Tools, watch
from tests.support.tiny_text_encoder import encoder

LINES = ["Hund", "Tor", "Regen", "Tor", "Gewicht", "Hund", "Regen", "Hund"]
"""Lines without a word of the questions."""


def found_by(store: Store, text: TextEmbedder, lines: list[str], question: str) -> Evidence:
    watch(store, "talk", [[Said(line)] for line in lines])
    vectors = dict(zip(lines, text.embed(lines).tolist(), strict=True))
    with store.begin() as session:
        for row in session.scalars(select(MemoryRow)):
            row.embedding = vectors[row.text]
    retrievers = Retrievers(store, Tools(text), Settings())
    view = MemoryView(scopes=(Scope(video="talk", last_clip=len(lines) - 1),))
    return retrievers.search(view, Mode.VIDEO, question).evidence[0]


def test_a_multilingual_encoder_finds_what_rules_miss(store: Store, tmp_path: Path) -> None:
    """English rules take "Last time", a load at a time, for words of order, and drop them."""
    folder = encoder(tmp_path / "tiny")
    profile = Profile(name="own", text=str(folder), text_languages=("de", "en"))
    text = Toolbox(profile, folder).text
    question = "Wer hat die Last time ?"
    assert found_by(store, text, LINES, question).text == "Gewicht"


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
