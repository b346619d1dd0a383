"""A run over a data set: its steps, each safe to repeat, and all that is done on record."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from sqlalchemy.orm import Session

from domain.asking import Question
from domain.errors import BudgetExceeded, InputError, ModelError
from domain.evaluation import PLAIN, Verdict
from domain.skills import JudgedTrajectory
from evals.closest import Closest
from evals.dataset import EvalQuestion, EvalVideo
from evals.judging import judge, unanswered
from evals.plan import Plan, PlannedQuestion, settings_of
from flows.ingest_files import watch_files
from flows.ingest_steps import Listener
from flows.learning import type_of
from flows.video_locks import is_locked
from flows.workspace import Workspace
from graphs.runner import DONE, Runner
from memory.captions import CaptionTrack, one_track, read_captions, read_tracks
from memory.import_captions import import_track
from memory.writers import make_writers
from store.home import Home
from store.queries import evaluations as stored
from store.queries import skills as skill_rows
from store.queries.evaluations import Result, Slot
from store.queries.learning import put_judgement

BEFORE = -1
"""The number of the batch under which the skills of before the run are noted."""


class EvalListener(Listener, Protocol):
    """Is told how an evaluation goes, besides its watching."""

    def importing(self, video: str, done: int, total: int) -> None:
        """So many clips of a video known by its captions are in memory."""

    def asking(self, total: int, done: int) -> None:
        """Questions are asked now; ``done`` of all arms' have their verdicts."""

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        """A question has its verdict; ``cost_usd`` is what the run has cost so far."""


@dataclass
class DollarBudget:
    """What may be spent on a run, in US dollars; None: as much as it takes."""

    most_usd: float | None
    spent_usd: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spent(self, usd: float) -> None:
        """So much has been spent in all."""
        with self._lock:
            self.spent_usd = max(self.spent_usd, usd)

    def more(self, usd: float) -> None:
        """So much has been spent beside what was known."""
        with self._lock:
            self.spent_usd += usd

    @property
    def empty(self) -> bool:
        """Whether nothing is left."""
        return self.most_usd is not None and self.spent_usd >= self.most_usd


