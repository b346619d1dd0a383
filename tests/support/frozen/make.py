"""Write a library, an export and trajectories to keep, as this Homer makes them.

``python -m tests.support.frozen.make FOLDER`` writes them into an empty folder, without any weights
or network; ``records/README.md`` says when. Tests read them back with later code.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NoReturn

from domain.asking import Question
from domain.evaluation_options import Protocol
from domain.trajectory import EvidenceRetrieved, ForkEdit, ModelCalled, RunEvent
from graphs.ask import ask
from graphs.ask_result import AskResult, StoppedEarly
from graphs.runner import Runner
from memory.captions import read_captions
from memory.import_captions import Progress
from store.backup import back_up
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.migrations import migrate
from store.queries.schedules import record_processed
from store.queries.trajectories import list_trajectories
from tests.support.asking import WordToolbox
from tests.support.caption_evaluations import evaluate, houses
from tests.support.event_graphs import import_with_events
from tests.support.library import Quiet, fill_library
from tests.support.memory import SETTINGS, Tools, local_writers
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import WordEmbedder
from views.library import dump_lines, export_to_file, list_library

RECORDS = Path(__file__).parents[1] / "records"
FOLDER = RECORDS / "before_renaming"
LIBRARY, EXPORT, ABOUT = "library.homer", "talk.zip", "about.json"
WHOLE_WEEK = "week.whole.jsonl"
"""What the dump of the week is once its interrupted import has gone on to the end."""
TALK, WEEK, RUN = "talk", "week", "run"
SPOKEN = (
    ("Ada", "Welcome to the talk about clocks."),
    ("Ada", "A pendulum needs two seconds for one swing."),
    ("Omar", "Why does the pendulum stop after an hour?"),
    ("Ada", "The air slows the pendulum down."),
    ("Omar", "I bring the heavy weight from the kitchen."),
    ("Ada", "The heavy weight drives the wheel of the clock."),
    ("Omar", "The garden clock runs on sunlight alone."),
    ("Ada", "Thank you for coming to the workshop."),
)
WORDS = ("tent", "soup", "laptop", "garden", "violin")


def make(folder: Path) -> None:
    """Write all files into ``folder``."""
    os.environ["LOGNAME"] = "tester"  # Whom the audit log names.
    folder.mkdir(parents=True, exist_ok=True)
    write_captions(folder)
    with own_library() as store:
        named = fill(store, folder)
        export_to_file(store, TALK, folder / EXPORT)
        back_up(store, folder / LIBRARY, Quiet())
        about = {"trajectories": named, "answers": answers(store)}
        for video in list_library(store):
            write_dump(store, video.title, folder / f"{video.title}.dump.jsonl")
        import_captions(store, folder / f"{WEEK}.jsonl")
        write_dump(store, WEEK, folder / WHOLE_WEEK)
    (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def write_captions(folder: Path) -> None:
    """Write captions of eight clips, and of 25, which is more than are imported at once."""
    talk = [
        {"start": 30 * n + 2, "end": 30 * n + 6, "text": text, "speaker": speaker}
        for n, (speaker, text) in enumerate(SPOKEN)
    ]
    week = [
        {"start": 30 * n, "end": 30 * n + 2, "text": f"The {WORDS[n // 5]} is number {n}."}
        for n in range(25)
    ]
    for name, rows in ((TALK, talk), (WEEK, week)):
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")


def write_dump(store: Store, video: str, out: Path) -> None:
    """Write what ``homer dump`` prints."""
    out.write_text("".join(f"{line}\n" for line in dump_lines(store, video)), encoding="utf-8")


@contextmanager
def own_library() -> Iterator[Store]:
    """An empty library on a server of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        server = EmbeddedPostgres(home, fsync=False)
        try:
            url = server.start()
            migrate(url)
            with open_store(home, url) as store:
                yield store
        finally:
            server.stop(fast=False)


