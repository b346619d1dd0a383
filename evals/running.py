"""A run over a data set: what is missing is ingested, questions are asked, answers judged.

Every evaluation is one, whatever it measures. Its steps are safe to repeat, and all results are
recorded, so that an interrupted run is gone on with. They are a Prefect flow, or plain calls.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from sqlalchemy.orm import Session

from agent.strategy import AUTO
from domain.asking import Question
from domain.errors import BudgetExceeded, InputError, ModelError
from domain.evaluation import BASELINE_ARM, Verdict
from domain.settings import WorkSettings
from domain.skills import JudgedTrajectory
from evals.baseline import Closest
from evals.dataset import EvalQuestion, EvalVideo
from evals.judging import judge, unanswered
from evals.plan import Plan, run_name, settings_of
from evals.report import exclusive_run, run_report
from evals.tables import RunOutcome
from flows.build import build_each
from flows.clip_memory import build_due_windows
from flows.executors import Executor, Step, connect_to_prefect, run_reported
from flows.learning import learn_in_batches, question_type
from flows.watching import Listener, watch_files
from flows.workspace import Workspace
from graphs.runner import DONE, Runner
from memory.captions import CaptionTrack, read_captions, read_tracks, select_track
from memory.import_captions import import_track
from memory.writers import make_writers
from store.progress import SILENT
from store.queries import evaluations as stored
from store.queries import skills as skill_rows
from store.queries.evaluations import Result, Slot
from store.queries.learning import put_judgement
from store.queries.videos import known_video
from store.vector_index import build_index
from strategies.registry import find_strategy

BEFORE = -1
"""The batch number under which the skills before the run are recorded."""
MOST_WORKERS = 4


def run(
    workspace: Workspace,
    plan: Plan,
    listener: EvalListener,
    *,
    name: str = "",
    direct: bool = False,
    workers: int | None = None,
    max_cost: float | None = None,
) -> RunOutcome:
    """Ingest what is missing, ask, judge and learn; resumes an interrupted run.

    Args:
        name: the run's name; by default one of its settings.
        direct: plain calls instead of a Prefect flow.
        workers: questions asked at a time; by default one per processor, at most 4, and one if a
            language model runs in this process: two would share its time.
        max_cost: US dollars after which nothing more is started.

    Raises:
        InputError: the run was started with other settings, or is in progress.
        SetupError: the database or a model is missing.
    """
    name, in_process = name or run_name(plan), workspace.profile.in_process
    count = workers or (1 if in_process else min(MOST_WORKERS, os.cpu_count() or 1))
    with (
        exclusive_run(workspace.home, name),
        EvaluationSteps(workspace, name, plan, listener, max_cost) as steps,
    ):
        steps.begin()
        finished = False
        try:
            api = None
            if not direct and (
                steps.left() > 0
                or any(steps.should_learn_from(batch) for batch in steps.plan.batches)
            ):
                api = connect_to_prefect(workspace.home, listener.said)
            run_evaluation(steps, count, api)
            finished = True
        finally:
            steps.end(interrupted=not finished)
    return RunOutcome(
        **dict(run_report(workspace.store, name)),
        left_out=steps.left_out,
        over=steps.over(),
        imported_s=steps.imported_s,
        asking_s=time.monotonic() - steps.asking_since if steps.asking_since else 0.0,
    )


INGEST = Step(
    name="ingest",
    run_name="ingest {video}",
    call=lambda evaluation, video: evaluation.ingest(video),
)
ASK = Step(
    name="ask",
    run_name="ask {slot.question}",
    call=lambda evaluation, slot: evaluation.answer(slot),
)
LEARN = Step(
    name="learn",
    run_name="learn after batch {batch}",
    call=lambda workspace, batch: list(learn_in_batches(workspace)),  # noqa: ARG005 - its name
)


def run_evaluation(evaluation: EvaluationSteps, workers: int, api: str | None = None) -> None:
    """Ingest every video, then answer batch after batch, and learn from each before the next.

    The evaluation stops early, with everything stored, once the cost limit is reached.

    Args:
        workers: how many questions are answered at a time.
        api: Prefect's server that shows it; None: none does.
    """
    run_reported(
        partial(_run_steps, evaluation),
        evaluation.workspace.store,
        api,
        flow="evaluate",
        run=evaluation.name,
        tag=f"eval:{evaluation.name}",
        settings=WorkSettings(workers=workers, pool="threads"),
    )


def _run_steps(evaluation: EvaluationSteps, executor: Executor) -> None:
    for video in (one.name for one in evaluation.plan.videos):
        if evaluation.over():
            return
        executor.run(INGEST, evaluation=evaluation, video=video)
    for batch in evaluation.batches():
        slots = evaluation.pending(batch)
        executor.run_all(ASK, [{"evaluation": evaluation, "slot": slot} for slot in slots])
        if evaluation.over() and evaluation.pending(batch):
            return
        if evaluation.should_learn_from(batch):
            executor.run(LEARN, workspace=evaluation.workspace, batch=batch)
            evaluation.learned(batch)


class EvalListener(Listener, Protocol):
    """Receives the progress of an evaluation, besides that of its ingestion."""

    def importing(self, video: str, done: int, total: int) -> None:
        """Report how many clips of a captioned video are in memory."""

    def asking(self, total: int, done: int) -> None:
        """Report the start of asking; ``done`` of all arms' questions have verdicts."""

    def judged(self, slot: Slot, verdict: Verdict, cost_usd: float) -> None:
        """Report a verdict; ``cost_usd`` is what the run has cost so far."""


