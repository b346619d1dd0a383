"""Measuring from end to end: memory is made once, questions are asked, answers are judged."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from typer.testing import CliRunner, Result

import strategies
from cli.main import app
from domain.calls import CallRecord
from domain.errors import ModelError
from domain.evaluation import Verdict
from domain.evaluation_options import Protocol
from evals.baseline import Baseline, Plain
from evals.clips import silent_clips
from evals.report import run_report
from evals.running import BEFORE
from memory.captions import CaptionTrack
from models.toolbox import Toolbox
from store.database import Store
from store.home import Home
from store.queries.evaluations import learned_batches, run_cost, run_results, slot_cost
from store.queries.trajectories import add_call
from store.queries.videos import add_video
from tests.support.asking import PARTY, WordToolbox
from tests.support.caption_evaluations import evaluate, houses
from tests.support.evaluation_rows import evaluated
from tests.support.full_video import ask, fill
from tests.support.memory import clip
from tests.support.remembered import Said, watch
from tests.support.simulated_learner import HELPFUL, SimulatedAsker, world

WEEK = (
    (1, 36_000, "speech", "Ann", "The keys are in the blue drawer now."),
    (1, 36_010, "caption", None, "I put the keys into the blue drawer."),
    (1, 40_000, "speech", "Bob", "We should bake an apple cake for the party."),
    (1, 40_020, "caption", None, "Bob writes apples and flour on a list."),
    (2, 30_000, "speech", "Ann", "The keys are on the kitchen shelf now."),
    (2, 30_010, "caption", None, "I put the keys onto the kitchen shelf."),
    (2, 50_000, "speech", "Bob", "The cake burned, so we ordered pizza."),
)


def asked(name: str, text: str, answer: str, as_of: int, at: tuple[int, int]) -> dict[str, Any]:
    options = ["In the blue drawer", "On the kitchen shelf", "In the car", "In Bob's pocket"]
    target = {"day": at[0], "start": at[1], "end_day": at[0], "end": at[1]}
    moment = {"day": 1 + as_of // 86_400, "second": as_of % 86_400}
    output = {"question": text, "options": options, "answer": answer, "as_of": moment}
    return {"id": name, "type": "EntityLog", "targets": [target], **output}


QUESTIONS = [
    asked("1", "Where are the keys?", "A", 45_000, (1, 36_005)),
    asked("2", "Where did I put the keys last time?", "B", 86_400 + 60_000, (2, 30_005)),
]


@pytest.fixture
def week(tmp_path: Path) -> Path:
    """A folder like that of the data set."""
    folder = tmp_path / "week"
    folder.mkdir()
    lines = (
        {"day": d, "start": s, "end": s + 4, "kind": k, "text": t} | ({"speaker": w} if w else {})
        for d, s, k, w, t in WEEK
    )
    with gzip.open(folder / "captions.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    (folder / "questions.json").write_text(json.dumps({"source": "us", "questions": QUESTIONS}))
    return folder


@pytest.fixture
def homer(home: Home, database: str, toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs ``homer eval`` on a fresh database, with models that are loaded already."""
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    monkeypatch.setattr("flows.workspace.Toolbox", lambda _profile, _weights: toolbox)
    return lambda *arguments: CliRunner().invoke(app, ["eval", *arguments])


def report(result: Result) -> dict[str, Any]:
    """The report, after seeing that the exit code is what its bars say; rows are by name."""
    assert result.stdout, result.stderr
    found: Any = json.loads(result.stdout)
    (found,) = found if isinstance(found, list) else [found]
    met = all(bar["met"] for bar in found["bars"])
    assert result.exit_code == (0 if met else 1), result.stderr
    tables = found["tables"].items()
    found["tables"] = {t: {row["name"]: row["figures"] for row in rows} for t, rows in tables}
    return dict(found)


def test_a_week_is_imported_once_and_asked_as_of_each_questions_time(
    homer: Callable[..., Result], week: Path, tmp_path: Path
) -> None:
    out = tmp_path / "answers.jsonl"
    first = report(homer("egolife", str(week), "--out", str(out), "--json"))
    answered = first["tables"]["answered by"]
    assert answered["Homer"]["right"]["value"] == answered["Homer"]["top 1"]["value"] == 1
    assert answered["BM25 of words"]["top 3"]["value"] == 1
    assert {row["right"]["of"] for row in answered.values()} == {first["questions"]} == {2}
    assert {bar["name"].split(",")[0] for bar in first["bars"]} >= {"import", "asking"}

    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["id"]: line["option"] for line in lines} == {"1": "A", "2": "B"}
    (early,) = [line for line in lines if line["id"] == "1"]
    assert all(one["end_s"] <= 45_000 for one in early["retrieved"])

    again = homer("egolife", str(week), "--out", str(out))
    assert again.exit_code in (0, 1), again.stderr
    for part in ("the week was in memory already", "BM25 of words", "EntityLog: baseline"):
        assert part in again.stdout
    assert "import, seconds" not in again.stdout
    assert len(out.read_text().splitlines()) == 2
    assert homer("report", first["run"]).exit_code == 0

    notes = tmp_path / "notes.txt"
    notes.write_text("mine\nand mine\n")
    assert "name another output" in homer("egolife", str(week), "--out", str(notes)).stderr
    assert notes.read_text() == "mine\nand mine\n"
    assert "is a folder" in homer("egolife", str(week), "--out", str(tmp_path)).stderr


