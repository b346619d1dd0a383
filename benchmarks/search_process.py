"""Processes beside a benchmark of searching: one that asks, and one that writes.

    python -m benchmarks.search_process ask FOLDER
    python -m benchmarks.search_process write FOLDER

``FOLDER`` has what ``hand_over`` wrote. The first opens the store, searches, and prints times and
its peak of memory as JSON. The second says that it has begun, and adds a clip with its memories
every tenth of a second until it is ended. Neither has a text model: vectors are known before.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.lines import milliseconds
from domain.asking import Mode
from domain.media import Video
from domain.memories import MemoryView
from domain.settings import Settings
from models.ports import TextEmbedder
from models.sentences import SentenceParser
from retrieval.retrievers import Retrievers
from store.database import Store, open_store
from store.driver import HALFVEC, allocate_ids, pack_halfvec
from store.home import Home
from store.queries.videos import add_video
from tests.support.big_library import CLIP_MS, LINES, OF_CLIP, put, times

WATCHED = "fedcba9876543210"
"""The video that clips are added to."""
EVERY_S = 0.1
"""Time between two clips that are written."""
NOISE = 0.5

Vectors = NDArray[np.float32]


class Known:
    """Embeds a text once, then at no cost; without a model, only what was embedded before."""

    def __init__(
        self, name: str, dimensions: int, languages: tuple[str, ...], model: TextEmbedder | None
    ) -> None:
        self.name, self.dimensions, self.languages = name, dimensions, languages
        self._model = model
        self._known: dict[str, Vectors] = {}

    @classmethod
    def by(cls, model: TextEmbedder) -> Known:
        """Embed by a model."""
        return cls(model.name, model.dimensions, model.languages, model)

    @classmethod
    def read(cls, path: Path) -> Known:
        """Read what ``save`` wrote."""
        held = np.load(path)
        vectors, languages = held["vectors"], tuple(held["languages"].tolist())
        known = cls(str(held["name"]), vectors.shape[1], languages, None)
        known._known = dict(zip(held["texts"].tolist(), vectors, strict=True))
        return known

    def save(self, path: Path) -> None:
        """Write every text with its vector."""
        texts, vectors = np.array([*self._known]), np.stack([*self._known.values()])
        languages = np.array(self.languages, dtype=str)
        np.savez(path, name=np.array(self.name), languages=languages, texts=texts, vectors=vectors)

    def vectors(self) -> Vectors:
        """Return the vectors of all texts that are known, (N, D)."""
        return np.stack([*self._known.values()])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors (N, D).

        Raises:
            LookupError: A text was not embedded before, and there is no model.
        """
        for one in texts:
            if one not in self._known:
                if self._model is None:
                    raise LookupError(f"not embedded before: {one!r}")
                self._known[one] = self._model.embed([one])[0]
        return np.stack([self._known[one] for one in texts])


PARSER = SentenceParser(Home.default().weights)


@dataclass
class Tools:
    """What a search needs, without models that would be timed too."""

    text: Known
    reranker: None = None
    images: None = None
    sentences: SentenceParser = PARSER


@dataclass(frozen=True)
class Asked:
    """What an asking process took: milliseconds of its searches, megabytes at its peak."""

    first_ms: float
    warm_ms: tuple[float, ...]
    peak_mb: float


def hand_over(folder: Path, view: MemoryView, questions: Sequence[str], known: Known) -> None:
    """Write what a process needs to search."""
    job = {"view": view.model_dump(mode="json"), "questions": list(questions)}
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    known.save(folder / "known.npz")


def asked_afresh(store: Store, folder: Path) -> Asked:
    """Start a process, have it ask every question of a folder twice, and return what it took."""
    done = subprocess.run(
        _command("ask", folder),
        env=_environment(store),
        stdout=subprocess.PIPE,
        check=True,
    )
    output = json.loads(done.stdout)
    return Asked(output["first_ms"], tuple(output["warm_ms"]), output["peak_mb"])


@contextmanager
def writing(store: Store, folder: Path) -> Iterator[None]:
    """Have another process write clips into ``WATCHED`` meanwhile."""
    command, environment = _command("write", folder), _environment(store)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError("the process that writes clips did not begin")
            yield
        finally:
            process.terminate()


def _command(what: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.search_process", what, str(folder)]


def _environment(store: Store) -> dict[str, str]:
    more = {"HOMER_HOME": str(store.home.root), "HOMER_DATABASE_URL": store.url}
    return dict(os.environ) | more


def ask(folder: Path) -> dict[str, Any]:
    """Ask every question twice; the peak of memory is that after the first time."""
    job = json.loads((folder / "job.json").read_text("utf-8"))
    view = MemoryView.model_validate(job["view"])
    tools = Tools(Known.read(folder / "known.npz"))
    with open_store(Home.default()) as store:
        searching = Retrievers(store, tools, Settings())
        work = [partial(searching.search, view, Mode.EVENT, one) for one in job["questions"]]
        first, *_ = [milliseconds(one) for one in work]
        peak = peak_mb()
        warm = [milliseconds(one) for one in work]
    return {"first_ms": first, "warm_ms": warm, "peak_mb": peak}


def peak_mb() -> float:
    """Return the largest resident set of this process so far, in megabytes (Linux)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def write(folder: Path) -> None:
    """Add a clip every tenth of a second, until the process is ended."""
    known = Known.read(folder / "known.npz").vectors()
    dice = np.random.default_rng(7)
    with open_store(Home.default()) as store:
        with store.begin() as session:
            video = Video(id=WATCHED, title="being watched", path=None, duration_ms=CLIP_MS)
            add_video(session, video, [], {})
        began = time.monotonic()
        for clip in itertools.count():
            _write_clip(store, clip, _noisy(known, dice))
            if not clip:
                print("begun", flush=True)
            time.sleep(max(0.0, began + EVERY_S * (clip + 1) - time.monotonic()))


def _noisy(known: Vectors, dice: np.random.Generator) -> Vectors:
    """Return unit vectors around some that are known, (LINES, D)."""
    own = known[dice.integers(0, len(known), LINES)]
    noise = dice.standard_normal(own.shape, dtype=np.float32) / np.sqrt(own.shape[1])
    rows = own + np.float32(NOISE) * noise
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _write_clip(store: Store, clip: int, vectors: Vectors) -> None:
    """Write a clip and its memories in one transaction."""
    start, end = clip * CLIP_MS, (clip + 1) * CLIP_MS
    types = {**OF_CLIP, "state": "text", "attempts": "int4", "gaps": "jsonb", "text": "text"}
    line_types = {**OF_CLIP, "id": "int8", "kind": "text", "source": "text", "text": "text"}
    with store.begin() as session:
        row = (WATCHED, clip, start, end, "done", 0, "[]", f"clip {clip}")
        put(session, "clips", types, [row])
        ids = allocate_ids(session, "memories", LINES)
        rows = (
            (WATCHED, clip, at, at + 3_000, one, "episodic", "seen",
             f"Somebody carries lamp {clip} into the hall.", pack_halfvec(vector))
            for at, one, vector in zip(times(clip, LINES), ids, vectors, strict=True)
        )  # fmt: skip
        put(session, "memories", line_types | {"embedding": HALFVEC}, rows)


def main() -> int:
    """Ask or write."""
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "write":
        write(folder)
    else:
        print(json.dumps(ask(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
