"""Searching a library of ten thousand videos: the page Search, and one search of a question.

    python -m benchmarks many_videos

Videos of twelve clips have a million memories together, with vectors as real ones lie (see
``benchmarks.grown``), and the search index is built. The page's search takes words, with and
without filters. A question reads its view once, and then searches in the mode VIDEO over all
videos, of which the likeliest are chosen. Each search has a bar for its 95th percentile. The
reference is the ten nearest of all vectors by numpy. A question's search also has to find a line
that says what is asked.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from benchmarks.grown import (
    Vectors,
    World,
    grow,
    scratch_store,
    short_videos,
    unit,
    vectors_of,
    world,
)
from benchmarks.lines import Line, Taken, costs, milliseconds
from benchmarks.search import NUMPY, nearest
from benchmarks.search_process import Known, Tools
from domain.asking import Mode, Question
from domain.memories import MemoryView
from domain.moments import Retrieval
from domain.settings import Settings
from library.library_search import LibraryQuery, search_library
from library.transcript import SEEN
from models.profile import load_profile
from models.toolbox import Toolbox
from retrieval.retrievers import Retrievers
from store import vector_index
from store.database import Store
from store.home import Home
from store.queries.clips import memory_view
from store.queries.videos import video_titles
from store.vector_index import VectorIndex, build_index
from tests.support.library import Quiet
from tests.support.runs import ask

VIDEOS, CLIPS = 10_000, 12
PAGE_MS, SEARCH_MS = 1_000.0, 200.0
ANSWERED = 5
"""Questions that are answered from beginning to end."""
FOUND = 0.95
"""Share of sentences of which a search finds a line, at least."""
QUERIES, ROUNDS = 20, 3


def lines(videos: int = VIDEOS, clips: int = CLIPS) -> Iterator[Line]:
    """Measure both searches over one library."""
    model = Known.by(Toolbox(load_profile("local"), Home.default().weights).text)
    made = world(model)
    with scratch_store() as store:
        films = grow(store, made, short_videos(videos, clips))
        build_index(store, Quiet(), [VectorIndex(vector_index.MEMORIES, model.dimensions)])
        exact = np.concatenate([vectors_of(made, film) for film in films])
        yield from measured(store, Tools(model), made, exact)


def measured(store: Store, tools: Tools, made: World, exact: Vectors) -> Iterator[Line]:
    """Measure the searches over a library whose vectors are ``exact`` (N, D)."""
    queries = [made.said[n] for n in np.linspace(0, len(made.said) - 1, QUERIES).astype(int)]
    page = partial(search_library, store, tools.text)
    some = _word(queries[0])
    view = _view(store)
    retrievers = Retrievers(store, tools, Settings())

    def search(words: str) -> Retrieval:
        return retrievers.search(view, Mode.VIDEO, f"Who {words}?")

    ways: dict[str, tuple[float | None, Callable[[str], object]]] = {
        "page Search": (PAGE_MS, lambda words: page(LibraryQuery(words=words))),
        "page Search, one word": (
            PAGE_MS,
            lambda words: page(LibraryQuery(words=_word(words))),
        ),
        "page Search, a kind": (PAGE_MS, lambda _: page(LibraryQuery(words=some, groups=(SEEN,)))),
        "view of a question": (None, lambda _: _view(store)),
        "one search of a question": (SEARCH_MS, search),
    }
    # What the benchmark itself holds is no garbage to look for in the middle of a search.
    gc.collect()
    gc.freeze()
    for what, (bar, way) in ways.items():
        yield _line(what, bar, way, queries, tools, exact)
    yield _answered(store, [f"Who {words}?" for words in queries[:ANSWERED]], view.videos)
    found = Taken((float(np.mean([_finds(search(words), words) for words in queries])),), "of 1")
    yield Line("sentences found", found, Taken((1.0,), "of 1"), "all", found.median, FOUND)


def _answered(store: Store, questions: Sequence[str], videos: tuple[str, ...]) -> Line:
    """Time whole questions with the profile `local`, after one that loads the models."""
    toolbox = Toolbox(load_profile("local"), Home.default().weights)

    def answer(text: str) -> None:
        ask(store, toolbox, Question(text=text, videos=videos))

    answer(questions[0])
    taken = Taken(tuple(milliseconds(partial(answer, text)) for text in questions))
    return costs("a question, answered", taken, Taken((1_000.0,)), "a second")


def _view(store: Store) -> MemoryView:
    with store.begin() as session:
        return memory_view(session, list(video_titles(session)))


def _finds(found: Retrieval, words: str) -> bool:
    return any(words in one.text for one in found.evidence)


def _word(sentence: str) -> str:
    return sentence.split()[2]


def _line(
    what: str,
    bar: float | None,
    way: Callable[[str], object],
    queries: Sequence[str],
    tools: Tools,
    exact: Vectors,
) -> Line:
    vectors = unit(tools.text.embed(queries))
    ours, numpy = list[float](), list[float]()
    for query, vector in zip(queries, vectors, strict=True):
        way(query)
        for _ in range(ROUNDS):
            ours.append(milliseconds(partial(way, query)))
            numpy.append(milliseconds(partial(nearest, exact, vector)))
    tail, reference = (Taken((float(np.quantile(taken, 0.95)),)) for taken in (ours, numpy))
    if bar is None:
        ratio = tail.median / reference.median
        return Line(f"{what} (p95)", tail, reference, NUMPY, ratio, size=len(exact))
    name, ratio = f"{what} (p95, bar {bar:.0f} ms)", tail.median / bar
    return Line(name, tail, reference, NUMPY, ratio, 1.0, more=False, size=len(exact))
