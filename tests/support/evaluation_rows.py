"""Rows of evaluations for tests."""

from __future__ import annotations

from typing import Any

from domain.evaluation import QuestionPart, RunSettings, Verdict
from domain.evaluation_options import Protocol
from store.database import Store
from store.queries.evaluations import Slot, begin_run, plan_slots, set_trajectory, set_verdict

RIGHT = Verdict(right=True, judge="options")


def run_settings(**more: Any) -> RunSettings:
    """Settings of a run, unless said otherwise without learning."""
    given: dict[str, Any] = {"dataset": "own", "profile": "local", "protocol": Protocol.NONE}
    return RunSettings(**(given | {"questions": 1, "digest": "d"} | more))


def slot(question: str, video: str, **more: Any) -> Slot:
    item = {"id": question, "video": "clip", "question": "Who sings?", "answer": "Ann"}
    given: dict[str, Any] = {
        "arm": "perceptual buffer",
        "place": 0,
        "part": QuestionPart.TEST,
        "batch": 0,
    }
    return Slot(question=question, video=video, **(given | {"item": item} | more))


def evaluated(
    store: Store, trajectory: str, video: str, run: str = "run", verdict: Verdict = RIGHT
) -> Slot:
    """A result of the run ``run``, answered by a trajectory that is there."""
    made = slot(f"q-{trajectory}", video)
    with store.begin() as session:
        begin_run(session, run, run_settings())
        plan_slots(session, run, [made])
        set_trajectory(session, run, made, trajectory)
        set_verdict(session, run, made, verdict)
    return made
