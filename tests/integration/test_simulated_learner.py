"""A learner whose outcomes are planted: it finds those patterns and no others, and it helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.evaluation import WITH_SKILLS, WITHOUT_SKILLS, QuestionPart
from domain.evaluation_options import Protocol
from domain.skills import Signal
from evals.report import run_report
from evals.tables import AnsweredQuestion, RunReport
from skills.learn import PROMOTED_AT
from skills.library import list_skills
from store.database import Store, open_store
from store.home import Home
from store.queries.evaluations import learned_batches
from tests.support.caption_evaluations import evaluate
from tests.support.simulated_learner import HARMFUL, HELPFUL, SimulatedAsker, comes_right, world


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]) -> Store:
    """A library in which the world was learned from and tested on, opened anew afterwards."""
    home, url = Home(tmp_path_factory.mktemp("simulated")).make(), make_database()
    with pytest.MonkeyPatch.context() as patch, open_store(home, url) as store:
        patch.setattr("evals.running.Runner", SimulatedAsker)
        evaluate(store, world(tmp_path_factory.mktemp("world")))
    return open_store(home, url)


@pytest.fixture(scope="module")
def rows(learned: Store) -> list[AnsweredQuestion]:
    return list(run_report(learned, "run").questions)


@pytest.fixture(scope="module")
def report(learned: Store) -> RunReport:
    return run_report(learned, "run")


def of(rows: list[AnsweredQuestion], arm: str, part: QuestionPart) -> list[AnsweredQuestion]:
    return [row for row in rows if (row.arm, row.part) == (arm, part)]


def signalled(row: AnsweredQuestion) -> list[tuple[str, Signal]]:
    """What the script lets an answer say about its search."""
    kind = row.types[0]
    if not row.right:
        return [(kind, Signal.ERROR), (kind, Signal.DECOMPOSE_MISS)]
    wins = {"order": [Signal.SEARCH_WIN], "count": [Signal.HARD_WIN], "plain": []}
    return [(kind, signal) for signal in wins[kind]]


def test_only_patterns_that_recur_are_skills(learned: Store, rows: list[AnsweredQuestion]) -> None:
    seen = Counter(
        one for row in of(rows, WITH_SKILLS, QuestionPart.LEARN) for one in signalled(row)
    )
    recurring = {
        f"{signal}-{kind}".replace("_", "-")
        for (kind, signal), count in seen.items()
        if count >= PROMOTED_AT
    }
    assert {HELPFUL, HARMFUL} <= recurring
    assert {one.skill.name for one in list_skills(learned)} == recurring
    assert not any(name.endswith("plain") for name in recurring)


def test_a_skill_is_given_to_questions_like_its_own(rows: list[AnsweredQuestion]) -> None:
    for row in of(rows, WITH_SKILLS, QuestionPart.TEST):
        assert (HELPFUL in row.skills) == (row.types == ("order",)), row.question
        assert all(name.endswith(row.types[0]) for name in row.skills), row.question
    assert not any(row.skills for row in of(rows, WITHOUT_SKILLS, QuestionPart.TEST))


def test_what_hurts_is_banned_by_the_batch_that_shows_it(
    learned: Store, rows: list[AnsweredQuestion], report: RunReport
) -> None:
    with learned.begin() as session:
        shelves = learned_batches(session, "run")
    assert HARMFUL in shelves[0]["in_use"]
    assert len([row for row in rows if row.batch == 1 and HARMFUL in row.skills]) >= 5
    assert HARMFUL in shelves[1]["banned"]
    assert not any(HARMFUL in row.skills for row in of(rows, WITH_SKILLS, QuestionPart.TEST))
    uses = {one.name: one for one in report.skills}
    assert (uses[HARMFUL].since, uses[HARMFUL].banned_after) == (0, 1)
    assert (uses[HELPFUL].since, uses[HELPFUL].banned_after) == (0, None)


def test_held_out_accuracy_rises_by_the_planted_effect_and_by_nothing_else(
    rows: list[AnsweredQuestion], report: RunReport
) -> None:
    tested = of(rows, WITHOUT_SKILLS, QuestionPart.TEST)
    gained = [
        comes_right(row.types[0], row.question, {HELPFUL})
        and not comes_right(row.types[0], row.question, set())
        for row in tested
    ]
    found = report.effect
    assert found is not None
    assert found.difference is not None
    assert (found.better, found.worse) == (sum(gained), 0)
    assert found.difference.value == pytest.approx(sum(gained) / len(tested))
    assert found.difference.low > 0.05
    assert found.p < 0.01


def test_nothing_is_lost_over_a_restart(learned: Store, report: RunReport) -> None:
    with open_store(learned.home, learned.url) as again:
        assert (list_skills(again), run_report(again, "run")) == (list_skills(learned), report)


@pytest.mark.full
def test_online_it_gets_better_as_it_goes_on(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evals.running.Runner", SimulatedAsker)
    evaluate(store, world(tmp_path, videos=5), protocol=Protocol.ONLINE)
    curve = {(p.arm, p.batch): p for p in run_report(store, "run").curve}
    first, last = curve[WITH_SKILLS, 0], curve[WITH_SKILLS, 3]
    assert (first.right, first.given, first.in_use) == (curve[WITHOUT_SKILLS, 0].right, 0, 0)
    assert last.given > 0
    assert last.in_use > 0
    assert last.right is not None
    without = curve[WITHOUT_SKILLS, 3].right
    assert without is not None
    assert last.right.value > without.value
