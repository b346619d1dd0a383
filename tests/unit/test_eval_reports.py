"""What rows come to: figures, tables, pairs, curves, and pages that nothing can break out of."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.strategy import AUTO
from domain.evaluation import (
    BASELINE_ARM,
    WITH_SKILLS,
    WITHOUT_SKILLS,
    ErrorType,
    EvaluationRun,
    QuestionPart,
    RunSettings,
)
from domain.evaluation_options import AblationStage, Protocol
from evals.report import report
from evals.report_formats import as_csv, as_page, headline, percent, points, tables
from evals.statistics import changes, effect, figure
from evals.tables import AnsweredQuestion, RunReport
from tests.support.evaluation_rows import run_settings

WHOLE = str(AblationStage.WHOLE)
SHELVES = {-1: {"in_use": {"old": 1}, "banned": []}, 0: {"in_use": {"new": 1}, "banned": ["old"]}}
LEARN, TEST = QuestionPart.LEARN, QuestionPart.TEST


def row(name: str, right: bool | None = True, **more: Any) -> AnsweredQuestion:
    given: dict[str, Any] = {
        "arm": WHOLE,
        "part": QuestionPart.TEST,
        "batch": 0,
        "id": name,
        "video": "clip",
        "types": ("who",),
        "question": "Who sings?",
        "options": (),
        "reference": "Ann",
        "answer": "Bob",
        "option": "",
        "right": right,
        "judge": "options",
        "why": "because",
        "cited": None,
        "top": None,
        "iou": None,
        "ref300": None,
        "fault": None,
        "failed": False,
        "rounds": 2,
        "tokens": 10,
        "seconds": 0.5,
        "cost_usd": 0.25,
        "skills": (),
        "leaked": (),
        "trajectory": f"t-{name}",
    }
    return AnsweredQuestion(**(given | more))


def made(
    rows: list[AnsweredQuestion],
    protocol: Protocol = Protocol.NONE,
    shelves: dict[int, Any] | None = None,
    state: str = "done",
    stages: tuple[AblationStage, ...] = (AblationStage.WHOLE,),
    settings: RunSettings | None = None,
) -> RunReport:
    settings = settings or run_settings(protocol=protocol, stages=stages, questions=len(rows))
    run = EvaluationRun(
        name="run",
        settings=settings,
        state=state,
        began_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        planned=len(rows),
        judged=len(rows),
    )
    return report(run, rows, shelves or {}, 1.5)


def test_an_unjudged_answer_is_neither_right_nor_wrong_and_said_to_be_so() -> None:
    found = made([row("1"), row("2", False), row("3", None, why="nobody to judge")])
    head = found.headline
    assert (head.questions, head.unjudged) == (3, 1)
    assert head.right is not None
    assert (head.right.value, head.right.of) == (0.5, 2)
    assert any("unjudged: nobody to judge" in remark for remark in found.remarks)
    assert "50.0 (0-100) % right of 2 judged" in headline(found)


def test_a_judge_that_answers_as_well_says_so() -> None:
    def output(judge: str, *models: str) -> str:
        settings = run_settings(reasoner="llm", judge=judge, models=models)
        return " ".join(made([row("1", judge=judge), row("2")], settings=settings).remarks)

    own = "judges 1 open answers that it gave itself"
    assert own in output("gpt", "default: gpt")
    assert own in output("gpt", "default: other", "reasoner: gpt")
    assert own not in output("gpt", "default: gpt", "reasoner: other", "judge: gpt")
    assert own not in output("big", "default: gpt", "judge: big")


def test_results_stand_beside_the_baseline_by_type() -> None:
    rows = [row(str(n), n > 0, types=("why" if n < 2 else "when",)) for n in range(4)]
    plain = [one.model_copy(update={"arm": BASELINE_ARM, "right": one.id == "3"}) for one in rows]
    found = made([*rows, *plain], settings=run_settings(questions=4, baseline=True))
    output = {one.type: (one.effect.after, one.effect.before) for one in found.beside}
    told = {kind: (a and a.value, b and b.value) for kind, (a, b) in output.items()}
    assert told == {"all": (0.75, 0.25), "when": (1.0, 0.5), "why": (0.5, 0.0)}
    (table,) = [one for one in tables(found) if one.title.startswith("Beside")]
    assert table.rows[0][:2] == ("all", "4")
    assert table.rows[0][4].startswith("+50.0")
    assert made(rows).beside == ()


def test_a_question_of_several_types_counts_for_each() -> None:
    found = made([row("1", types=("a", "b")), row("2", False, types=("b",))])
    shares = {one.type: one.right and one.right.value for one in found.scores}
    assert shares == {"all": 0.5, "a": 1.0, "b": 0.5}


def test_an_interval_holds_its_figure_and_is_the_same_every_time() -> None:
    found = figure([1, 0, 1, 1, None])
    assert found is not None
    assert found.low <= found.value == 0.75 <= found.high
    assert found == figure([1, 0, 1, 1])
    assert figure([None]) is None
    assert percent(None) == ""
    assert percent(found) == "75.0 (50-100)"
    assert points(figure([1, 0])) == "+50.0 (+0 to +100)"


def test_usage_and_faults_are_by_arm() -> None:
    found = made([row("1", False, fault=ErrorType.COARSE), row("2", rounds=4, cost_usd=0.75)])
    (took,) = found.usage
    assert (took.rounds, took.tokens, took.cost_usd, took.total_usd) == (3, 10, 0.5, 1)
    assert found.faults == {WHOLE: {ErrorType.COARSE: 1}}


def test_an_ablation_without_a_language_model_says_what_it_can_show() -> None:
    stages = (AblationStage.ENTITY, AblationStage.WHOLE)
    settings = run_settings(stages=stages, reasoner="local")
    assert not any("concluded from all" in one for one in made([row("1")], stages=stages).remarks)
    output = made([row("1")], stages=stages, settings=settings).remarks
    assert any("concluded from all moments" in one for one in output)


def test_an_ablation_has_a_row_for_each_stage_in_the_papers_order() -> None:
    stages = tuple(AblationStage)
    rows = [row("1", bool(n), arm=str(stage)) for n, stage in enumerate(stages)]
    found = made(rows, stages=stages)
    assert [one.arm for one in found.ablation] == list(map(str, stages))
    assert [one.right and one.right.value for one in found.ablation] == [0, 1, 1, 1]
    (table,) = [one for one in tables(found) if one.title.startswith("How much")]
    output = [cells[0] for cells in table.rows]
    assert output == ["entity graph", "+ event nodes", "+ edges", "+ perceptual buffer"]


def learned() -> list[AnsweredQuestion]:
    learn = [
        row(f"l{n}", n > 1, arm=WITH_SKILLS, part=QuestionPart.LEARN, skills=("old",))
        for n in range(4)
    ]
    test = [row(f"t{n}", arm=WITH_SKILLS, batch=1, skills=("new",)) for n in range(4)]
    return [*learn, *test, *(row(f"t{n}", n > 1, arm=WITHOUT_SKILLS, batch=1) for n in range(4))]


def test_a_run_that_learns_shows_both_curves_and_the_paired_effect() -> None:
    found = made(learned(), Protocol.SPLIT, SHELVES)
    assert found.main == WITH_SKILLS
    output = {(p.arm, p.part, p.batch): p for p in found.curve}
    assert set(output) == {
        (WITH_SKILLS, QuestionPart.LEARN, 0),
        (WITH_SKILLS, QuestionPart.TEST, 1),
        (WITHOUT_SKILLS, QuestionPart.TEST, 1),
    }
    tested = output[WITH_SKILLS, QuestionPart.TEST, 1]
    assert (tested.given, tested.in_use, tested.right and tested.right.value) == (1.0, 1, 1.0)
    assert output[WITHOUT_SKILLS, QuestionPart.TEST, 1].given == 0
    assert found.effect is not None
    assert (found.effect.first, found.effect.second) == (WITHOUT_SKILLS, WITH_SKILLS)
    assert (found.effect.better, found.effect.worse) == (2, 0)
    assert (found.effect.difference and found.effect.difference.value) == 0.5
    uses = {one.name: one for one in found.skills}
    assert (uses["old"].since, uses["old"].banned_after, uses["old"].given) == (-1, 0, 4)
    assert (uses["new"].since, uses["new"].banned_after, uses["new"].given) == (0, None, 4)


def test_the_online_protocol_is_labelled_and_a_leak_is_reported() -> None:
    online = made(learned(), Protocol.ONLINE, SHELVES)
    assert any("Online protocol: it learned from" in one for one in online.remarks)
    output = made([row("t", arm=WITH_SKILLS, skills=("s",), leaked=("s",))], Protocol.SPLIT).remarks
    assert any("1 tested questions had a skill that was learned from" in one for one in output)


def auto_rows(own: str, other: str, auto: str, part: QuestionPart) -> list[AnsweredQuestion]:
    """Answers of three arms to as many questions as there are letters; ``r`` is a right one."""
    return [
        row(f"{part}{n}", letter == "r", arm=arm, part=part, strategy="b", chosen_by="s"[: n % 2])
        for arm, letters in {WHOLE: own, "b": other, AUTO: auto}.items()
        for n, letter in enumerate(letters)
    ]


def auto_run(*halves: list[AnsweredQuestion]) -> RunReport:
    settings = run_settings(protocol=Protocol.SPLIT, strategies=("b", AUTO))
    return made([one for half in halves for one in half], Protocol.SPLIT, settings=settings)


def test_auto_is_compared_with_the_strategy_that_is_best_on_the_tested_half() -> None:
    found = auto_run(auto_rows("rr", "ww", "", LEARN), auto_rows("wwww", "rrww", "rrrw", TEST))
    assert found.auto is not None
    best, learned = found.auto.best, found.auto.learned
    assert (best.first, best.second, best.questions, best.better) == ("b", AUTO, 4, 1)
    assert best.worse == 0
    assert learned is not None
    assert (learned.first, learned.better) == ("homer", 3)
    (chosen,) = found.auto.chosen
    assert (chosen.strategy, chosen.questions, chosen.learned) == ("b", 4, 2)
    assert found.main == WHOLE
    assert [one.strategy for one in found.strategies] == ["homer", "b", AUTO]
    titles = [table.title for table in tables(found)]
    assert "Auto beside the strategy that was best on the tested half" in titles


@pytest.mark.parametrize(
    ("auto", "said"),
    [
        ("r" * 8, "auto is better than the best single strategy: +75.0 points beside b, p = 0.031"),
        ("rrrwwwww", "auto is not better (+12.5 points beside b, p = 1.000: within chance)"),
        ("rrwwwwww", "auto is not better (+0.0 points beside b, p = 1.000: no gain)"),
        ("w" * 8, "auto is not better (-25.0 points beside b, p = 0.500: no gain)"),
    ],
)
def test_auto_says_whether_it_is_better_and_stays_off_where_not(auto: str, said: str) -> None:
    found = auto_run(auto_rows("w" * 8, "rrwwwwww", auto, TEST))
    (remark,) = [one for one in found.remarks if one.startswith("auto ")]
    assert remark.startswith(said)
    assert remark.endswith("it stays off, and homer is the default.") == ("not better" in remark)


def test_only_the_same_question_judged_twice_is_a_pair() -> None:
    before = [row("1", False), row("2"), row("3", None), row("4", question="Who sang?")]
    after = [row("1"), row("2", False), row("3"), row("4"), row("5")]
    found = effect("a", "b", before, after)
    assert found is not None
    assert (found.questions, found.better, found.worse) == (2, 1, 1)
    assert [(one.id, one.better) for one in changes(before, after)] == [("2", False), ("1", True)]
    assert effect("a", "b", before, []) is None


class Text(HTMLParser):
    """Reads a page's words and its elements."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_a_page_shows_words_as_words_whatever_they_are(words: str) -> None:
    evil = f"<script>alert(1)</script>{words}$title"
    rows = [row("1", False, question=evil, answer=evil, why=evil, types=(evil,), id=evil)]
    page, read = as_page(made(rows)), Text()
    read.feed(page)
    assert "script" not in read.tags
    assert any("<script>alert(1)</script>" in one for one in read.words)


def test_a_page_has_every_table_and_draws_the_curve() -> None:
    rows = learned()
    page = as_page(made(rows, Protocol.SPLIT, SHELVES))
    for table in tables(made(rows, Protocol.SPLIT, SHELVES)):
        assert f"<caption>{table.title}" in page.replace("&#x27;", "'")
    assert page.count("<polyline") == 2
    assert "http" not in page.replace("http-equiv", "")


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)))
def test_csv_gives_back_what_it_was_given(texts: list[str]) -> None:
    rows = [row(str(n), question=text) for n, text in enumerate(texts)]
    said = [one["question"] for one in csv.DictReader(io.StringIO(as_csv(rows), newline=""))]
    assert [one.removeprefix("'") for one in said] == [text.removeprefix("'") for text in texts]
    assert not any(one.startswith(("=", "+", "-", "@")) for one in said)
