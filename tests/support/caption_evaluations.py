"""A small data set of captions, and runs over it without weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import update

from agent.strategy import Strategy
from domain.evaluation import Verdict
from domain.media import Video
from domain.time import TimeSpan
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from evals.plan import Plan, plan
from evals.running import run
from evals.tables import RunOutcome
from flows.build import build
from flows.workspace import Workspace
from models.toolbox import Toolbox
from store.database import Store
from store.queries.evaluations import Result, Slot, run_results
from store.tables.schema import VideoRow
from tests.support.asking import WordToolbox

PEOPLE = ("Ann", "Bob", "Carla", "Dmitri")
THINGS = (("lantern", "cellar"), ("violin", "attic"))


def video(folder: Path, number: int) -> EvalVideo:
    """Somebody puts things into places, one a clip."""
    who, name = PEOPLE[number % len(PEOPLE)], f"house {number}"
    path = folder / f"{name}.jsonl"
    lines = [
        {
            "start": 30 * n + 2,
            "end": 30 * n + 8,
            "text": f"{who} carries the {thing} to the {place}",
        }
        for n, (thing, place) in enumerate(THINGS)
    ]
    output = [*lines, {"start": 65, "end": 70, "text": f"{who} closes door number {number}"}]
    path.write_text("\n".join(map(json.dumps, output)))
    return EvalVideo(name=name, captions=path)


def questions(number: int) -> list[EvalQuestion]:
    """One question for each thing, with options and its span; and an open one."""
    places = tuple(f"to the {place}" for _, place in THINGS)
    name = f"house {number}"
    asked = [
        EvalQuestion(
            id=f"{number}-{n}",
            video=name,
            question=f"Where does {PEOPLE[number % 4]} carry the {thing}?",
            options=places,
            answer="AB"[n],
            types=("where", "odd" if n % 2 else "even"),
            spans=(TimeSpan.of(30_000 * n + 2_000, 30_000 * n + 8_000),),
        )
        for n, (thing, _) in enumerate(THINGS)
    ]
    open_one = EvalQuestion(
        id=f"{number}-open",
        video=name,
        question=f"What does {PEOPLE[number % 4]} close?",
        answer=f"door number {number}",
        types=("what",),
    )
    return [*asked, open_one]


def houses(folder: Path, count: int = 2) -> Dataset:
    """A data set about so many houses."""
    numbers = range(count)
    videos = tuple(video(folder, number) for number in numbers)
    return Dataset("houses", videos, tuple(q for n in numbers for q in questions(n)))


def workspace_of(store: Store, toolbox: Toolbox | None = None) -> Workspace:
    """A workspace without weights."""
    tools = toolbox or WordToolbox()
    return Workspace(store.home, store, tools.profile, tools)


def build_all(store: Store, video: str, *strategies: Strategy) -> None:
    """Build the memory of strategies of a video that was watched to its end."""
    with store.begin() as session:
        session.execute(update(VideoRow).where(VideoRow.id == video).values(state="done"))
    for strategy in strategies:
        if strategy.builder is not None:
            build(workspace_of(store), video, strategy, lambda *_: None)


class Heard:
    """Listens to an evaluation."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.notes: list[str] = []
        self.costs: list[float] = []
        self.begun: list[tuple[int, int]] = []

    def opened(self, video: Video, clips: int, done: int) -> None:
        """A video is watched."""

    def remembered(self, video: Video, clip: int) -> None:
        """A clip is in memory."""

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        """A clip is left."""

    def said(self, text: str) -> None:
        """Anything else."""
        self.notes.append(text)

    def importing(self, video: str, done: int, total: int) -> None:
        """A video of captions is imported."""

    def asking(self, total: int, done: int) -> None:
        self.begun.append((total, done))

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        self.asked.append(f"{slot.arm}/{slot.question}")
        self.costs.append(cost_usd)


def evaluate(
    store: Store,
    dataset: Dataset,
    toolbox: Toolbox | None = None,
    heard: Heard | None = None,
    name: str = "run",
    max_cost: float | None = None,
    workers: int = 2,
    **more: Any,
) -> RunOutcome:
    """Run the data set, as plain calls."""
    workspace = workspace_of(store, toolbox)
    made = planned(dataset, workspace, **more)
    heard = heard or Heard()
    return run(workspace, made, heard, name=name, direct=True, workers=workers, max_cost=max_cost)


def planned(dataset: Dataset, workspace: Workspace, **more: Any) -> Plan:
    return plan(dataset, workspace.profile, **more)


def found(store: Store, name: str = "run") -> Sequence[Result]:
    with store.begin() as session:
        return run_results(session, name)
