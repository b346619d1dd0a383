"""Rows know their text encoder: each is compared with a query by its own, or found by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import select, update

from domain.asking import Mode
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from models.ports import TextEmbedder
from retrieval import video_selection as selection
from retrieval.relevance import cosine_scale
from retrieval.result import Retrieval
from retrieval.retrievers import Retrievers
from store.database import Store
from store.queries import encoders as stored_encoders
from store.queries import search as view_sizes
from store.queries import video_selection as stored_selection
from store.tables.schema import MemoryRow, SegmentRevisionRow, VideoRow
from tests.support.remembered import Event, Said, add_event_graph, watch
from tests.support.remembered import Tools as SearchTools

V = "0123456789abcdef"
MEANINGS = {"hound": "dog", "portal": "gate", "drizzle": "rain"}


class OtherEmbedder:
    """Embeds words by meaning, in a space of its own; unrelated texts have a high cosine."""

    languages: tuple[str, ...] = ("en",)

    def __init__(self, name: str = "other", size: int = 64, shared: float = 3.0) -> None:
        self.name, self.dimensions, self._shared = name, size, shared

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.stack([self._row(text) for text in texts])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    def _row(self, text: str) -> NDArray[np.float64]:
        words = [MEANINGS.get(word, word) for word in text.lower().strip("?.").split()]
        seeds = [crc32(f"{self.name} {word}".encode()) for word in words]
        directions = [np.random.default_rng(seed).normal(size=self.dimensions) for seed in seeds]
        total = np.sum(directions, axis=0)
        common = np.random.default_rng(5).normal(size=self.dimensions)
        return np.asarray(total / np.linalg.norm(total) + self._shared * common / 8)


@dataclass
class Tools(SearchTools):
    others: tuple[TextEmbedder, ...] = ()

    def encoder(self, name: str) -> TextEmbedder | None:
        return next((one for one in self.others if one.name == name), None)


LINES = ["the dog barks", "a gate creaks", "rain falls", "the bell rings"]
OTHERS = [f"somebody {verb} {thing}" for verb in ("sees", "takes") for thing in "abcdefghijkl"]


def reembed(store: Store, texts: Sequence[str], embedder: TextEmbedder) -> None:
    """Give some lines vectors of another encoder, as ``homer reembed`` leaves them half-way."""
    with store.begin() as session:
        for row in session.scalars(select(MemoryRow).where(MemoryRow.text.in_(texts))):
            row.embedding, row.encoder = embedder.embed([row.text])[0].tolist(), embedder.name
        session.execute(update(VideoRow).values(models={"text": "words"}, encoders=[embedder.name]))


def search(store: Store, tools: Tools, query: str, mode: Mode = Mode.VIDEO) -> Retrieval:
    view = MemoryView(scopes=(Scope(video=V, last_clip=len(LINES) + len(OTHERS) - 1),))
    return Retrievers(store, tools, Settings()).search(view, mode, query)


@pytest.fixture(params=[0, stored_encoders.MANY], ids=["many", "few"])
def library(store: Store, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A view of many videos, for which the whole library is looked at first, and one of few."""
    monkeypatch.setattr(stored_encoders, "MANY", request.param)
    watch(store, V, [[Said(line)] for line in [*LINES, *OTHERS]])
    return store


@pytest.mark.parametrize("size", [64, 48])
def test_each_line_is_compared_by_its_own_encoder(library: Store, size: int) -> None:
    other = OtherEmbedder(size=size)
    reembed(library, LINES[1:3], other)
    tools = Tools(others=(other,))
    by_meaning = search(library, tools, "portal")
    assert "gate" in by_meaning.evidence[0].text
    assert "rain" in search(library, tools, "drizzle").evidence[0].text
    assert "dog" in search(library, tools, "dog barks").evidence[0].text
    assert by_meaning.unloaded == ()
    assert "words only" not in by_meaning.searched


def test_lines_of_two_encoders_are_on_one_scale(library: Store) -> None:
    """The other encoder gives unrelated texts a cosine of 0.8, which would outrank all lines."""
    other = OtherEmbedder()
    assert cosine_scale(other).unrelated > 0.8
    reembed(library, OTHERS[::2], other)
    found = search(library, Tools(others=(other,)), "dog barks").evidence
    assert "dog" in found[0].text
    assert all(one.score < found[0].score for one in found[1:])
    far = search(library, Tools(others=(other,)), "unheard zebra")
    assert far.nothing_close


def test_videos_of_two_encoders_are_chosen_on_one_scale(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other encoder's lines are all nearer, by its own cosines, than the one that fits."""
    monkeypatch.setattr(selection, "MOST_VIDEOS", 2)
    monkeypatch.setattr(selection, "MOST_CLIPS", 2)
    monkeypatch.setattr(view_sizes, "WIDE", 2)
    monkeypatch.setattr(stored_selection, "FREQUENT", 0)
    texts, other = ["a small dog barks at us", *OTHERS[:6]], OtherEmbedder()
    for number, text in enumerate(texts):
        watch(store, f"{number:016x}", [[Said(text)]])
    reembed(store, OTHERS[:6], other)
    scopes = tuple(Scope(video=f"{n:016x}", last_clip=0) for n in range(len(texts)))
    retrievers = Retrievers(store, Tools(others=(other,)), Settings())
    found = retrievers.search(MemoryView(scopes=scopes), Mode.VIDEO, "dog barks")
    assert "likeliest 2" in found.searched
    assert "dog" in found.evidence[0].text


def test_lines_of_an_encoder_that_is_not_there_are_found_by_words(library: Store) -> None:
    reembed(library, LINES[1:3], OtherEmbedder(size=48))
    found = search(library, Tools(), "gate creaks")
    assert "gate" in found.evidence[0].text
    assert found.unloaded == ("other",)
    assert "vectors of other were found by their words only" in found.searched


def test_a_library_of_one_other_encoder_is_searched_with_it(library: Store) -> None:
    other = OtherEmbedder(size=48)
    reembed(library, [*LINES, *OTHERS], other)
    with library.begin() as session:
        session.execute(update(VideoRow).values(models={"text": "other"}, encoders=None))
    found = search(library, Tools(others=(other,)), "hound")
    assert "dog" in found.evidence[0].text
    assert found.unloaded == ()


def test_segments_are_compared_by_their_own_encoder(library: Store) -> None:
    other = OtherEmbedder(size=48)
    labels = ("A dog", "The gate", "Weather")
    events = [Event(n, label, label, (n,), since=n) for n, label in enumerate(labels)]
    add_event_graph(library, V, events)
    reembed(library, LINES[1:2], other)
    with library.begin() as session:
        row = session.scalars(
            select(SegmentRevisionRow).where(SegmentRevisionRow.label == "The gate")
        ).one()
        row.embedding, row.encoder = other.embed(["gate"])[0].tolist(), "other"
    found = search(library, Tools(others=(other,)), "portal", Mode.EVENT)
    assert found.focus is not None
    assert found.focus.label == "The gate"
    assert search(library, Tools(), "gate", Mode.EVENT).unloaded == ("other",)
