"""How long the app takes to draw each page over a library of many clips.

Libraries of 2 500, 5 000 and 10 000 clips, half of them in one video, the others ten a video, with
people, events, memories, frames, answers, skills and runs, each in an embedded Postgres of its own.
Each page is drawn by Streamlit's AppTest, without a browser, beside an empty one: milliseconds that
the whole script takes on the server, which is more than until its first content.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

from streamlit.testing.v1 import AppTest

from benchmarks.lines import Line, in_turn
from domain.asking import Question
from domain.settings import AskSettings
from graphs.runner import Runner
from library.memory import events
from people.across_videos import rename
from perception.images import Blobs
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.app_pages import forget_app_state, open_page
from tests.support.asking import WordToolbox
from tests.support.big_library import fill_library, recordings
from tests.support.machine import (
    VIDEO,
    ScriptedContexts,
    ScriptedMemory,
    ScriptedReasoner,
    fresh,
)
from tests.support.many_answers import a_run, fill_answers
from tests.support.many_runs import fill_run
from tests.support.signals import slide

SIZES = (2_500, 5_000, 10_000)
BAR_MS = 1_000.0
SKILLS = 40
Address = tuple[str, str, Mapping[str, object]]
"""What is to be seen, on which page, and the rest of its address."""


def videos_of(clips: int) -> int:
    """Return how many videos a library of so many clips has."""
    return clips // 20


@contextmanager
def library(clips: int) -> Iterator[Store]:
    """Yield a library of that many clips that the pages open; it is thrown away afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        server = EmbeddedPostgres(home)
        try:
            with open_store(home) as store:
                os.environ["HOMER_HOME"] = str(home.root)
                fill(store, clips)
                yield store
        finally:
            forget_app_state()
            server.stop()


def fill(store: Store, clips: int) -> None:
    """Videos, answers, skills and runs; somebody was given a name, as people do."""
    frame = Blobs()
    picture = frame.add(slide("a frame"), 80)
    store.blobs.put(frame[picture])
    fill_library(store, clips, videos_of(clips), picture)
    fill_answers(store, clips // 5, SKILLS)
    asked = clips // 40
    fill_run(store, "first", asked)
    fill_run(store, "second", asked, shift=1, first=2 * asked)
    rename(store, VIDEO, "1", "Ada Lovelace")


def long_run(store: Store) -> str:
    """Return a trajectory of ten rounds."""
    contexts = ScriptedContexts(ScriptedReasoner(), ScriptedMemory(fresh(20)), AskSettings())
    with Runner(store, WordToolbox(), contexts) as runner:
        return runner.ask(Question(text="Who opens the last door?", videos=(VIDEO,))).trajectory_id


def addresses(store: Store, clips: int) -> Iterator[Address]:
    """Yield every page, where it has most to show."""
    longest = next(recordings(clips, videos_of(clips))).clips
    event = events(store, VIDEO, limit=1).items[0].number
    yield "ask", "ask", {}
    yield "ask, answered", "ask", {"trajectory": a_run(7)}
    yield "trajectories", "trajectory", {}
    yield "trajectories, last page", "trajectory", {"page": clips // 5 // 25}
    yield "trajectory", "trajectory", {"trajectory": long_run(store)}
    yield "library", "library", {}
    yield "search", "search", {"q": "opens the last door"}
    yield "video, events", "video", {"video": VIDEO}
    yield "video, one event", "video", {"video": VIDEO, "segment": event}
    yield "video, last clips", "video", {"video": VIDEO, "show": "Clips", "clips": longest // 10}
    yield "people", "people", {"video": VIDEO}
    yield "people, one person", "people", {"video": VIDEO, "person": 1, "page": 2}
    yield "skills", "skills", {}
    yield "skills, one skill", "skills", {"skill": "advice-7"}
    yield "evaluations", "evaluations", {}
    yield "evaluations, one run", "evaluations", {"run": "first", "questions": 5}
    yield "evaluations, two runs", "evaluations", {"run": "first", "with_": "second"}
    yield "health", "health", {}
    yield "history", "history", {}
    yield "alerts", "alerts", {}
    yield "recaps", "recaps", {}
    yield "compare", "compare", {}
    yield "schedules", "schedules", {}


def lines() -> Iterator[Line]:
    """Each page by the size of the library; the ratio is the time over the bar of the largest."""
    logging.disable(logging.WARNING)
    try:
        with patch.dict(os.environ):
            os.environ.pop("HOMER_DATABASE_URL", None)
            for clips in SIZES:
                yield from _drawn(clips, 1.0 if clips == max(SIZES) else None)
    finally:
        logging.disable(logging.NOTSET)


def _drawn(clips: int, bar: float | None) -> Iterator[Line]:
    with library(clips) as store:
        open_page("library")
        for what, name, query in addresses(store, clips):
            ours, empty = in_turn(partial(open_page, name, **query), _empty)
            output = f"page: {what} (bar {BAR_MS:.0f} ms)"
            share = ours.median / BAR_MS
            yield Line(output, ours, empty, "an empty page", share, bar, more=False, size=clips)


def _empty() -> None:
    """Return what drawing costs where there is nothing to draw."""
    AppTest.from_string("import streamlit as st; st.title('Empty')").run()
