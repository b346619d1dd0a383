"""Several workers at one library, doing anything in any order, while they and Postgres are killed.

Each worker is a process that draws its next operation from its seed. Whatever Homer declares
(`HomerError`: somebody else is at it, it is gone by now, the database is away) is part of life;
anything else is a fault, and so is whatever `wrong` finds when the storm is over.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from domain.asking import Question
from domain.errors import DatabaseError, HomerError, InputError, NotFound
from domain.settings import WorkSettings
from domain.skills import JudgedTrajectory
from domain.time import TimeSpan
from flows import executors
from flows.executors import direct_executor
from flows.ingest_video import open_video
from flows.perception_workers import WorkerPool
from flows.removal import delete_video_rows, delete_video_span, preview_span_deletion
from flows.watching import SilentListener, watch
from flows.workspace import Workspace
from graphs.runner import Runner
from library.memory import dump_lines
from library.videos import all_videos, check_video
from models.ports import Face
from people import across_videos, corrections
from people.forget import forget
from retrieval.terms import content_words
from skills.learn import judge, learn
from skills.writer import LocalSkillWriter
from store.backup import back_up
from store.database import Store, open_store, remove_orphaned_blobs
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.queries.blobs import blobs_in_use
from store.queries.trajectories import list_trajectories
from tests.support.chaos import ChaosToolbox, kill_postgres
from tests.support.forked_processes import forked
from tests.support.library import Quiet
from tests.support.media import COLOURS, make_video
from tests.support.replaying import replay_all
from tests.support.several_videos import list_people

VIDEOS = 4
FELL = "fault"


class ColouredFaces:
    """Sees one of three people on a picture, by its colour, and a fourth beside every second."""

    name, same_person, min_score, min_quality = "coloured", 0.5, 0.5, 0.0

    def faces(self, image: Any) -> list[Face]:
        near = np.abs(np.asarray(COLOURS) - image.mean(axis=(0, 1))).sum(axis=1).argmin()
        found = [_face((20, 20, 60, 70), int(near) % 3)]
        return found + ([_face((90, 20, 130, 70), 3)] if near % 2 else [])


def _face(box: tuple[int, int, int, int], person: int) -> Face:
    vector = np.zeros(16, np.float32)
    vector[person] = 1.0
    return Face(box, 0.9, 30.0, vector)


class StormToolbox(ChaosToolbox):
    """The scripted models, and eyes for faces."""

    @property
    def faces(self) -> Any:
        return ColouredFaces()


def make_videos(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    return [
        make_video(folder / f"street {n}.mp4", seconds=5.0 + n, scene_s=1.0 + n / 4, audio=None)
        for n in range(VIDEOS)
    ]


class Worker:
    """One process's hands on the library."""

    def __init__(self, store: Store, base_url: str, videos: Path, dice: random.Random) -> None:
        self.store, self.dice = store, dice
        self.box = StormToolbox(base_url, 20.0)
        self.files = sorted(videos.glob("*.mp4"))

    def once(self) -> str:
        name = self.dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        getattr(self, name)()
        return name

    def ingest(self) -> None:
        self.watch(self.dice.choice(self.files))

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.store.home, self.store, self.box.profile, self.box)

    def watch(self, path: Path) -> None:
        pool = WorkerPool(WorkSettings())
        with open_video(self.workspace, path, again=True) as opened, direct_executor() as executor:
            watch(opened, executor, pool, SilentListener())

    def video(self) -> str:
        known = all_videos(self.store).items
        if not known:
            raise NotFound("nothing is watched yet")
        return self.dice.choice(known).id

    def ask(self) -> None:
        videos = tuple({self.video() for _ in range(2)})
        question = Question(text="Who walks over the squares?", videos=videos, options=("A", "B"))
        with Runner(self.store, self.box) as runner:
            runner.ask(question)

    def resume(self) -> None:
        with Runner(self.store, self.box) as runner:
            runner.resume(self.trajectory())

    def trajectory(self) -> str:
        with self.store.begin() as session:
            found = list_trajectories(session)
        if not found:
            raise NotFound("nothing is asked yet")
        return self.dice.choice(found).id

    def judge(self) -> None:
        right = self.dice.random() < 0.6
        word = JudgedTrajectory(trajectory=self.trajectory(), question_type="who", right=right)
        judge(self.store, word)

    def learn(self) -> None:
        learn(self.store, LocalSkillWriter(), content_words)

    def person(self, video: str) -> str:
        people = list_people(self.store, video)
        if not people:
            raise NotFound("nobody is known yet")
        return str(self.dice.choice(people).number)

    def merge(self) -> None:
        video = self.video()
        corrections.merge(self.store, video, self.person(video), self.person(video))

    def apart(self) -> None:
        video = self.video()
        corrections.keep_apart(self.store, video, self.person(video), self.person(video))

    def split(self) -> None:
        video = self.video()
        several = [p for p in list_people(self.store, video) if len(p.tags) > 1]
        if several:
            one = self.dice.choice(several)
            corrections.split(self.store, video, str(one.number), one.tags[:1])

    def rename(self) -> None:
        video = self.video()
        name = self.dice.choice(("Ann", "Bob", "Carl", ""))
        across_videos.rename(self.store, video, self.person(video), name)

    def undo(self) -> None:
        corrections.undo(self.store, self.video())

    def forget(self) -> None:
        video = self.video()
        forget(self.store, video, self.person(video), self.box.text)

    def delete(self) -> None:
        delete_video_rows(self.store, self.video())

    def cut(self) -> None:
        begin = 2000 * self.dice.randrange(3)
        span = TimeSpan.of(begin, begin + 500)
        video = preview_span_deletion(self.store, self.video(), span).cut.video
        delete_video_span(self.workspace, video, span)

    def back_up(self) -> None:
        out = self.store.home.root / f"{os.getpid()}-{time.monotonic_ns()}.homer"
        back_up(self.store, out, Quiet())
        out.unlink()

    def check(self) -> None:
        found = check_video(self.store, self.video()).findings
        assert not found, f"in the midst of it: {found}"


