"""Searching libraries of three sizes and more, beside exact search over one array in memory.

    python -m benchmarks search [--sizes 1000,10000,100000,1000000]

Twenty questions are asked in each mode, over all videos, one video, half of the time (as of its
end) and about one person. A question's vector is known before on both sides: embedding it is the
model's time. Ours is the 95th percentile of a whole search, evidence and all; the references find
the ten nearest vectors by numpy, and by faiss. The search index is built where a view may be wide
enough for it (``store.queries.search.WIDE``), and recall is that of the ten nearest lines and
clips by whatever way a search takes, beside exact ones. Processes of their own tell what the first
search takes, how much memory a process that asks has, and what searching takes while another one
writes clips.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.orm import Session

from agent.reasoners.local import MOMENTS
from benchmarks.grown import Vectors, World, days, grow, scratch_store, unit, vectors_of, world
from benchmarks.lines import Line, Taken, costs, milliseconds
from benchmarks.search_process import WATCHED, Asked, Known, Tools, asked_afresh, hand_over, writing
from domain.asking import Aim, Mode
from domain.memories import MemoryView
from domain.settings import Settings
from models.profile import load_profile
from models.toolbox import Toolbox
from retrieval.candidates import BY_QUESTION
from retrieval.retrievers import Retrievers
from store import vector_index
from store.database import Store
from store.home import Home
from store.queries.candidates import (
    EVERYTHING,
    Restriction,
    near_clips,
    near_lines,
)
from store.queries.clips import memory_view
from store.queries.search import WIDE, view_size
from store.vector_index import VectorIndex, build_index, has_index, index_name
from tests.support.big_library import CLIP_MS, LINES, Film, times, who

SIZES = (1_000, 10_000, 100_000)
MODES = (Mode.EVENT, Mode.VIDEO, Mode.NEIGHBOR, Mode.KEYFRAME)
QUESTIONS, ROUNDS, NEAREST = 20, 5, 10
RECALL = 0.95
FIRST = 2.0
"""How many times what a warm search takes the first one of a process may take."""
MOST_MB, FLAT = 400.0, 1.25
"""Memory of a process that asks, at most, and over the largest library beside the smallest."""
WRITTEN_MS, WRITTEN_LINES = 100.0, 100_000
"""The 95th percentile at most, and over how many lines, while another process writes."""
PERSON = 1
"""The number of the person that is asked about."""

Marks = NDArray[np.bool_]


def most_ms(in_view: int) -> float:
    """Return the 95th percentile that a search may have at most, by the lines in view."""
    if in_view <= 10_000:
        return 25.0
    return 90.0 if in_view <= 100_000 else 200.0


@dataclass(frozen=True, eq=False)
class Part:
    """Questions over a part of a library; ``exact`` has the unrounded vectors (N, D) of it."""

    what: str
    view: MemoryView
    questions: Sequence[str]
    exact: Vectors


@dataclass(frozen=True, eq=False)
class Filter:
    """Which lines are looked for; ``marks`` (N,) tells them among all of a library."""

    what: str
    view: MemoryView
    restriction: Restriction
    marks: Marks


@dataclass(frozen=True, eq=False)
class Bench:
    """A library that is searched: its videos, and what filling it took."""

    store: Store
    tools: Tools
    world: World
    recordings: Sequence[Film]
    filled_s: float = 0.0

    @cached_property
    def exact(self) -> Vectors:
        """The unrounded vectors of all memories, (N, D)."""
        return np.concatenate([vectors_of(self.world, recording) for recording in self.recordings])

    @property
    def memories(self) -> int:
        """How many there are."""
        return sum(recording.clips for recording in self.recordings) * LINES

    def searching(self) -> Retrievers:
        """Return searches over it."""
        return Retrievers(self.store, self.tools, Settings())


class _Silent:
    """Reports no progress."""

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Start nothing."""

    def step(self, steps: int = 1) -> None:
        """Report nothing."""


def lines(sizes: Sequence[int] = SIZES) -> Iterator[Line]:
    """Measure each size of a library, then whether memory grew with it."""
    model = Known.by(Toolbox(load_profile("local"), Home.default().weights).text)
    made = world(model)
    peaks = []
    for size in sizes:
        with _library(Tools(model), made, size) as bench:
            for line in measured(bench):
                if line.what == MEMORY:
                    peaks.append(line.ours)
                yield line
    if len(peaks) > 1:
        what = "memory of a process that asks, the largest library"
        yield costs(what, peaks[-1], peaks[0], "the smallest", FLAT)


@contextmanager
def _library(tools: Tools, made: World, memories: int) -> Iterator[Bench]:
    with scratch_store() as store:
        started = time.perf_counter()
        recordings = grow(store, made, days(memories))
        yield Bench(store, tools, made, recordings, time.perf_counter() - started)


