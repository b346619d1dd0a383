"""Searching libraries of three sizes and more, beside exact search over one array in memory.

    python -m benchmarks search [--sizes 1000,10000,100000]

The first search of all is taken, which works indexes out and keeps them, the first of the next
processes, and questions that are new to one of them. Then each mode is asked twenty questions, over
all videos, one video, half of the time, and about one person. A question's vector is known before
on both sides: embedding it is the model's time. Ours is the 95th percentile of a whole search,
evidence and all; the reference finds the ten nearest vectors by numpy. The ten that our cosines put
first must be those of the reference, which has the vectors unrounded.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import text

from benchmarks.grown import Vectors, World, grow, unit, vectors_of, world
from benchmarks.lines import Line, Taken, costs, milliseconds
from domain.asking import Mode
from domain.memories import MemoryView, Scope
from domain.settings import Settings
from models import large_pages
from models.ports import TextEmbedder
from models.profile import load_profile
from models.toolbox import Toolbox
from retrieval.ranking import PreparedQuestion as Question
from retrieval.retrievers import Retrievers
from retrieval.video_index import Ints
from store.database import Store, open_store
from store.driver import driver_of
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.clips import memory_view
from tests.support.big_library import LINES, Film

SIZES = (1_000, 10_000, 100_000)
MODES = (Mode.EVENT, Mode.VIDEO, Mode.NEIGHBOR, Mode.KEYFRAME)
QUESTIONS, ROUNDS, NEAREST = 20, 5, 10
RECALL = 0.99


def most_ms(memories: int) -> float:
    """The 95th percentile at most."""
    return 10.0 if memories <= 100_000 else 30.0


class Known:
    """Texts embedded once, then at no cost."""

    def __init__(self, model: TextEmbedder) -> None:
        self._model = model
        self._known: dict[str, Any] = {}
        self.name, self.dimensions, self.languages = model.name, model.dimensions, model.languages

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (N, D)."""
        for one in texts:
            if one not in self._known:
                self._known[one] = self._model.embed([one])[0]
        return np.stack([self._known[one] for one in texts])


