"""What a second worker adds: a video of eight short clips, watched by one worker and by two.

    python -m benchmarks.workers [--pool processes|threads] [--runs N]

The workers have loaded their models before, as those that watch a folder of videos have. The time
that loading takes is a line of its own, since a run for one short video pays it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.hardware import described
from benchmarks.ingest import Silent
from benchmarks.lines import Line, Taken, faster, in_turn, milliseconds
from domain.settings import Pool, WorkSettings
from flows.executors import direct_executor
from flows.ingest_video import open_video
from flows.perception_workers import WorkerPool
from flows.removal import delete_video_rows
from flows.watching import watch
from flows.workspace import Workspace
from models.profile import load_profile
from models.toolbox import Toolbox
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home

CLIP = Path(__file__).parents[1] / "demo" / "googlework_short.mp4"
CLIPS, CLIP_MS = 8, 4_400
RUNS = 3


class Worked:
    """Watches the video again and again with the same workers, each time from the beginning."""

    def __init__(self, workspace: Workspace, settings: WorkSettings) -> None:
        self._workspace, self.pool = workspace, WorkerPool(settings)

    def __call__(self) -> None:
        """Watches it once."""
        with (
            open_video(self._workspace, CLIP) as work,
            direct_executor(self.pool.workers) as executor,
        ):
            watched = watch(work, executor, self.pool, Silent())
        assert watched.fresh == CLIPS
        delete_video_rows(self._workspace.store, watched.video)


def lines(pool: Pool = "processes", runs: int = RUNS) -> Iterator[Line]:
    """Two lines: two workers beside one, with their models loaded and to be loaded."""
    with _workspace() as workspace:
        one = Worked(workspace, WorkSettings())
        two = Worked(workspace, WorkSettings(workers=2, pool=pool))
        with one.pool, two.pool:
            first, cold = Taken((milliseconds(two),)), Taken((milliseconds(one),))
            both, alone = in_turn(two, one, runs=runs)
    yield faster(f"eight clips by two workers, {pool}", both, alone, "one worker")
    yield faster(f"the same, loading models first, {pool}", first, cold, "one worker")


@contextmanager
def _workspace() -> Iterator[Workspace]:
    """Yield the user's models with a store of its own, and clips so short that there are eight."""
    chosen = load_profile("local")
    watching = chosen.settings.watch.model_copy(update={"clip_ms": CLIP_MS})
    settings = chosen.settings.model_copy(update={"watch": watching})
    short = chosen.model_copy(update={"settings": settings})
    with tempfile.TemporaryDirectory() as folder:
        weights, home = Home.default().weights, Home(Path(folder)).make()
        try:
            with open_store(home) as store:
                yield Workspace(home, store, short, Toolbox(short, weights))
        finally:
            EmbeddedPostgres(home).stop()


def main() -> None:
    """Print the lines, and on what machine."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--pool", choices=("processes", "threads"), default="processes")
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    machine = described()
    print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']}", flush=True)
    for line in lines(arguments.pool, arguments.runs):
        print(
            f"{line.what}: {line.ours.median / 1000:.1f} s; {line.against}: "
            f"{line.reference.median / 1000:.1f} s; {line.ratio:.2f} times as fast",
            flush=True,
        )


if __name__ == "__main__":
    main()