def measured(bench: Bench) -> Iterator[Line]:
    """Measure one library."""
    asked = parts(bench)
    yield on_disk(bench)
    if bench.memories > WIDE:
        yield from indexed(bench)
    searching = bench.searching()
    for part in asked:
        for mode in MODES:
            yield searched(bench, searching, part, mode)
        yield beside_faiss(bench, searching, part)
    yield with_options(bench, searching, asked[0])
    for one in filters(bench):
        yield from recalled(bench, one, asked[0].questions)
    with tempfile.TemporaryDirectory() as folder:
        hand_over(Path(folder), asked[0].view, asked[0].questions, bench.tools.text)
        yield from of_processes(bench, [asked_afresh(bench.store, Path(folder)) for _ in range(5)])
        yield while_written(bench, searching, asked[0], Path(folder))


def on_disk(bench: Bench) -> Line:
    """Compare the table of memories with its indexes to the vectors alone in 32 bits."""
    with bench.store.begin() as session:
        ours = _megabytes(session, "pg_total_relation_size('memories')")
    bare = _bare(bench)
    return costs("memories on disk, indexes and all", ours, bare, VECTORS, size=bench.memories)


VECTORS = "vectors alone"


def _bare(bench: Bench) -> Taken:
    return Taken((4e-6 * bench.memories * bench.tools.text.dimensions,), "MB")


def _megabytes(session: Session, size: str) -> Taken:
    return Taken(((session.scalar(text(f"SELECT {size}")) or 0) / 1e6,), "MB")


def indexed(bench: Bench) -> Iterator[Line]:
    """Build the search index: how long it takes, and how large it is."""
    size = bench.tools.text.dimensions
    index = VectorIndex(vector_index.MEMORIES, size)
    built = milliseconds(lambda: build_index(bench.store, _Silent(), [index])) / 1000
    ours, filled = Taken((built,), "s"), Taken((bench.filled_s,), "s")
    yield costs("building the search index", ours, filled, "filling the library",
                size=bench.memories)  # fmt: skip
    with bench.store.begin() as session:
        held = _megabytes(session, f"pg_relation_size('{index_name(size)}')")
    yield costs("search index on disk", held, _bare(bench), VECTORS, size=bench.memories)


def parts(bench: Bench) -> list[Part]:
    """Return all videos, the last one, the first half of each, and all of them about a person."""
    recordings, last = bench.recordings, bench.recordings[-1]
    with bench.store.begin() as session:
        whole = memory_view(session, [recording.id for recording in recordings])
        half = memory_view(session, [recording.id for recording in recordings], _half_ms(bench))
    chosen = np.linspace(0, len(bench.world.said) - 1, QUESTIONS).astype(int)
    plain = [f"Who {bench.world.said[n]}?" for n in chosen]
    guest = f"Guest {PERSON} of {last.title}"
    about = [f"When did {guest} meet whoever {bench.world.said[n]}?" for n in chosen]
    one = MemoryView(scopes=whole.scopes[-1:])
    own = bench.exact[-last.clips * LINES :]
    return [
        Part("all videos", whole, plain, bench.exact),
        Part("one video", one, plain, own),
        Part("half of the time", half, plain, bench.exact[_seen(bench, half)]),
        Part("one person", whole, about, own),
    ]