@dataclass
class Tools:
    """What a search needs, without models that would be timed too."""

    text: Known
    reranker: None = None
    images: None = None


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions over a part of a library; ``exact`` has the unrounded vectors of that part."""

    what: str
    view: MemoryView
    questions: Sequence[str]
    exact: Vectors


@dataclass(frozen=True, eq=False)
class Bench:
    """A library that is searched."""

    store: Store
    tools: Tools
    world: World
    films: Sequence[Film]
    memories: int

    def searching(self) -> Retrievers:
        """Searches that have read nothing yet."""
        return Retrievers(self.store, self.tools, Settings())


def lines(sizes: Sequence[int] = SIZES) -> Iterator[Line]:
    """The first searches of each size of a library; then each mode and part, and recall."""
    model = Known(Toolbox(load_profile("local"), Home.default().weights).text)
    made = world(model)
    for size in sizes:
        with _library(Tools(model), made, size) as bench:
            yield from measured(bench)


@contextmanager
def _library(tools: Tools, made: World, memories: int) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store:
                films = grow(store, made, memories)
                yield Bench(store, tools, made, films, memories)
        finally:
            EmbeddedPostgres(home).stop()


def measured(bench: Bench) -> Iterator[Line]:
    """The lines of one library."""
    asked = parts(bench)
    yield on_disk(bench)
    yield first(bench, asked[0], "the first search of a library, which is kept")
    yield kept_on_disk(bench)
    yield first(bench, asked[0], "the first search of a process", ROUNDS)
    searching = bench.searching()
    yield new_questions(bench, asked[0], searching)
    settle(searching, asked[0])
    for part in asked:
        for mode in MODES:
            yield searched(bench, searching, part, mode)
        yield recalled(bench, searching, part)
        yield looked_into(bench, searching, part)
        yield processor(bench, searching, part)
        yield beside_faiss(bench, searching, part)
    yield as_of(bench, searching, asked[0])


def parts(bench: Bench) -> list[Asked]:
    """All videos, the last one, the first half of each, and all of them about one person."""
    films, last = bench.films, bench.films[-1]
    every = [vectors_of(bench.world, film) for film in films]
    with bench.store.begin() as session:
        whole = memory_view(session, [film.id for film in films])
    chosen = np.linspace(0, len(bench.world.said) - 1, QUESTIONS).astype(int)
    plain = [f"Who {bench.world.said[n]}?" for n in chosen]
    about = [
        f"When did Guest 1 of {last.title} meet whoever {bench.world.said[n]}?" for n in chosen
    ]
    half = MemoryView(scopes=tuple(halved(scope) for scope in whole.scopes))
    seen = zip(every, films, half.scopes, strict=True)
    early = [_first(vectors, film, scope) for vectors, film, scope in seen]
    one = MemoryView(scopes=whole.scopes[-1:])
    return [
        Asked("all videos", whole, plain, np.concatenate(every)),
        Asked("one video", one, plain, every[-1]),
        Asked("half of the time", half, plain, np.concatenate(early)),
        Asked("one person", one, about, every[-1]),
    ]


def halved(scope: Scope) -> Scope:
    """The first half of a video."""
    return Scope(video=scope.video, last_clip=scope.last_clip // 2)


def _first(vectors: Vectors, film: Film, scope: Scope) -> Vectors:
    return vectors[: len(vectors) // film.clips * (scope.last_clip + 1)]


def searched(bench: Bench, searching: Retrievers, part: Asked, mode: Mode) -> Line:
    """One mode over one part: the 95th percentile over the bar, beside exact search."""
    focus, query = _start(searching, part)
    run = partial(searching.search, part.view, mode, focus=focus)
    words = [query] * QUESTIONS if mode is Mode.NEIGHBOR else part.questions
    ours, exact = _in_turn([partial(run, asked) for asked in words], bench, part)
    return _barred(f"{mode} over {part.what}", ours, exact, bench.memories)


def _barred(what: str, ours: Taken, exact: Taken, memories: int) -> Line:
    bar = most_ms(memories)
    name = f"{what} (p95, bar {bar:.0f} ms)"
    return Line(name, ours, exact, "numpy, ten nearest", ours.median / bar, 1.0, False, memories)


def _start(searching: Retrievers, part: Asked) -> tuple[int | None, str]:
    """An event to go on from, and the label of one beside it."""
    found = searching.search(part.view, Mode.EVENT, part.questions[0])
    focus = None if found.focus is None else found.focus.id
    return focus, found.neighbours[0].label if found.neighbours else ""


def _in_turn(
    ours: Sequence[Callable[[], object]], bench: Bench, part: Asked
) -> tuple[Taken, Taken]:
    """A 95th percentile a round of each way, a question of one after one of the other."""
    vectors = unit(bench.tools.text.embed(part.questions))
    taken: list[list[float]] = [[], []]
    for work, vector in zip(ours, vectors, strict=True):
        work()
        for _ in range(ROUNDS):
            taken[0].append(milliseconds(work))
            taken[1].append(milliseconds(partial(nearest, part.exact, vector)))
    return _tail(taken[0]), _tail(taken[1])


def _tail(times: Sequence[float]) -> Taken:
    """The 95th percentile of each round."""
    rounds = np.asarray(times).reshape(-1, ROUNDS)
    return Taken(tuple(float(one) for one in np.percentile(rounds, 95, axis=0)))


def nearest(rows: Vectors, query: Vectors) -> Ints:
    """The numbers of the ten nearest rows (N, D) to a query (D,), exactly; not in order."""
    return np.argpartition(-np.vecdot(rows, query), min(NEAREST, len(rows) - 1))[:NEAREST]


def recalled(bench: Bench, searching: Retrievers, part: Asked) -> Line:
    """How many of the ten exactly nearest our cosines put among their first ten."""
    shares = []
    for asked in part.questions:
        sought = searching.sought(part.view, asked)
        assert sought.field is not None
        sought.field.sharpen_best()
        assert len(sought.field.lines[0]) == len(part.exact)
        ours = np.argsort(-sought.field.lines[0], kind="stable")[:NEAREST]
        exact = nearest(part.exact, sought.vectors.question)
        shares.append(len(set(ours.tolist()) & set(exact.tolist())) / len(exact))
    mean, whole = (Taken((one,), "of 1") for one in (float(np.mean(shares)), 1.0))
    name = f"recall of the ten nearest over {part.what}"
    return Line(name, mean, whole, "exact", mean.median, RECALL, True, bench.memories)


def looked_into(bench: Bench, searching: Retrievers, part: Asked) -> Line:
    """Of how many lines the scores were exact, beside all: a first pass tells which."""
    counts = []
    for asked in part.questions:
        found = searching.sought(part.view, asked)
        assert found.field is not None
        found.field.sharpen_best()
        cells = np.flatnonzero(found.field.exact(np.arange(found.panorama.cell_count)))
        counts.append(float(len(found.panorama.all_lines_of(cells)[0])))
    ours, every = Taken(tuple(counts), "lines"), Taken((float(len(part.exact)),), "lines")
    return costs(f"lines scored exactly over {part.what}", ours, every, "all", size=bench.memories)


def processor(bench: Bench, searching: Retrievers, part: Asked) -> Line:
    """EVENT by processor time of this process alone, whatever else the machine does."""
    vectors = unit(bench.tools.text.embed(part.questions))
    ours, exact = [], []
    for asked, vector in zip(part.questions, vectors, strict=True):
        searching.search(part.view, Mode.EVENT, asked)
        for _ in range(ROUNDS):
            ours.append(_worked(partial(searching.search, part.view, Mode.EVENT, asked)))
            exact.append(_worked(partial(nearest, part.exact, vector)))
    name = f"EVENT over {part.what} (processor time, p95)"
    return costs(name, _tail(ours), _tail(exact), "numpy, ten nearest", size=bench.memories)


def _worked(work: Callable[[], object]) -> float:
    """Milliseconds of processor time that one call takes, in all threads."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1000


