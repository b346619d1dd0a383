"""Searching a library of ten thousand videos: the page Search, and one search of a question.

    python -m benchmarks many_videos

Videos of twelve clips have a million memories together, with vectors as real ones lie (see
``benchmarks.grown``), and the search index is built. The page's search takes words, with and
without filters; a question's search is in the mode VIDEO over all videos, its view included. Each
has a bar for its 95th percentile. The reference is the ten nearest of all vectors by numpy.
"""

from __future__ import annotations

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
from benchmarks.lines import Line, Taken, milliseconds
from benchmarks.search import NUMPY, nearest
from benchmarks.search_process import Known, Tools
from domain.asking import Mode
from domain.settings import Settings
from models.profile import load_profile
from models.toolbox import Toolbox
from retrieval.retrievers import Retrievers
from store.database import Store
from store.home import Home
from store.queries import hnsw
from store.queries.clips import memory_view
from store.queries.videos import video_titles
from store.vector_index import VectorIndex, build_index
from tests.support.library import Quiet
from views.library_search import LibraryQuery, search_library
from views.transcript import SEEN

VIDEOS, CLIPS = 10_000, 12
PAGE_MS, SEARCH_MS = 1_000.0, 200.0
QUERIES, ROUNDS = 20, 3


def lines(videos: int = VIDEOS, clips: int = CLIPS) -> Iterator[Line]:
    """Measure both searches over one library."""
    model = Known.by(Toolbox(load_profile("local"), Home.default().weights).text)
    made = world(model)
    with scratch_store() as store:
        films = grow(store, made, short_videos(videos, clips))
        build_index(store, Quiet(), [VectorIndex(hnsw.MEMORIES, model.dimensions)])
        exact = np.concatenate([vectors_of(made, film) for film in films])
        yield from measured(store, Tools(model), made, exact)


def measured(store: Store, tools: Tools, made: World, exact: Vectors) -> Iterator[Line]:
    """Measure the searches over a library whose vectors are ``exact`` (N, D)."""
    queries = [made.said[n] for n in np.linspace(0, len(made.said) - 1, QUERIES).astype(int)]
    page = partial(search_library, store, tools.text)
    some = _word(queries[0])
    ways: dict[str, tuple[float, Callable[[str], object]]] = {
        "page Search": (PAGE_MS, lambda words: page(LibraryQuery(words=words))),
        "page Search, one word": (
            PAGE_MS,
            lambda words: page(LibraryQuery(words=_word(words))),
        ),
        "page Search, a kind": (PAGE_MS, lambda _: page(LibraryQuery(words=some, groups=(SEEN,)))),
        "one search of a question": (SEARCH_MS, partial(_search, store, tools)),
    }
    for what, (bar, way) in ways.items():
        yield _line(f"{what} (p95, bar {bar:.0f} ms)", bar, way, queries, tools, exact)


def _word(sentence: str) -> str:
    return sentence.split()[2]


def _search(store: Store, tools: Tools, words: str) -> object:
    with store.begin() as session:
        view = memory_view(session, list(video_titles(session)))
    return Retrievers(store, tools, Settings()).search(view, Mode.VIDEO, f"Who {words}?")


def _line(
    what: str,
    bar: float,
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
    tails = [Taken((float(np.quantile(taken, 0.95)),)) for taken in (ours, numpy)]
    ratio = tails[0].median / bar
    return Line(what, tails[0], tails[1], NUMPY, ratio, 1.0, more=False, size=len(exact))