def _half_ms(bench: Bench) -> int:
    """Return the middle of the first video, in ms of video time."""
    return CLIP_MS * (bench.recordings[0].clips // 2)


def _seen(bench: Bench, view: MemoryView) -> Marks:
    """Mark the lines in view, (N,)."""
    clips = {scope.video: scope.last_clip + 1 for scope in view.scopes}
    each = [
        np.arange(recording.clips) < clips.get(recording.id, 0) for recording in bench.recordings
    ]
    return np.repeat(np.concatenate(each), LINES)


def filters(bench: Bench) -> list[Filter]:
    """Return all that lines are looked for by: videos, a span, a person, a moment."""
    recordings, last = bench.recordings, bench.recordings[-1]
    ids = [recording.id for recording in recordings]
    with bench.store.begin() as session:
        whole, half = memory_view(session, ids), memory_view(session, ids, _half_ms(bench))
        found = "SELECT id FROM identities WHERE video_id = :v AND kind = 'face' AND number = :n"
        face = session.scalar(text(found), {"v": last.id, "n": PERSON}) or 0
    one = MemoryView(scopes=whole.scopes[-1:])
    span = _half_ms(bench), _half_ms(bench) + max(CLIP_MS, _half_ms(bench) // 5)
    starts = np.concatenate(
        [
            [at for clip in range(recording.clips) for at in times(clip, LINES)]
            for recording in recordings
        ]
    )
    clips = ((recording, clip) for recording in recordings for clip in range(recording.clips))
    theirs = [
        recording is last and who(recording, clip, n) == PERSON
        for recording, clip in clips
        for n in range(LINES)
    ]
    within = (starts + 3_000 > span[0]) & (starts < span[1])
    return [
        Filter("all videos", whole, EVERYTHING, _seen(bench, whole)),
        Filter("one video", one, EVERYTHING, _seen(bench, one)),
        Filter("a span", whole, Restriction(span_ms=span), within),
        Filter("one person", whole, Restriction(identities=(face,)), np.array(theirs)),
        Filter("half of the time", half, EVERYTHING, _seen(bench, half)),
    ]


def searched(bench: Bench, searching: Retrievers, part: Part, mode: Mode) -> Line:
    """Measure one mode over one part: the 95th percentile over the bar, beside exact search."""
    focus, query = _start(searching, part)
    run = partial(searching.search, part.view, mode, focus=focus)
    words = [query] * QUESTIONS if mode is Mode.NEIGHBOR else part.questions
    ours, exact = _in_turn(bench, part, [partial(run, asked) for asked in words])
    name = f"{mode} over {part.what}"
    return _barred(name, ours, exact, NUMPY, most_ms(_in_view(part)), bench.memories)


NUMPY = "numpy, ten nearest"


def _in_view(part: Part) -> int:
    return sum(scope.last_clip + 1 for scope in part.view.scopes) * LINES


def _barred(
    what: str, ours: Taken, other: Taken, against: str, bar: float | None, memories: int
) -> Line:
    """Make a line whose ratio is the 95th percentile over its bar, if it has one."""
    if bar is None:
        return costs(f"{what} (p95)", ours, other, against, size=memories)
    name = f"{what} (p95, bar {bar:.0f} ms)"
    return Line(name, ours, other, against, ours.median / bar, 1.0, False, memories)


def _start(searching: Retrievers, part: Part) -> tuple[int | None, str]:
    """Find an event to go on from, and the label of one beside it."""
    found = searching.search(part.view, Mode.EVENT, part.questions[0])
    focus = None if found.focus is None else found.focus.id
    return focus, found.neighbours[0].label if found.neighbours else ""


def _in_turn(bench: Bench, part: Part, ours: Sequence[Callable[[], object]]) -> tuple[Taken, Taken]:
    """Take each way in turns; of each a 95th percentile a round."""
    vectors = unit(bench.tools.text.embed(part.questions))
    taken: list[list[float]] = [[], []]
    for work, vector in zip(ours, vectors, strict=True):
        work()
        for _ in range(ROUNDS):
            taken[0].append(milliseconds(work))
            taken[1].append(milliseconds(partial(nearest, part.exact, vector)))
    return _tail(taken[0]), _tail(taken[1])


def _tail(taken: Sequence[float]) -> Taken:
    """Return the 95th percentile of each round."""
    rounds = np.asarray(taken).reshape(-1, ROUNDS)
    return Taken(tuple(float(one) for one in np.percentile(rounds, 95, axis=0)))


def nearest(rows: Vectors, query: Vectors) -> NDArray[np.int64]:
    """Return the numbers of the ten nearest rows (N, D) to a query (D,), exactly; not in order."""
    return _highest(np.vecdot(rows, query))


def _highest(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    return np.argpartition(-scores, min(NEAREST, len(scores) - 1))[:NEAREST]


def beside_faiss(bench: Bench, searching: Retrievers, part: Part) -> Line:
    """Measure EVENT beside faiss, which finds the ten nearest exactly in one thread."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(part.exact.shape[1])
    index.add(part.exact)
    vectors = unit(bench.tools.text.embed(part.questions))
    taken: list[list[float]] = [[], []]
    for asked, vector in zip(part.questions, vectors, strict=True):
        for _ in range(ROUNDS):
            search = partial(searching.search, part.view, Mode.EVENT, asked)
            taken[0].append(milliseconds(search))
            taken[1].append(milliseconds(partial(index.search, vector[None], NEAREST)))
    ours, other = map(_tail, taken)
    name = f"EVENT beside faiss over {part.what} (p95)"
    return costs(name, ours, other, "faiss, ten nearest", size=bench.memories)


def with_options(bench: Bench, searching: Retrievers, part: Part) -> Line:
    """Measure EVENT for questions with four options, as the machine asks them."""
    said = bench.world.said
    shift = len(said) // 7
    work = []
    for n, asked in enumerate(part.questions):
        options = tuple(f"whoever {said[(n + shift * k) % len(said)]}" for k in range(1, 5))
        aim = Aim(text=asked, options=options, moments=MOMENTS)
        work.append(partial(searching.search, part.view, Mode.EVENT, asked, aim=aim))
    ours, exact = _in_turn(bench, part, work)
    name = f"EVENT with four options over {part.what}"
    return _barred(name, ours, exact, NUMPY, None, bench.memories)


def recalled(bench: Bench, one: Filter, questions: Sequence[str]) -> Iterator[Line]:
    """Compare the ten nearest lines and clips that the database finds to the exact ones."""
    vectors = unit(bench.tools.text.embed(questions))
    shares = [_shares(bench, one, vector) for vector in vectors]
    for what, each in zip(("lines", "clips"), zip(*shares, strict=True), strict=True):
        mean, whole = (Taken((share,), "of 1") for share in (float(np.mean(each)), 1.0))
        name = f"recall of the ten nearest {what}, {one.what}"
        yield Line(name, mean, whole, "exact", mean.median, RECALL, True, bench.memories)


def _shares(bench: Bench, one: Filter, vector: Vectors) -> tuple[float, float]:
    """Return the shares of the ten nearest lines, and clips, that are found."""
    scores = np.where(one.marks, np.vecdot(bench.exact, vector), -np.inf)
    of_clips = scores.reshape(-1, LINES).max(axis=1)
    scopes, size = one.view.scopes, len(vector)
    with bench.store.begin() as session:
        found = near_lines(session, scopes, vector, NEAREST, one.restriction)
        narrow = one.restriction.selective or not view_size(session, scopes).wide
        by_index = not narrow and has_index(session, size)
        clips = near_clips(
            session, scopes, vector[None], BY_QUESTION, one.restriction, by_index=by_index
        )
        numbers = _numbers(session, bench, [line.id for line in found])
    first = _first_clips(bench)
    closest = sorted(clips, key=lambda clip: clip.distance)[:NEAREST]
    held = {first[scopes[clip.video].video] + clip.clip for clip in closest}
    return _share(scores, numbers), _share(of_clips, held)


def _first_clips(bench: Bench) -> dict[str, int]:
    """Return how many clips come before each video, by its id."""
    counts = np.cumsum([0, *(recording.clips for recording in bench.recordings)]).tolist()
    return {recording.id: first for recording, first in zip(bench.recordings, counts, strict=False)}


def _numbers(session: Session, bench: Bench, ids: Sequence[int]) -> set[int]:
    """Return the rows of ``bench.exact`` that these lines have."""
    query = text("SELECT video_id, clip, start_ms FROM memories WHERE id = ANY(:ids)")
    first = _first_clips(bench)
    return {
        (first[video] + clip) * LINES + (start - clip * CLIP_MS) // (CLIP_MS // LINES)
        for video, clip, start in session.execute(query, {"ids": list(ids)})
    }


def _share(scores: NDArray[np.floating], found: set[int]) -> float:
    exact = {n for n in _highest(scores).tolist() if np.isfinite(scores[n])}
    return len(exact & found) / len(exact)


MEMORY = "memory of a process that asks, peak after twenty searches"


def of_processes(bench: Bench, asked: Sequence[Asked]) -> Iterator[Line]:
    """Tell what fresh processes took: the first search of each, and memory at its peak."""
    first = Taken(tuple(one.first_ms for one in asked))
    warm = Taken(tuple(float(np.median(one.warm_ms)) for one in asked))
    name = "the first search of a process"
    yield costs(name, first, warm, "a warm one", FIRST, size=bench.memories)
    peaks = Taken(tuple(one.peak_mb for one in asked), "MB")
    most = Taken((MOST_MB,), "MB")
    yield costs(MEMORY, peaks, most, "what it may take", 1.0, size=bench.memories)


def while_written(bench: Bench, searching: Retrievers, part: Part, folder: Path) -> Line:
    """Measure EVENT over everything while another process writes clips, and without."""
    ids = [recording.id for recording in bench.recordings]

    def asked_all(videos: Sequence[str]) -> Taken:
        taken = []
        for asked in part.questions:
            for _ in range(ROUNDS):
                with bench.store.begin() as session:
                    view = memory_view(session, videos)
                taken.append(milliseconds(partial(searching.search, view, Mode.EVENT, asked)))
        return _tail(taken)

    quiet = asked_all(ids)
    with writing(bench.store, folder):
        ours = asked_all([*ids, WATCHED])
    bar = WRITTEN_MS if bench.memories <= WRITTEN_LINES else None
    name = "EVENT over all videos while clips are written"
    return _barred(name, ours, quiet, "while none are", bar, bench.memories)