def fill(store: Store, folder: Path) -> dict[str, str]:
    """Fill a library; returns the trajectories by what became of them."""
    seen = fill_library(store)
    import_captions(store, folder / f"{TALK}.jsonl")
    with suppress(CutOff):
        import_captions(store, folder / f"{WEEK}.jsonl", cut_off)
    with tempfile.TemporaryDirectory() as captions:
        evaluate(store, houses(Path(captions), 1), name=RUN, protocol=Protocol.ONLINE)
    with store.begin() as session:
        record_processed(session, "0" * 64)
    answered = ask(store, WordToolbox(), question(store, "What slows the pendulum down?"))
    return {
        "answered about a party": seen,
        "answered by rules": answered.trajectory_id,
        "answered by a model": ask_model(store).trajectory_id,
        "forked": fork(store, answered.trajectory_id),
        "stopped by Ctrl-C": stopped(store),
        "killed": killed(store),
    }


def import_captions(store: Store, captions: Path, progress: Progress | None = None) -> str:
    """Import a file of captions, or go on with it; returns the video's id."""
    track, tools = read_captions(captions), Tools(text=WordEmbedder())  # type: ignore[arg-type]
    return import_with_events(store, track, local_writers(), tools, SETTINGS, progress=progress).id


class CutOff(Exception):
    """Stands for a killed process."""


def cut_off(done: int, total: int) -> NoReturn:
    """End an import after the first clips.

    Raises:
        CutOff: always.
    """
    raise CutOff


def question(store: Store, text: str, **more: Any) -> Question:
    """A question about the talk."""
    (video,) = (one.id for one in list_library(store) if one.title == TALK)
    return Question(text=text, videos=(video,), **more)


def options_question(store: Store) -> Question:
    """A question with options about the talk."""
    return question(store, "Who brings the weight?", options=("Ada", "Omar", "a dog"))


def ask_model(store: Store) -> AskResult:
    """The answer of a language model."""
    with OpenAIServer(obedient) as server:
        return ask(store, LlmToolbox(server), options_question(store))


def fork(store: Store, trajectory: str) -> str:
    """Go on anew from the first round."""
    with Runner(store, WordToolbox()) as runner:
        return runner.fork(trajectory, 1, ForkEdit()).trajectory_id


def stopped(store: Store) -> str:
    """Stop a language model by Ctrl-C after its third call; its best answer so far is on record."""
    calls = iter(range(3))

    def stop(output: RunEvent) -> None:
        if isinstance(output, ModelCalled) and next(calls) == 2:
            raise KeyboardInterrupt

    with OpenAIServer(obedient) as server:
        try:
            ask(store, LlmToolbox(server), options_question(store), stop)
        except StoppedEarly as early:
            return early.asked.trajectory_id
    raise AssertionError("it was not stopped")


def killed(store: Store) -> str:
    """Kill the process of a question after its second search."""
    process = get_context("spawn").Process(target=_killed, args=(store.url, store.home.root))
    process.start()
    process.join()
    with store.begin() as session:
        left = list_trajectories(session)[0]
    if (process.exitcode, left.state) != (9, "running"):
        raise AssertionError(f"it was not killed: {process.exitcode}, {left.state}")
    return left.id


def _killed(url: str, home: Path) -> None:
    searches = iter(range(2))

    def die(output: RunEvent) -> None:
        if isinstance(output, EvidenceRetrieved) and next(searches) == 1:
            os._exit(9)

    with open_store(Home(home), url) as store:
        ask(store, WordToolbox(), question(store, "Who repairs the garden clock and why?"), die)


def answers(store: Store) -> dict[str, Any]:
    """The answers on record, by trajectory."""
    with store.begin() as session:
        rows = list_trajectories(session)
    return {row.id: row.answer.model_dump(mode="json") for row in rows if row.answer is not None}


if __name__ == "__main__":
    make(Path(sys.argv[1]))
