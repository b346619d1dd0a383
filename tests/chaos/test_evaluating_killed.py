"""An evaluation that is killed gives, run again, the same report, and asks no question twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from evals.report import run_report
from store.database import Store, open_store
from store.home import Home
from store.queries.trajectories import list_trajectories
from store.tables.questions import JudgementRow
from tests.support.caption_evaluations import evaluate, houses
from tests.support.killed_evaluations import POINTS, killed_evaluating
from tests.support.obedient_model import LlmToolbox, obedient, texts_of
from tests.support.openai_server import OpenAIServer

# That a run goes on where it was stopped is in test_eval_runs.
pytestmark = pytest.mark.full

OF_THE_CLOCK = {"trajectory", "seconds"}
LATER = ("before a verdict", 5)
"""Also when some questions are done."""


def answers(request: dict[str, Any]) -> Any:
    if "You judge whether" in texts_of(request)[-1]:
        return {"reason": "it says so", "right": True}
    return obedient(request)


def output(store: Store) -> tuple[list[dict[str, Any]], dict[str, Any], list[str]]:
    """The report but for clocks and ids: rows, figures, and what was learned from."""
    rows = [row.model_dump(exclude=OF_THE_CLOCK) for row in run_report(store, "run").questions]
    report = run_report(store, "run").model_dump(exclude={"run", "usage", "questions"})
    with store.begin() as session:
        learned = sorted(map(str, session.scalars(select(JudgementRow.right))))
    return rows, report, learned


def asked(store: Store) -> Counter[str]:
    """How often each question was asked of each memory, in which arm."""
    with store.begin() as session:
        return Counter(row.question.text for row in list_trajectories(session, 1000))


Whole = tuple[Any, Counter[str], int]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, make_database: Any) -> Whole:
    """What comes of a run that nobody disturbs, and the number of requests it makes."""
    folder = tmp_path_factory.mktemp("whole")
    home = Home(tmp_path_factory.mktemp("home")).make()
    with open_store(home, make_database()) as store, OpenAIServer(answers) as server:
        evaluate(store, houses(folder), LlmToolbox(server), workers=1)
        return output(store), asked(store), len(server.requests)


PLACES = [(point, 1) for point in POINTS]


@pytest.mark.parametrize(("point", "at"), [*PLACES, LATER])
def test_a_killed_evaluation_ends_as_if_nothing_had_happened(
    store: Store, whole: Whole, tmp_path: Path, point: str, at: int
) -> None:
    report, questions, requests = whole
    with OpenAIServer(answers) as server:
        code = killed_evaluating(store.url, store.home.root, server.base_url, tmp_path, point, at)
        assert code == -9, f"the point was not reached: {code}"
        evaluate(store, houses(tmp_path), LlmToolbox(server), workers=1)
        assert (asked(store), output(store)) == (questions, report)
        assert len(server.requests) == requests