class EvaluationSteps:
    """The steps of a run, on any number of threads. Every outcome is in the store.

    Args:
        max_cost: US dollars that may be spent; a question in progress is finished anyway.
    """

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        plan: Plan,
        listener: EvalListener,
        max_cost: float | None = None,
    ) -> None:
        self.workspace, self.name, self.plan = workspace, name, plan
        self._listener, self._max_cost, self._spent = listener, max_cost, 0.0
        self._open, self._runners = ExitStack(), dict[str, Runner]()
        self._lock = threading.Lock()
        self._videos = {video.name: video for video in plan.videos}
        self.left_out: dict[str, str] = {}
        self._touched_videos: set[str] = set()
        self._tracks: dict[Path, tuple[CaptionTrack, ...]] = {}
        self._costs: dict[tuple[str, str], float] = {}
        """The cost of each question, by arm and id, that the budget includes."""
        self.imported_s: float | None = 0.0
        self.asking_since = 0.0

    def begin(self) -> None:
        """Record the run, or resume it.

        Raises:
            InputError: it was started with other settings.
        """
        with self.workspace.store.begin() as session:
            recorded = stored.begin_run(session, self.name, self.plan.settings)
            if recorded != self.plan.settings:
                changed = ", ".join(n for n, v in recorded if v != getattr(self.plan.settings, n))
                raise InputError(
                    f"the run {self.name!r} was begun with other settings ({changed}): "
                    "give this one a name of its own with --name"
                )
            stored.set_run_state(session, self.name, stored.RUNNING)
            stored.add_batch(session, self.name, BEFORE, _skill_state(session))
        self._count_cost()

    def ingest(self, video: str) -> None:
        """Ingest a video and plan its questions; a video that fails is left out."""
        settings = self.plan.settings
        asked = dict.fromkeys((settings.ask.strategy, *settings.strategies))
        named = [find_strategy(name) for name in asked if name != AUTO]

        def progress(name: str) -> Callable[[int, int], None]:
            return partial(self._listener.importing, f"{video}: {name}")

        try:
            known = self._ingested(self._videos[video])
            build_each(self.workspace, known, named, progress)
        except (InputError, ModelError) as error:
            self.left_out[video] = str(error)
            self._count_cost()
            self._listener.said(f"homer: {video}: {error}")
            return
        planned = [item for item in self.plan.questions if item.question.video == video]
        slots = [
            Slot(
                arm,
                item.question.id,
                item.place,
                item.part,
                item.batch,
                known,
                item.question.model_dump(mode="json"),
            )
            for item in planned
            for arm in self.plan.arms_of(item)
        ]
        with self.workspace.store.begin() as session:
            stored.plan_slots(session, self.name, slots)
        self._count_cost()

    def _ingested(self, video: EvalVideo) -> str:
        """Ingest a video and return its id.

        Raises:
            InputError: the video cannot be read.
            ModelError: some clips failed and must be tried again.
        """
        if video.file is None:
            if video.captions is None:
                raise InputError("it is not there")
            workspace, profile = self.workspace, self.workspace.profile
            if not video.among:
                track = read_captions(video.captions)
            else:
                with self._lock:
                    if video.captions not in self._tracks:
                        self._tracks[video.captions] = read_tracks(video.captions)
                track = select_track(video.captions, self._tracks[video.captions], video.name)
            self._touched_videos.add(track.id)
            with workspace.store.begin() as session:
                if known_video(session, track.id) is not None:
                    # What was in memory before took no time to import: the time says nothing.
                    self.imported_s = None
            started = time.monotonic()
            imported = import_track(
                workspace.store,
                track,
                make_writers(workspace.toolbox, profile),
                workspace.toolbox,
                workspace.settings,
                build_windows=build_due_windows,
                title=video.name,
                profile=profile.name,
                model_names={"text": profile.text_name, "writer": profile.writer},
                progress=partial(self._listener.importing, video.name),
            )
            build_index(workspace.store, SILENT)
            if self.imported_s is not None:
                self.imported_s += time.monotonic() - started
            return imported.id
        (outcome,) = watch_files(self.workspace, [video.file], self._listener, direct=True)
        if outcome.failure is not None:
            raise outcome.failure
        if outcome.video:
            self._touched_videos.add(outcome.video)
        if not outcome.video or outcome.failed:
            raise ModelError("clips of it are left to try again")
        return outcome.video

    def batches(self) -> Sequence[int]:
        """Return the batches, in order, after reporting how many questions are left."""
        results = self._results()
        self.asking_since = time.monotonic()
        self._listener.asking(len(results), sum(not _is_open(result) for result in results))
        return self.plan.batches

    def pending(self, batch: int) -> Sequence[Slot]:
        """Return the questions of a batch without a verdict, or with a failed one."""
        unjudged = [
            result for result in self._results() if result.slot.batch == batch and _is_open(result)
        ]
        return [
            result.slot
            for result in sorted(unjudged, key=lambda result: (result.slot.place, result.slot.arm))
        ]

    def _results(self) -> list[Result]:
        with self.workspace.store.begin() as session:
            return stored.run_results(session, self.name)

    def answer(self, slot: Slot) -> None:
        """Have a question answered and judged, unless the budget is spent."""
        if self.over():
            return
        with self.workspace.store.begin() as session:
            result = stored.slot_result(session, self.name, slot)
            cost = stored.slot_cost(session, self.name, slot)
        if not _is_open(result):
            return
        question = EvalQuestion.model_validate(slot.item)
        if slot.arm == BASELINE_ARM:
            closest = Closest(self.workspace.store, self.workspace.toolbox.text)
            self._put(slot, closest.verdict(question, slot.video))
            return
        self._costs.setdefault((slot.arm, slot.question), cost)
        self.workspace.give_way()
        trajectory = result.trajectory
        try:
            if trajectory is None:
                asked = question_of(slot)

                def link(session: Session, name: str) -> None:
                    stored.set_trajectory(session, self.name, slot, name)

                trajectory = self._runner(slot.arm).ask(asked, linked=link).trajectory_id
            elif result.state != DONE:
                # An interrupted question resumes from its last finished step.
                self._runner(slot.arm).resume(trajectory)
        except (InputError, ModelError, BudgetExceeded) as error:
            self._put(slot, unanswered(error, begun=result.trajectory is not None))
            return
        of_m3 = self.plan.settings.dataset.startswith("m3-")
        verdict = judge(self.workspace, question, slot.video, trajectory, m3_bench=of_m3)
        self._put(slot, verdict, trajectory)

    def _put(self, slot: Slot, verdict: Verdict, trajectory: str | None = None) -> None:
        """Record a verdict, and with it the judgement to learn from."""
        with self.workspace.store.begin() as session:
            stored.set_verdict(session, self.name, slot, verdict)
            if trajectory is not None and self.plan.learns(slot.part, slot.arm):
                kind = question_type(question_of(slot))
                judged = JudgedTrajectory(
                    trajectory=trajectory, question_type=kind, right=verdict.right
                )
                put_judgement(session, judged)
            cost = stored.slot_cost(session, self.name, slot)
        with self._lock:
            # The cost grows by the question's own: recounting all calls for each answer would be
            # slow.
            self._spent += cost - self._costs.get((slot.arm, slot.question), 0.0)
            self._costs[slot.arm, slot.question] = cost
        self._listener.judged(slot, verdict, self._spent)

    def _runner(self, arm: str) -> Runner:
        with self._lock:
            if arm not in self._runners:
                settings = settings_of(arm, self.plan.settings.ask)
                runner = Runner(
                    self.workspace.store,
                    self.workspace.searching,
                    settings=settings,
                    attended=not self.workspace.background,
                )
                self._runners[arm] = self._open.enter_context(runner)
            return self._runners[arm]

    def _count_cost(self) -> None:
        with self.workspace.store.begin() as session:
            cost = stored.run_cost(session, self.name, self._touched_videos)
        with self._lock:
            # Answers are added by other threads meanwhile: it never falls.
            self._spent = max(self._spent, cost)

    def over(self) -> bool:
        return self._max_cost is not None and self._spent >= self._max_cost

    def should_learn_from(self, batch: int) -> bool:
        parts = {planned.part for planned in self.plan.questions if planned.batch == batch}
        if not any(self.plan.learns(part, arm) for part in parts for arm in self.plan.arms(part)):
            return False
        with self.workspace.store.begin() as session:
            return batch not in stored.learned_batches(session, self.name)

    def learned(self, batch: int) -> None:
        """Record the state of the skill library after a batch."""
        with self.workspace.store.begin() as session:
            stored.add_batch(session, self.name, batch, _skill_state(session))
        self._count_cost()

    def left(self) -> int:
        """Count the answers still to be judged, without videos that are left out."""
        arms = [
            self.plan.arms_of(planned)
            for planned in self.plan.questions
            if planned.question.video not in self.left_out
        ]
        names = (planned.slot.item["video"] for planned in self._results() if not _is_open(planned))
        return sum(map(len, arms)) - sum(name not in self.left_out for name in names)

    def end(self, *, interrupted: bool = False) -> None:
        """Record the state of the run: done if every planned question is judged."""
        left = self.left()
        state, note = stored.DONE, ""
        if left or interrupted:
            why = "the money is spent" if self.over() else "stopped"
            state, note = stored.STOPPED, f"{why}, {left} answers are left"
        with self.workspace.store.begin() as session:
            stored.set_run_state(session, self.name, state, note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()


def _is_open(result: Result) -> bool:
    return result.verdict is None or result.verdict.failed


def _skill_state(session: Session) -> dict[str, object]:
    """Return the skills in use and those banned, with their versions."""
    skills = skill_rows.latest_versions(session)
    return {
        "in_use": {row.skill.name: row.skill.version for row in skills if not row.banned},
        "banned": sorted(row.skill.name for row in skills if row.banned),
    }


def question_of(slot: Slot) -> Question:
    """Return the question as it is asked: as of its time, and with its first type."""
    item = EvalQuestion.model_validate(slot.item)
    return Question(
        text=item.question,
        videos=(slot.video,),
        options=item.options,
        as_of_ms=item.as_of_ms,
        type=item.types[0] if item.types else None,
    )