class Evaluating:
    """The steps of a run, from any number of threads. What became of each is in the store.

    Args:
        desk: the library and the models.
        name: the run's name.
        plan: what is asked.
        listener: is told how it goes.
        max_cost: US dollars that may be spent; a question that has begun is ended all the same.
    """

    def __init__(
        self,
        desk: Workspace,
        name: str,
        plan: Plan,
        listener: EvalListener,
        max_cost: float | None = None,
    ) -> None:
        self.desk, self.name, self.plan = desk, name, plan
        self._listener, self._purse = listener, DollarBudget(max_cost)
        self._open, self._askers = ExitStack(), dict[str, Runner]()
        self._lock = threading.Lock()
        self.left_out: dict[str, str] = {}
        self._begun: set[str] = set()
        self._tracks: dict[Path, tuple[CaptionTrack, ...]] = {}
        self._costs: dict[tuple[str, str], float] = {}
        """What of each question, by arm and id, is counted in the purse."""

    @cached_property
    def _closest(self) -> Closest:
        return Closest(self.desk.store, self.desk.toolbox.text, self.desk.settings.watch.clip_ms)

    @cached_property
    def _videos(self) -> dict[str, EvalVideo]:
        return {one.name: one for one in self.plan.videos}

    def begin(self) -> None:
        """Put the run on record, or go on with it.

        Raises:
            InputError: it was begun with other settings.
        """
        with self.desk.store.begin() as session:
            known = stored.begin_run(session, self.name, self.plan.settings)
            if known != self.plan.settings:
                changed = ", ".join(n for n, v in known if v != getattr(self.plan.settings, n))
                raise InputError(
                    f"the run {self.name!r} was begun with other settings ({changed}): "
                    "give this one a name of its own with --name"
                )
            stored.set_run_state(session, self.name, stored.RUNNING)
            stored.add_batch(session, self.name, BEFORE, _shelf(session))
        self._count_cost()

    def videos(self) -> Sequence[str]:
        """The data set's videos that are asked about, in order."""
        return tuple(self._videos)

    def ingest(self, video: str) -> None:
        """See that a video is in memory, and plan its questions; one that cannot be is left out."""
        try:
            known = self._ingested(self._videos[video])
        except (InputError, ModelError) as error:
            self.left_out[video] = str(error)
            self._count_cost()
            self._listener.said(f"homer: {video}: {error}")
            return
        mine = [one for one in self.plan.questions if one.question.video == video]
        slots = [slot for one in mine for slot in self._slots(one, known)]
        with self.desk.store.begin() as session:
            stored.plan_slots(session, self.name, slots)
        self._count_cost()

    def _slots(self, one: PlannedQuestion, video: str) -> Iterator[Slot]:
        item = one.question.model_dump(mode="json")
        for arm in self.plan.arms_of(one):
            yield Slot(arm, one.question.id, one.place, one.part, one.batch, video, item)

    def _ingested(self, video: EvalVideo) -> str:
        """The id of a video in memory.

        Raises:
            InputError: it cannot be read.
            ModelError: clips of it are left to try again.
        """
        if video.file is None:
            return self._imported(video)
        (outcome,) = watch_files(self.desk, [video.file], self._listener, direct=True)
        if outcome.error is not None:
            raise outcome.error
        if outcome.watched is not None:
            self._begun.add(outcome.watched.video.id)
        if outcome.watched is None or outcome.watched.failed:
            raise ModelError("clips of it are left to try again")
        return outcome.watched.video.id

    def _imported(self, video: EvalVideo) -> str:
        if video.captions is None:
            raise InputError("it is not there")
        desk, profile = self.desk, self.desk.profile
        track = self._track(video.captions, video)
        self._begun.add(track.id)
        return import_track(
            desk.store,
            track,
            make_writers(desk.toolbox, profile),
            desk.toolbox,
            desk.settings,
            title=video.name,
            profile=profile.name,
            models={"text": profile.text, "writer": profile.writer},
            progress=lambda done, total: self._listener.importing(video.name, done, total),
        ).id

    def _track(self, path: Path, video: EvalVideo) -> CaptionTrack:
        """The captions of a video; a file of many is read once."""
        if not video.among:
            return read_captions(path)
        with self._lock:
            if path not in self._tracks:
                self._tracks[path] = read_tracks(path)
        return one_track(path, self._tracks[path], video.name)

    def batches(self) -> Sequence[int]:
        """The batches, in order; says first how many questions are left."""
        found = self._results()
        self._listener.asking(len(found), sum(not _is_open(one) for one in found))
        return self.plan.batches

    def pending(self, batch: int) -> Sequence[Slot]:
        """The questions of a batch that have no verdict yet, or one that a model's failure gave."""
        mine = [one for one in self._results() if one.slot.batch == batch and _is_open(one)]
        return [one.slot for one in sorted(mine, key=lambda one: (one.slot.place, one.slot.arm))]

    def _results(self) -> list[Result]:
        with self.desk.store.begin() as session:
            return stored.results(session, self.name)

    def answer(self, slot: Slot) -> None:
        """Have a question answered and judged, unless the money is spent.

        One that was begun goes on from its last finished step; one that was answered is not asked
        again.
        """
        if self._purse.empty:
            return
        with self.desk.store.begin() as session:
            found = stored.one_result(session, self.name, slot)
            cost = stored.cost_of_slot(session, self.name, slot)
        if not _is_open(found):
            return
        if slot.arm == PLAIN:
            self._put(
                slot, self._closest.verdict(EvalQuestion.model_validate(slot.item), slot.video)
            )
            return
        self._costs.setdefault((slot.arm, slot.question), cost)
        self.desk.give_way()
        try:
            trajectory = self._answered(slot, found)
        except (InputError, ModelError, BudgetExceeded) as error:
            self._put(slot, unanswered(error, begun=found.trajectory is not None))
            return
        question = EvalQuestion.model_validate(slot.item)
        self._put(slot, judge(self.desk, question, slot.video, trajectory), trajectory)

    def _answered(self, slot: Slot, found: Result) -> str:
        if found.trajectory is None:
            link = partial(self._link, slot)
            return self._asker(slot.arm).ask(question_of(slot), linked=link).trajectory_id
        if found.state == DONE:
            return found.trajectory
        return self._asker(slot.arm).resume(found.trajectory).trajectory_id

    def _link(self, slot: Slot, session: Session, trajectory: str) -> None:
        stored.set_trajectory(session, self.name, slot, trajectory)

    def _put(self, slot: Slot, verdict: Verdict, trajectory: str | None = None) -> None:
        """Put a verdict on record, and with it what is learned from.

        What is spent grows by the question's own: else each answer would go over the calls of all.
        """
        with self.desk.store.begin() as session:
            stored.set_verdict(session, self.name, slot, verdict)
            if trajectory is not None and self.plan.learns(slot.part, slot.arm):
                kind = type_of(question_of(slot))
                judged = JudgedTrajectory(
                    trajectory=trajectory, question_type=kind, right=verdict.right
                )
                put_judgement(session, judged)
            cost = stored.cost_of_slot(session, self.name, slot)
        self._purse.more(cost - self._costs.get((slot.arm, slot.question), 0.0))
        self._costs[slot.arm, slot.question] = cost
        self._listener.judged(slot, verdict, self._purse.spent_usd)

    def _asker(self, arm: str) -> Runner:
        with self._lock:
            if arm not in self._askers:
                settings = settings_of(arm, self.plan.settings.ask)
                made = Runner(
                    self.desk.store,
                    self.desk.toolbox,
                    settings=settings,
                    attended=not self.desk.background,
                )
                self._askers[arm] = self._open.enter_context(made)
            return self._askers[arm]

    def _count_cost(self) -> None:
        with self.desk.store.begin() as session:
            self._purse.spent(stored.cost_of(session, self.name, self._begun))

    def over(self) -> bool:
        """Whether the money is spent."""
        return self._purse.empty

    def to_learn(self, batch: int) -> bool:
        """Whether a batch is to be learned from, and was not yet."""
        parts = {one.part for one in self.plan.questions if one.batch == batch}
        if not any(self.plan.learns(part, arm) for part in parts for arm in self.plan.arms(part)):
            return False
        with self.desk.store.begin() as session:
            return batch not in stored.batches(session, self.name)

    def learned(self, batch: int) -> None:
        """Note how the skill library is after a batch."""
        with self.desk.store.begin() as session:
            stored.add_batch(session, self.name, batch, _shelf(session))
        self._count_cost()

    def left(self) -> int:
        """How many answers are left to be judged, of videos that are not left out."""
        arms = [self.plan.arms_of(one) for one in self.plan.questions if self._is_asked(one)]
        names = (one.slot.item["video"] for one in self._results() if not _is_open(one))
        return sum(map(len, arms)) - sum(name not in self.left_out for name in names)

    def _is_asked(self, one: PlannedQuestion) -> bool:
        return one.question.video not in self.left_out

    def has_work(self) -> bool:
        """Whether anything is left to do."""
        return self.left() > 0 or any(self.to_learn(batch) for batch in self.plan.batches)

    def end(self, *, interrupted: bool = False) -> None:
        """Say how the run stands: done, where every question that could be planned is judged."""
        left = self.left()
        state, note = stored.DONE, ""
        if left or interrupted:
            why = "the money is spent" if self.over() else "stopped"
            state, note = stored.STOPPED, f"{why}, {left} answers are left"
        with self.desk.store.begin() as session:
            stored.set_run_state(session, self.name, state, note)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()


