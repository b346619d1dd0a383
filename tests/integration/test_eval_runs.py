"""Runs over a data set: asked once, judged, on record, and gone on with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from agent.strategy import AUTO
from domain.errors import InputError
from domain.evaluation import BASELINE_ARM, WITH_SKILLS, WITHOUT_SKILLS, ErrorType, QuestionPart
from domain.evaluation_options import AblationStage, Protocol
from domain.settings import AskSettings
from domain.time import TimeSpan
from domain.trajectory import QuestionAsked
from evals.dataset import Dataset, EvalVideo
from evals.report import exclusive_run, run_report
from evals.report_formats import tables
from skills.library import find_skill
from store.database import Store
from store.queries.evaluations import learned_videos, list_runs
from store.queries.trajectories import events_of, find_trajectory, list_trajectories
from store.queries.videos import delete_video, find_video
from store.tables.questions import JudgementRow
from tests.support.caption_evaluations import Heard, evaluate, found, houses
from tests.support.library_templates import FilledLibraries
from tests.support.obedient_model import LlmToolbox, obedient, texts_of
from tests.support.openai_server import OpenAIServer

NONE = Protocol.NONE


def ask_everything(store: Store) -> None:
    folder = store.home.root / "houses"
    folder.mkdir()
    evaluate(store, houses(folder), protocol=NONE)


@pytest.fixture
def finished(store: Store, libraries: FilledLibraries) -> Store:
    """A library in which every question about two houses was asked."""
    libraries.fill(store, ask_everything)
    return store


def asked(store: Store) -> list[str]:
    with store.begin() as session:
        return sorted(row.id for row in list_trajectories(session, 1000))


def test_every_question_is_asked_judged_and_on_record(store: Store, tmp_path: Path) -> None:
    heard = Heard()
    ran = evaluate(store, houses(tmp_path), heard=heard, protocol=NONE)
    assert (ran.over, ran.left_out) == (False, {})
    rows = found(store)
    assert [row.slot.question for row in rows] == [
        *("0-0", "0-1", "0-open"),
        *("1-0", "1-1", "1-open"),
    ]
    choices = [row for row in rows if not row.slot.question.endswith("open")]
    verdicts = [row.verdict for row in choices if row.verdict]
    assert [one.right for one in verdicts] == [True] * 4
    assert all(one.judge == "options" and one.top and one.ref300 for one in verdicts)
    assert all(one.cited and one.iou for one in verdicts)
    assert all(row.took.rounds > 0 and row.took.seconds > 0 and row.trajectory for row in rows)
    assert (heard.begun, len(heard.asked)) == ([(6, 0)], 6)
    with store.begin() as session:
        (run,) = list_runs(session)
    assert (run.state, run.planned, run.judged) == ("done", 6, 6)


@pytest.mark.full
def test_baseline_answers_the_same_multiple_choice_beside_it(store: Store, tmp_path: Path) -> None:
    evaluate(store, houses(tmp_path), protocol=NONE, baseline=True)
    plain = [row for row in found(store) if row.slot.arm == BASELINE_ARM]
    assert [row.slot.question for row in plain] == ["0-0", "0-1", "1-0", "1-1"]
    assert all(row.trajectory is None and row.verdict for row in plain)
    assert all(row.verdict.right is not None for row in plain if row.verdict)
    output = run_report(store, "run")
    assert (output.run.state, output.main) == ("done", str(AblationStage.WHOLE))
    assert output.beside[0].effect.questions == 4
    assert {one.arm for one in output.usage} == {output.main}
    before, heard = asked(store), Heard()
    evaluate(store, houses(tmp_path), heard=heard, protocol=NONE, baseline=True)
    assert (asked(store), heard.asked) == (before, [])


@pytest.mark.full
def test_a_file_of_many_videos_is_asked_about_video_by_video(store: Store, tmp_path: Path) -> None:
    single = houses(tmp_path)
    rows = [
        json.loads(line) | {"video": video.name}
        for video in single.videos
        if video.captions
        for line in video.captions.read_text().splitlines()
    ]
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    many = [EvalVideo(name=v.name, captions=path, among=True) for v in single.videos]
    lost = EvalVideo(name="house 9", captions=path, among=True)
    about = single.questions[0].model_copy(update={"id": "lost", "video": "house 9"})
    videos, questions = (*many, lost), (*single.questions, about)
    ran = evaluate(store, Dataset("houses", videos, questions), protocol=NONE)
    assert list(ran.left_out) == ["house 9"]
    assert "none of them 'house 9'" in ran.left_out["house 9"]
    assert len(found(store)) == 6
    assert len({row.slot.video for row in found(store)}) == 2


def test_the_same_command_again_asks_nothing(finished: Store, tmp_path: Path) -> None:
    before, heard = asked(finished), Heard()
    evaluate(finished, houses(tmp_path), heard=heard, protocol=NONE)
    assert (asked(finished), heard.asked, heard.begun) == (before, [], [(6, 6)])


def test_a_run_goes_on_with_the_same_settings_only(finished: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"other settings \(limit, questions, digest\).*--name"):
        evaluate(finished, houses(tmp_path), protocol=NONE, limit=2)
    evaluate(finished, houses(tmp_path), protocol=NONE, limit=2, name="two")
    assert len(found(finished, "two")) == 2


def test_two_processes_do_not_work_on_one_run(store: Store, tmp_path: Path) -> None:
    with exclusive_run(store.home, "run"), pytest.raises(InputError, match="being worked on"):
        evaluate(store, houses(tmp_path), protocol=NONE)


def test_a_question_sees_only_what_was_seen_by_its_time(store: Store, tmp_path: Path) -> None:
    whole = houses(tmp_path, 1)
    early = whole.questions[1].model_copy(update={"as_of_ms": 30_000})
    before = whole.questions[0].model_copy(update={"as_of_ms": 10})
    evaluate(store, type(whole)(whole.name, whole.videos, (early, before)), protocol=NONE)
    seen, unseen = found(store)
    assert seen.trajectory is not None
    with store.begin() as session:
        first = events_of(session, seen.trajectory)[0]
    assert isinstance(first, QuestionAsked)
    assert (first.view.scopes[0].last_clip, first.view.as_of_ms) == (0, 30_000)
    with store.begin() as session:
        assert find_trajectory(session, seen.trajectory).view == first.view
    assert unseen.verdict is not None
    assert (unseen.verdict.top, unseen.verdict.ref300) == (False, 0)


def test_a_video_that_is_not_there_is_left_with_questions(store: Store, tmp_path: Path) -> None:
    whole = houses(tmp_path)
    (tmp_path / "house 1.jsonl").write_text("no captions")
    heard = Heard()
    assert set(evaluate(store, whole, heard=heard, protocol=NONE).left_out) == {"house 1"}
    assert any("house 1" in note for note in heard.notes)
    assert {row.slot.question[0] for row in found(store)} == {"0"}


def test_deleting_a_video_takes_results_to_be_asked_again(finished: Store, tmp_path: Path) -> None:
    with finished.begin() as session:
        delete_video(session, find_video(session, "house 0").id)
    assert {row.slot.question[0] for row in found(finished)} == {"1"}
    heard = Heard()
    evaluate(finished, houses(tmp_path), heard=heard, protocol=NONE)
    assert len(heard.asked) == 3
    assert len(found(finished)) == 6


@pytest.mark.full
def test_auto_learns_on_one_half_and_is_asked_on_the_other(store: Store, tmp_path: Path) -> None:
    evaluate(store, houses(tmp_path, 8), strategies=["plain-rag", AUTO])
    rows = found(store)
    by_part = {part: {r.slot.arm for r in rows if r.slot.part is part} for part in QuestionPart}
    single = {str(AblationStage.WHOLE), "plain-rag"}
    assert by_part == {QuestionPart.LEARN: single, QuestionPart.TEST: {*single, AUTO}}
    learned_from = {r.slot.video for r in rows if r.slot.part is QuestionPart.LEARN}
    skill = find_skill(store, "strategy-where").skill
    assert skill.policy.strategy in (AskSettings().strategy, "plain-rag")
    with store.begin() as session:
        assert set(learned_videos(session, [skill.name])[skill.name]) <= learned_from
    chosen = [row for row in rows if row.slot.arm == AUTO]
    by_skill = [row for row in chosen if row.took.chosen_by]
    assert {row.took.chosen_by for row in by_skill} == {skill.name}
    assert {row.took.strategy for row in by_skill} == {skill.policy.strategy}
    assert {row.took.strategy for row in chosen if row not in by_skill} <= {AskSettings().strategy}
    auto = run_report(store, "run").auto
    assert auto is not None
    # The open questions have no judge.
    assert auto.best.questions == len(chosen) * 2 // 3
    assert sum(one.questions for one in auto.chosen) == len(chosen)
    assert sum(one.learned for one in auto.chosen) == len(by_skill)


@pytest.mark.full
def test_ablation_asks_each_question_with_less_of_the_memory(store: Store, tmp_path: Path) -> None:
    # A question with options, and an open one.
    whole = houses(tmp_path, 1)
    evaluate(
        store, Dataset(whole.name, whole.videos, whole.questions[1:]), stages=list(AblationStage)
    )
    rows = found(store)
    assert {row.slot.arm for row in rows} == {str(stage) for stage in AblationStage}
    for row in rows:
        assert row.trajectory is not None
        with store.begin() as session:
            first = events_of(session, row.trajectory)[0]
        assert isinstance(first, QuestionAsked)
        assert first.setup.settings.memory == row.slot.arm


def test_a_wrong_answer_has_its_fault_on_record(store: Store, tmp_path: Path) -> None:
    whole = houses(tmp_path, 1)
    first = whole.questions[0].model_copy(update={"answer": "B"})
    attic, beyond = TimeSpan.of(32_000, 38_000), TimeSpan.of(900_000, 901_000)
    asked_about: dict[str, dict[str, Any]] = {
        "coarse": {},
        "synthesis": {"spans": (attic,)},
        "absent": {"spans": (beyond,)},
        "unknown": {"spans": ()},
    }
    some = tuple(first.model_copy(update={"id": k, **v}) for k, v in asked_about.items())
    evaluate(store, type(whole)(whole.name, whole.videos, some), protocol=NONE)
    faults = {row.slot.question: row.verdict and row.verdict.fault for row in found(store)}
    assert faults == {
        "coarse": ErrorType.COARSE,
        "synthesis": ErrorType.SYNTHESIS,
        "absent": ErrorType.ABSENT,
        "unknown": ErrorType.UNKNOWN,
    }


def test_questions_of_no_type_go_by_their_words(store: Store, tmp_path: Path) -> None:
    whole = houses(tmp_path, 1)
    bare = whole.questions[0].model_copy(update={"types": ()})
    evaluate(store, type(whole)(whole.name, whole.videos, (bare,)), protocol=NONE)
    assert [one.type for one in run_report(store, "run").scores][1:] == ["fact"]


@pytest.mark.full
def test_a_split_learns_from_some_videos_and_tests_on_others(store: Store, tmp_path: Path) -> None:
    evaluate(store, houses(tmp_path, 4))
    rows = found(store)
    parts = {
        part: {row.slot.question[0] for row in rows if row.slot.part is part}
        for part in QuestionPart
    }
    assert not parts[QuestionPart.LEARN] & parts[QuestionPart.TEST]
    assert all(len(houses) == 2 for houses in parts.values())
    assert {row.slot.arm for row in rows if row.slot.part is QuestionPart.LEARN} == {WITH_SKILLS}
    assert {row.slot.arm for row in rows if row.slot.part is QuestionPart.TEST} == {
        WITH_SKILLS,
        WITHOUT_SKILLS,
    }
    with store.begin() as session:
        learned = set(session.scalars(select(JudgementRow.trajectory_id)))
    assert learned == {row.trajectory for row in rows if row.slot.part is QuestionPart.LEARN}


def judging(request: dict[str, Any]) -> Any:
    """Answers like the obedient model, and rules that house 1 is right."""
    text = texts_of(request)[-1]
    if "You judge whether an answer" in text:
        return {"reason": "it says so", "right": "number 1" in text}
    return obedient(request)


def strong(server: OpenAIServer, **more: Any) -> LlmToolbox:
    return LlmToolbox(server, price={"input": 1000.0, "output": 1000.0}, **more)


def test_model_judges_open_answers_on_record_with_trajectory(store: Store, tmp_path: Path) -> None:
    with OpenAIServer(judging) as server:
        evaluate(store, houses(tmp_path), strong(server), protocol=NONE)
        rulings = [t for r in server.requests for t in texts_of(r) if "You judge" in t]
        heats = {r.get("temperature") for r in server.requests if "You judge" in texts_of(r)[-1]}
    opened = [row for row in found(store) if row.slot.question.endswith("open")]
    assert [row.verdict and row.verdict.right for row in opened] == [False, True]
    assert {row.verdict and row.verdict.judge for row in opened} == {"openai:test"}
    assert len(rulings) == 2
    assert heats == {0.0}
    assert all(row.took.cost_usd > 0 for row in found(store))


def test_open_answers_to_m3_bench_are_judged_by_its_rule_too(store: Store, tmp_path: Path) -> None:
    def lenient(request: dict[str, Any]) -> Any:
        by_its_rule = "You check whether an answer" in texts_of(request)[-1]
        return {"reason": "so it follows", "right": True} if by_its_rule else judging(request)

    data = replace(houses(tmp_path), name="m3-web")
    with OpenAIServer(lenient) as server:
        evaluate(store, data, strong(server), protocol=NONE)
    verdicts = [row.verdict for row in found(store) if row.slot.question.endswith("open")]
    assert [one and (one.right, one.m3_bench) for one in verdicts] == [(False, True), (True, True)]
    report = run_report(store, "run")
    assert report.headline.m3_bench is not None
    assert (report.headline.m3_bench.value, report.headline.m3_bench.of) == (1.0, 2)
    scores = tables(report)[0]
    assert scores.heads[-1] == "right by M3-Bench %"
    assert scores.rows[0][-1].startswith("100.0")


@pytest.mark.full
def test_a_failed_judge_leaves_the_answer_to_be_asked_again(store: Store, tmp_path: Path) -> None:
    broken = True

    def sometimes(request: dict[str, Any]) -> Any:
        if broken and "You judge" in texts_of(request)[-1]:
            return {"nonsense": 1}
        return judging(request)

    with OpenAIServer(sometimes) as server:
        evaluate(store, houses(tmp_path), strong(server), protocol=NONE)
        opened = [row.verdict for row in found(store) if row.slot.question.endswith("open")]
        assert [one and (one.right, one.failed) for one in opened] == [(None, True)] * 2
        before, broken = asked(store), False
        evaluate(store, houses(tmp_path), strong(server), protocol=NONE)
    opened = [row.verdict for row in found(store) if row.slot.question.endswith("open")]
    assert [one and one.right for one in opened] == [False, True]
    assert asked(store) == before


@pytest.mark.full
def test_a_run_stops_when_money_is_spent_and_goes_on(store: Store, tmp_path: Path) -> None:
    with OpenAIServer(judging) as server:
        ran = evaluate(store, houses(tmp_path), strong(server), protocol=NONE, max_cost=0.001)
        assert ran.over
        with store.begin() as session:
            (stopped,) = list_runs(session)
        assert stopped.state == "stopped"
        assert stopped.note.startswith("the money is spent")
        assert 0 < stopped.judged < 6
        ran = evaluate(store, houses(tmp_path), strong(server), protocol=NONE, max_cost=1e6)
        assert not ran.over
        with store.begin() as session:
            (done,) = list_runs(session)
    assert (done.state, done.note, done.judged) == ("done", "", 6)
    assert len(asked(store)) == 6


@pytest.mark.full
def test_a_question_whose_model_is_away_is_tried_again(store: Store, tmp_path: Path) -> None:
    with OpenAIServer(judging) as server:
        pass
    evaluate(store, houses(tmp_path, 1), strong(server), protocol=NONE)
    rows = found(store)
    assert all(row.verdict and row.verdict.failed and row.verdict.right is False for row in rows)
    with OpenAIServer(judging) as server:
        evaluate(store, houses(tmp_path, 1), strong(server), protocol=NONE)
    rows = found(store)
    assert not any(row.verdict and row.verdict.failed for row in rows)
    assert len(asked(store)) == 3