def beside_faiss(bench: Bench, searching: Retrievers, part: Asked) -> Line:
    """EVENT beside faiss, which finds the ten nearest exactly in one thread."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(part.exact.shape[1])
    index.add(part.exact)
    vectors = unit(bench.tools.text.embed(part.questions))
    times: list[list[float]] = [[], []]
    for asked, vector in zip(part.questions, vectors, strict=True):
        for _ in range(ROUNDS):
            search = partial(searching.search, part.view, Mode.EVENT, asked)
            times[0].append(milliseconds(search))
            times[1].append(milliseconds(partial(index.search, vector[None], NEAREST)))
    ours, other = map(_tail, times)
    name = f"EVENT over {part.what} (p95)"
    return costs(name, ours, other, "faiss, ten nearest", size=bench.memories)


def on_disk(bench: Bench) -> Line:
    """The table of memories with its indexes, beside the vectors alone in 32 bits."""
    with bench.store.begin() as session:
        held = session.scalar(text("SELECT pg_total_relation_size('memories')")) or 0
    count = sum(film.clips for film in bench.films) * LINES
    ours, bare = (
        Taken((size / 1e6,), "MB") for size in (held, 4 * count * bench.tools.text.dimensions)
    )
    return costs("memories on disk, indexes and all", ours, bare, "vectors alone", size=count)


def kept_on_disk(bench: Bench) -> Line:
    """What is kept of all videos for the next process, beside the memories it is made of."""
    with bench.store.begin() as session:
        sizes = [
            session.scalar(text(f"SELECT pg_total_relation_size('{name}')")) or 0
            for name in ("search_indexes", "memories")
        ]
    ours, memories = (Taken((size / 1e6,), "MB") for size in sizes)
    return costs("indexes kept on disk", ours, memories, "memories", size=bench.memories)


def first(bench: Bench, part: Asked, name: str, rounds: int = 1) -> Line:
    """The first search of a process, beside reading all vectors; processes one after the other."""
    ours, plain = [], []
    for _ in range(rounds):
        search = partial(bench.searching().search, part.view, Mode.EVENT, part.questions[0])
        ours.append(milliseconds(search))
        # The next process is not to pay for what this one does beside.
        large_pages.OF_PROCESS.wait()
        plain.append(milliseconds(partial(_vectors_alone, bench)))
    every = Taken(tuple(plain))
    return costs(name, Taken(tuple(ours)), every, "reading the vectors", size=bench.memories)


def new_questions(bench: Bench, part: Asked, searching: Retrievers) -> Line:
    """Questions that are new to a process, one after the other, beside exact search."""
    vectors = unit(bench.tools.text.embed(part.questions))
    for question in map(Question, part.questions):
        bench.tools.text.embed([question.bare, question.somebody])
    searching.search(part.view, Mode.EVENT, part.questions[-1])
    ours = [
        milliseconds(partial(searching.search, part.view, Mode.EVENT, asked))
        for asked in part.questions[:-1]
    ]
    exact = [milliseconds(partial(nearest, part.exact, vector)) for vector in vectors]
    new, plain = (Taken((float(np.percentile(times, 95)),)) for times in (ours, exact))
    return _barred("EVENT of a process that has just begun", new, plain, bench.memories)


def settle(searching: Retrievers, part: Asked) -> None:
    """Have all vectors in memory, as after many questions."""
    for one in searching.sought(part.view, part.questions[0]).panorama.parts:
        assert len(one.index.vectors)
    large_pages.OF_PROCESS.wait()


def _vectors_alone(bench: Bench) -> None:
    with bench.store.begin() as session, driver_of(session.connection()).cursor() as cursor:
        cursor.execute("SELECT id, halfvec_send(embedding) FROM memories ORDER BY id")
        cursor.fetchall()


def as_of(bench: Bench, searching: Retrievers, part: Asked) -> Line:
    """The same questions as of the last clip but one, beside the view without: views alternate."""
    earlier = MemoryView(
        scopes=tuple(Scope(video=s.video, last_clip=s.last_clip - 1) for s in part.view.scopes),
        as_of_ms=(part.view.scopes[0].last_clip) * 30_000,
    )
    times: list[list[float]] = [[], []]
    for asked in part.questions:
        for view, taken in zip((earlier, part.view), times, strict=True):
            searching.search(view, Mode.EVENT, asked)
            taken.append(milliseconds(partial(searching.search, view, Mode.EVENT, asked)))
    ours, plain = (Taken(tuple(taken)) for taken in times)
    return costs("EVENT as of a clip", ours, plain, "the same without", 1.3, bench.memories)