def _is_open(one: Result) -> bool:
    return one.verdict is None or one.verdict.failed


def _shelf(session: Session) -> dict[str, object]:
    """The skills that are in use, and those that are banned, with their versions."""
    kept = skill_rows.latest(session)
    return {
        "in_use": {one.skill.name: one.skill.version for one in kept if not one.banned},
        "banned": sorted(one.skill.name for one in kept if one.banned),
    }


def question_of(slot: Slot) -> Question:
    """The question as it is asked: as of its time, and with its first type."""
    item = EvalQuestion.model_validate(slot.item)
    return Question(
        text=item.question,
        videos=(slot.video,),
        options=item.options,
        as_of_ms=item.as_of_ms,
        type=item.types[0] if item.types else None,
    )


def is_worked_on(home: Home, name: str) -> bool:
    """Whether some process of this data directory works on a run."""
    return is_locked(_lock_of(home, name))


def _lock_of(home: Home, name: str) -> Path:
    return home.run / f"eval-{name}.lock"


@contextmanager
def alone(home: Home, name: str) -> Iterator[None]:
    """One process at a time works on a run of this data directory.

    Raises:
        InputError: another one does.
    """
    with _lock_of(home.make(), name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"the run {name!r} is being worked on: wait until it is done"
            ) from error
        yield
