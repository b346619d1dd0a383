"""What a run has cost, what was learned from a video's own questions, and runs that broke off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from domain.calls import CallRecord
from domain.errors import ModelError
from domain.evaluation import Verdict
from domain.evaluation_options import Protocol
from evals.records import run_report
from evals.running import BEFORE
from memory.captions import CaptionTrack
from store.database import Store
from store.queries.calls import add_call
from store.queries.evaluations import learned_batches, run_cost, run_results, slot_cost
from store.queries.videos import add_video
from tests.support.caption_evaluations import evaluate, houses
from tests.support.evaluation_rows import evaluated
from tests.support.full_video import ask, fill
from tests.support.memory import clip
from tests.support.simulated_learner import HELPFUL, SimulatedAsker, world

A, B = "a" * 16, "b" * 16


@pytest.fixture
def two(store: Store, tampered: None) -> Store:
    """Two videos; a run over the first, with an answer."""
    fill(store, A)
    fill(store, B, "other")
    return store


def called(store: Store, usd: float, **more: Any) -> None:
    given: dict[str, Any] = {"purpose": "write", "tokens_in": 1, "tokens_out": 1, "ms": 1}
    call = CallRecord(
        request_hash=json.dumps(more),
        profile="p",
        model="m",
        messages=[{"role": "user", "content": "hello"}],
        reply={"text": "x"},
        error=None,
        cost_usd=usd,
        **(given | more),
    )
    with store.begin() as session:
        add_call(session, call)


def cost(store: Store, run: str = "run") -> float:
    with store.begin() as session:
        return run_cost(session, run)


def test_a_run_costs_what_its_answers_and_judges_cost(two: Store) -> None:
    ask(two, "t1", "why?", A)
    ask(two, "t2", "why?", A)
    evaluated(two, "t1", A)
    before = cost(two)
    called(two, 1.0, trajectory_id="t1")
    called(two, 2.0, trajectory_id="t1", purpose="judge")
    called(two, 4.0, trajectory_id="t2")
    assert cost(two) - before == 3.0


def test_and_what_watching_its_videos_and_writing_skills_has_cost_since(two: Store) -> None:
    ask(two, "t1", "why?", A)
    called(two, 1.0, video_id=A, clip=0)
    evaluated(two, "t1", A)
    before = cost(two)
    called(two, 2.0, video_id=A, clip=1)
    called(two, 4.0, video_id=B, clip=1)
    called(two, 8.0, purpose="skill")
    assert cost(two) - before == 10.0


def test_what_a_question_has_cost_is_its_answer_and_its_judges(two: Store) -> None:
    ask(two, "t1", "why?", A)
    evaluated(two, "t1", A)
    with two.begin() as session:
        slot = run_results(session, "run")[0].slot
        before = slot_cost(session, "run", slot)
    called(two, 1.0, trajectory_id="t1")
    called(two, 2.0, trajectory_id="t1", purpose="judge")
    called(two, 4.0, video_id=A, clip=1)
    with two.begin() as session:
        assert slot_cost(session, "run", slot) - before == 3.0


def test_answers_are_counted_one_by_one_and_the_money_ends_where_it_would(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many answers there are, all calls are gone over as often."""
    counted: list[float] = []
    costs = iter([0.5] * 99)

    def total(session: Session, run: str, videos: Any = ()) -> float:
        counted.append(run_cost(session, run, videos))
        return counted[-1]

    def judged(_one: Any, _question: Any, _video: str, trajectory: str, **_: Any) -> Verdict:
        called(store, next(costs), trajectory_id=trajectory, purpose="judge")
        return Verdict(right=True, judge="test")

    monkeypatch.setattr("evals.running.Runner", SimulatedAsker)
    monkeypatch.setattr("evals.running.judge", judged)
    monkeypatch.setattr("evals.running.stored.run_cost", total)
    data = world(tmp_path, videos=2)
    assert evaluate(store, data, protocol=Protocol.NONE, max_cost=1.75, workers=1).over
    assert len(counted) == 4  # at the beginning, after each video, and for the report
    assert cost(store) == 2.0


def test_what_a_video_has_cost_counts_though_it_is_left_out(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a run whose videos all fail would go on for ever, whatever may be spent."""
    tried: list[str] = []

    def fail(store: Store, track: CaptionTrack, *_: Any, **output: Any) -> None:
        tried.append(str(output["title"]))
        with store.begin() as session:
            add_video(session, track.video(), [clip(0)], {})
        called(store, 5.0, video_id=track.id, clip=0)
        raise ModelError("the writer is away")

    monkeypatch.setattr("evals.running.import_track", fail)
    ran = evaluate(store, houses(tmp_path), protocol=Protocol.NONE, max_cost=4.0)
    assert (ran.over, tried, set(ran.left_out)) == (True, ["house 0"], {"house 0"})


@pytest.mark.full
def test_a_skill_that_was_learned_from_the_tested_videos_is_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evals.running.Runner", SimulatedAsker)
    evaluate(store, world(tmp_path, videos=2), name="online", protocol=Protocol.ONLINE)
    evaluate(store, world(tmp_path, videos=2), name="split")
    found = run_report(store, "split")
    leaked = [row for row in found.questions if row.part == "test" and row.leaked]
    assert leaked
    assert all(HELPFUL in row.leaked for row in leaked if row.types == ("order",))
    output = f"{len(leaked)} tested questions had a skill that was learned from questions about"
    assert any(output in remark for remark in found.remarks)
    with store.begin() as session:
        assert HELPFUL in learned_batches(session, "split")[BEFORE]["in_use"]
    assert {one.name: one.since for one in found.skills}[HELPFUL] == BEFORE
