"""How long the app takes to draw each page over a library of many clips.

    python -m benchmarks.pages [--sizes 2500 5000 10000]

Fills libraries of so many clips, half of them in one video, the others ten a video, with people,
events, memories, frames and answered questions, each in an embedded Postgres of its own; then draws
each page by Streamlit's AppTest, without a browser. Prints the median milliseconds that the whole
script takes on the server, which is more than until its first content, and by which power of the
library it grows (1 is in step with it).
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from domain.asking import Question
from domain.settings import AskSettings
from graphs.asker import Asker
from memory.corrections import rename
from memory.film import graph_of
from perception.jpeg import Blobs
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.asking import WordToolbox
from tests.support.big_library import fill_library, films
from tests.support.machine import (
    VIDEO,
    ScriptedDesks,
    ScriptedMemory,
    ScriptedReasoner,
    fresh,
)
from tests.support.many_answers import a_run, fill_answers
from tests.support.pages import forget_desk, open_page
from tests.support.signals import slide

SIZES = (2_500, 5_000, 10_000)
TIMES = 3
BAR_MS = 1_000
SKILLS = 40
Address = tuple[str, str, Mapping[str, object]]
"""What is to be seen, on which page, and the rest of its address."""


def videos_of(clips: int) -> int:
    """How many videos a library of so many clips has."""
    return clips // 20


@contextmanager
def library(clips: int) -> Iterator[Store]:
    """A library of that many clips that the pages open; it is thrown away afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        server = EmbeddedPostgres(home)
        try:
            with open_store(home) as store:
                os.environ["HOMER_HOME"] = str(home.root)
                fill(store, clips)
                yield store
        finally:
            forget_desk()
            server.stop()


def fill(store: Store, clips: int) -> None:
    """Videos, answers and skills; somebody was given a name, as people do."""
    frame = Blobs()
    picture = frame.add(slide("a frame"), 80)
    store.blobs.put(frame[picture])
    fill_library(store, clips, videos_of(clips), picture)
    fill_answers(store, clips // 5, SKILLS)
    rename(store, VIDEO, "1", "Ada Lovelace")


def long_run(store: Store) -> str:
    """A trajectory of ten rounds."""
    desks = ScriptedDesks(ScriptedReasoner(), ScriptedMemory(fresh(20)), AskSettings())
    with Asker(store, WordToolbox(), desks) as asker:
        return asker.ask(Question(text="Who opens the last door?", videos=(VIDEO,))).trajectory_id


def addresses(store: Store, clips: int) -> Iterator[Address]:
    """Every page, where it has most to show."""
    longest = next(films(clips, videos_of(clips))).clips
    event = graph_of(store, VIDEO, limit=1).segments[0].id
    yield "ask", "ask", {}
    yield "ask, answered", "ask", {"trajectory": a_run(7)}
    yield "trajectories", "trajectory", {}
    yield "trajectories, last page", "trajectory", {"page": clips // 5 // 25}
    yield "trajectory", "trajectory", {"trajectory": long_run(store)}
    yield "library", "library", {}
    yield "video, events", "video", {"video": VIDEO}
    yield "video, one event", "video", {"video": VIDEO, "segment": event}
    yield "video, last clips", "video", {"video": VIDEO, "show": "Clips", "clips": longest // 10}
    yield "people", "people", {"video": VIDEO}
    yield "people, one person", "people", {"video": VIDEO, "person": 1, "page": 2}
    yield "skills", "skills", {}
    yield "skills, one skill", "skills", {"skill": "advice-7"}
    yield "health", "health", {}


def drawn_ms(address: Address) -> float:
    """Milliseconds of a page, the median of some times."""
    _, name, query = address
    taken = []
    for _ in range(TIMES):
        started = time.perf_counter()
        page = open_page(name, **query)
        taken.append((time.perf_counter() - started) * 1000)
        assert not page.exception
    return statistics.median(taken)


def measure(clips: int) -> dict[str, float]:
    """Milliseconds of each page over a library of that many clips."""
    with library(clips) as store:
        open_page("library")
        return {one[0]: drawn_ms(one) for one in addresses(store, clips)}


def growth(sizes: Sequence[int], taken: Sequence[float]) -> float:
    """By which power of the size time grows, from the smallest to the largest."""
    return math.log(taken[-1] / taken[0]) / math.log(sizes[-1] / sizes[0])


def main() -> None:
    """Measure on libraries of their own, thrown away afterwards."""
    parser = argparse.ArgumentParser(description="Drawing the pages of the app.")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    sizes = parser.parse_args().sizes
    logging.disable(logging.WARNING)
    os.environ.pop("HOMER_DATABASE_URL", None)
    rows = [measure(size) for size in sizes]
    for page in rows[-1]:
        taken = [row[page] for row in rows]
        told = "  ".join(f"{ms:6.0f} ms" for ms in taken)
        power = f"  power {growth(sizes, taken):5.2f}" if len(sizes) > 1 else ""
        print(f"{page:24} {told}{power}")
    page, slowest = max(rows[-1].items(), key=lambda one: one[1])
    print(f"slowest with {sizes[-1]} clips: {page}, {slowest:.0f} ms (bar: {BAR_MS})")


if __name__ == "__main__":
    main()