@pytest.mark.full
def test_what_each_part_of_a_strategy_adds_is_shown(
    homer: Callable[..., Result], week: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra = Path(__file__).parents[1] / "support" / "extra_strategies"
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(extra)])
    done = homer("egolife", str(week), "--strategy", "first-lines,plain-rag", "--ablate")
    assert done.exit_code in (0, 1), done.output
    rows = [line.split(" ")[0] for line in done.stdout.splitlines()]
    assert {"first-lines", "first-lines-without-rest", "plain-rag"} <= {*rows}
    plain = homer("egolife", str(week), "--strategy", "first-lines", "--limit", "1")
    assert "without-rest" not in plain.stdout
    assert "1 question asked in" in plain.stdout


def short_videos(folder: Path) -> Path:
    """Two short captioned videos in one file, and a question about each."""
    folder.mkdir()
    lines, questions = [], []
    for video, doing in (("1", "holds a pan"), ("2", "feeds a dog")):
        lines += [
            {"video": video, "start": at, "end": at + 1, "text": f"The lady {doing}."}
            for at in range(0, 40, 2)
        ]
        output = {"id": f"{video}_0", "video": video, "type": "TN", "answer": video.translate(_AB)}
        options = ["hold a pan", "feed a dog", "read a book", "swim", "dance"]
        asked = "what does the lady do after sitting down?"
        questions.append({**output, "question": asked, "options": options})
    with gzip.open(folder / "captions.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    (folder / "questions.json").write_text(json.dumps({"questions": questions}))
    return folder


_AB = str.maketrans("12", "AB")


@pytest.mark.full
def test_several_data_sets_are_measured_in_one_table(
    homer: Callable[..., Result], week: Path, tmp_path: Path
) -> None:
    sets = (f"egolife={week}", f"nextqa={short_videos(tmp_path / 'short')}")
    done = homer("all", *sets, "--json")
    assert done.exit_code == 0, done.stderr
    found = {(one["dataset"], one["measure"]): one for one in json.loads(done.stdout)}
    assert [name for name, _ in found] == ["egolife"] * 5 + ["nextqa"] * 3
    assert found["egolife", "right option"]["ours"]["value"] == 1
    short = found["nextqa", "right option, all"]
    assert (short["ours"]["of"], short["ours"]["value"]) == (2, 1)
    assert short["above"] == 1 - short["plain"]["value"]
    shown = homer("all", sets[1])
    assert "baseline %" in shown.stdout
    assert "right option, temporal" in shown.stdout


@pytest.mark.parametrize("given", ["nextqa", "=x", "nextqa=", "nothing=x", "nextqa=missing"])
def test_a_data_set_that_is_not_there_is_said(homer: Callable[..., Result], given: str) -> None:
    done = homer("all", given)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


@pytest.mark.full
@pytest.mark.timeout(600)
def test_clips_are_watched_once_and_asked_about(
    homer: Callable[..., Result], shared_media: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copy(shared_media("mie_sample.mp4"), tmp_path)
    every = json.loads(shared_media("questions.json").read_text())["questions"]
    mine = [one for one in every if one["video"] == "mie_sample.mp4"]
    gone = {**mine[0], "id": "gone-01", "video": "gone.mp4"}
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"questions": [*mine, gone]}))

    found = report(homer("local", str(path), "--json"))
    assert (found["absent"], found["questions"]) == (["gone.mp4"], len(mine))
    assert [*found["tables"]["by clip"]] == ["mie_sample.mp4", "all"]
    assert found["tables"]["by clip"]["all"]["cited"]["value"] == 1

    again = homer("local", str(path))
    assert "mie_sample.mp4" in again.stdout
    assert "absent, not asked about: gone.mp4" in again.stdout
    assert f"{len(mine)} questions asked in" in again.stdout
    assert "mie_sample: " not in again.stderr

    first = report(homer("first", str(tmp_path), "--set", "first", "--json"))["tables"]["by kind"][
        "all"
    ]
    assert (first["right"], first["rightly declined"]) == (2, 1)
    shown = homer("first", str(tmp_path))
    assert "rightly declined" in shown.stdout
    assert "absent, not asked about: " in shown.stdout
    assert "everyday_work: none of its clips is in" in shown.stderr
    assert "0 of 0 clips in which nothing is said have a line" in shown.stdout


def test_clips_without_speech_are_counted_with_those_that_have_another_line(store: Store) -> None:
    heard = Said("Heard: music.", source="sound")
    read = Said("Good morning", source="subtitle")
    watch(store, PARTY, [[Said("Good morning"), heard], [heard], [], [read]])
    assert silent_clips(store, [PARTY]) == (2, 1)


def test_what_is_no_video_is_named(homer: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "notes.mp4").write_text("these are words")
    output = {"id": "1", "video": "notes.mp4", "question": "Who?", "answer": "Ann"}
    path = tmp_path / "questions.json"
    path.write_text(json.dumps({"questions": [{**output, "spans_s": [[0, 1]]}]}))
    done = homer("local", str(path))
    assert done.exit_code == 4
    assert "homer: notes.mp4: " in done.stderr


def test_a_baseline_of_an_unknown_video_has_nothing(store: Store) -> None:
    nothing = Baseline.of(store, "0" * 16, WordToolbox().text)
    assert nothing.answer("Who?", ("Ann", "Bob"), 100) == Plain("A")


# What a run has cost, what was learned from a video's own questions, and runs that broke off.


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