WEIGHTS: dict[str, float] = {
    "ingest": 5, "ask": 6, "resume": 2, "judge": 4, "learn": 1, "merge": 2, "apart": 1, "split": 2,
    "rename": 2, "undo": 2, "forget": 0.3, "delete": 0.7, "cut": 0.7, "back_up": 0.3, "check": 2,
}  # fmt: skip
"""How often an operation is drawn, beside the others."""


@dataclass
class Told:
    """What came of a storm. ``done`` and ``refused`` count operations; ``faults`` must be empty."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    kills: int = 0
    restarts: int = 0
    faults: list[str] = field(default_factory=list)


def work(url: str, root: Path, base_url: str, videos: Path, seed: str, log: Path) -> NoReturn:
    """A worker's process: operations until it is killed, each written down."""
    executors.BACK_OFF_S = (0.01, 0.02, 0.05)
    dice = random.Random(seed)
    with log.open("a", buffering=1) as out:
        while True:
            with suppress(DatabaseError), open_store(Home(root), url) as store:
                worker = Worker(store, base_url, videos, dice)
                with suppress(HomerError):
                    worker.ingest()
                while True:
                    _tell(worker, out.write)
            time.sleep(0.1)


def _tell(worker: Worker, write: Callable[[str], object]) -> None:
    try:
        write(f"done {worker.once()}\n")
    except DatabaseError as error:
        write(f"refused {type(error).__name__}\n")
        raise
    except HomerError as error:
        write(f"refused {type(error).__name__}\n")
    except BaseException:  # noqa: BLE001 - the edge of the process
        write(f"{FELL} {json.dumps(traceback.format_exc())}\n")


@dataclass
class Storm:
    """Workers at a library whose Postgres is ``server``."""

    server: EmbeddedPostgres
    url: str
    root: Path
    base_url: str
    seed: int
    workers: int = 4
    output: Told = field(default_factory=Told)

    def rage(self, seconds: float) -> Told:
        """Let the workers work for so long; kill one every second or so, and Postgres at times."""
        dice = random.Random(f"storm {self.seed}")
        make_videos(self.root / "videos")
        with self._crew() as crew:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                time.sleep(dice.uniform(0.5, 4.0))
                if dice.random() < 0.12:
                    kill_postgres(self.url)
                    self.server.start()
                    self.output.restarts += 1
                else:
                    one = dice.randrange(self.workers)
                    _kill(crew[one])
                    crew[one] = self._start(one)
                    self.output.kills += 1
        self.server.start()
        self._read()
        # What was broken off is done once more; then nothing may be wrong.
        with open_store(Home(self.root), self.url) as store:
            worker = Worker(store, self.base_url, self.root / "videos", random.Random(0))
            known = {entry.path for entry in all_videos(store).items}
            for path in worker.files:
                if str(path) in known:
                    worker.watch(path)
            self.output.faults += wrong(store, worker)
        return self.output

    @contextmanager
    def _crew(self) -> Iterator[list[BaseProcess]]:
        crew = [self._start(number) for number in range(self.workers)]
        try:
            yield crew
        finally:
            for one in crew:
                _kill(one)

    def _start(self, number: int) -> BaseProcess:
        seed = f"{self.seed} {number} {self.output.kills}"
        where = (self.url, self.root, self.base_url, self.root / "videos", seed, self._log(number))
        return forked(work, *where, daemon=True)

    def _log(self, number: int) -> Path:
        return self.root / f"worker-{number}.log"

    def _read(self) -> None:
        for number in range(self.workers):
            with suppress(FileNotFoundError):
                for line in self._log(number).read_text().splitlines():
                    kind, _, what = line.partition(" ")
                    if kind == FELL:
                        self.output.faults.append(json.loads(what))
                    else:
                        (self.output.done if kind == "done" else self.output.refused)[what] += 1


def _kill(process: BaseProcess) -> None:
    if process.pid is not None and process.is_alive():
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    process.join(20)


def wrong(store: Store, worker: Worker) -> list[str]:
    """What does not hold together in a library that is at rest."""
    found: list[str] = []
    for entry in all_videos(store).items:
        if entry.state != "done" or entry.done != entry.clips:
            found.append(f"{entry.title} is {entry.state}: {entry.done} of {entry.clips} clips")
        found += [f"{entry.title}: {one}" for one in check_video(store, entry.id).findings]
    with store.begin() as session:
        open_ = [row.id for row in list_trajectories(session) if row.state == "running"]
    for name in open_:
        with Runner(store, worker.box) as runner, suppress(InputError):
            runner.resume(name)
    with store.begin() as session:
        still = [row.id for row in list_trajectories(session) if row.state == "running"]
    found += [f"question {name} is still running" for name in still]
    replay_all(store)
    remove_orphaned_blobs(store)
    with store.begin() as session:
        named = set(blobs_in_use(session))
    kept = {sha for sha, _put in store.blobs.walk()}
    found += [f"image {sha} has no file" for sha in named - kept]
    found += [f"nothing names image {sha}" for sha in kept - named]
    for entry in all_videos(store).items:
        lines = list(dump_lines(store, entry.id))
        if len(lines) != len(set(lines)):
            found.append(f"{entry.title} has rows twice")
    return found
