"""What a run asks, the reward of an answer, and the curves that calibrate confidence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent.strategy import AUTO
from domain.asking import Calibration, ConfidenceLevel, Curve, level_of_confidence
from domain.errors import InputError, SetupError
from domain.evaluation import WITH_SKILLS, WITHOUT_SKILLS, QuestionPart
from domain.evaluation_options import AblationStage, Protocol
from domain.settings import AskSettings
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from evals.judging import judge_model
from evals.plan import checked_name, learning_videos, plan, run_name, settings_of
from evals.statistics import curve, fit, is_fitted_on, reliability, save
from evals.tables import AnsweredQuestion
from evals.training.export import Message, Recipe, boxed_letter, right_answers
from models.profile import Profile, calibration_file, load_profile
from models.specs import ChatSpec
from skills.learn import BATCH
from tests.unit.test_eval_reports import row

LOCAL = load_profile("local", None)
TOOL: Message = {"role": "tool", "name": "nearest", "content": r"\boxed{A}"}
CALL: Message = {"role": "assistant", "content": r"\boxed{A}", "tool_calls": [{"type": "function"}]}


def asked(*counts: int) -> tuple[EvalQuestion, ...]:
    return tuple(
        EvalQuestion(id=f"{v}-{n}", video=f"video {v}", question="Who?", answer="Ann")
        for v, count in enumerate(counts)
        for n in range(count)
    )


def dataset(*counts: int, there: int = 99) -> Dataset:
    videos = (
        EvalVideo(name=f"video {v}", file=Path("x.mp4") if v < there else None)
        for v in range(len(counts))
    )
    return Dataset("own", tuple(videos), asked(*counts))


@given(st.lists(st.integers(1, 30), min_size=2, max_size=12))
def test_no_video_is_learned_from_and_tested_on(counts: list[int]) -> None:
    made = plan(dataset(*counts), LOCAL)
    learn = {one.question.video for one in made.questions if one.part is QuestionPart.LEARN}
    test = {one.question.video for one in made.questions if one.part is QuestionPart.TEST}
    assert learn
    assert test
    assert not learn & test
    sizes = [sum(one.part is part for one in made.questions) for part in QuestionPart]
    assert sum(sizes) == sum(counts)
    assert abs(sizes[0] - sizes[1]) <= max(counts)


def test_the_split_does_not_hang_on_the_order_of_the_questions() -> None:
    questions = asked(3, 3, 3, 3)
    assert learning_videos(questions) == learning_videos(questions[::-1])


def test_learning_comes_first_in_batches_of_64() -> None:
    made = plan(dataset(100, 100), LOCAL)
    assert [one.place for one in made.questions] == list(range(200))
    sizes = [sum(one.batch == batch for one in made.questions) for batch in made.batches]
    assert sizes == [BATCH, 36, BATCH, 36]
    assert [one.part for one in made.questions] == [QuestionPart.LEARN] * 100 + [
        QuestionPart.TEST
    ] * 100


@pytest.mark.parametrize(
    ("protocol", "part", "arms", "learned"),
    [
        (Protocol.SPLIT, QuestionPart.LEARN, (WITH_SKILLS,), {WITH_SKILLS}),
        (Protocol.SPLIT, QuestionPart.TEST, (WITH_SKILLS, WITHOUT_SKILLS), set()),
        (Protocol.ONLINE, QuestionPart.TEST, (WITH_SKILLS, WITHOUT_SKILLS), {WITH_SKILLS}),
        (Protocol.NONE, QuestionPart.TEST, (str(AblationStage.WHOLE),), set()),
    ],
)
def test_who_is_asked_and_who_is_learned_from(
    protocol: Protocol, part: QuestionPart, arms: tuple[str, ...], learned: set[str]
) -> None:
    made = plan(dataset(2, 2), LOCAL, protocol)
    assert made.arms(part) == arms
    assert {arm for arm in arms if made.learns(part, arm)} == learned


def test_an_arm_is_asked_with_settings_of_its_own() -> None:
    ask = AskSettings(rounds=3)
    assert settings_of(WITHOUT_SKILLS, ask) == AskSettings(rounds=3, skills=False)
    assert settings_of(WITH_SKILLS, ask) == ask
    assert settings_of(str(AblationStage.EVENTS), ask).memory is AblationStage.EVENTS


def test_an_ablation_does_not_learn() -> None:
    made = plan(dataset(2), LOCAL, stages=[AblationStage.EVENTS])
    assert made.settings.protocol is Protocol.NONE
    assert made.arms(QuestionPart.TEST) == ("event nodes", "perceptual buffer")
    with pytest.raises(InputError, match="--protocol none"):
        plan(dataset(2, 2), LOCAL, Protocol.SPLIT, [AblationStage.EVENTS])


def test_auto_is_asked_where_the_others_were_not_learned_from() -> None:
    made = plan(dataset(2, 2), LOCAL, strategies=["plain-rag", AUTO])
    assert made.settings.protocol is Protocol.SPLIT
    whole = str(AblationStage.WHOLE)
    assert made.arms(QuestionPart.LEARN) == (whole, "plain-rag")
    assert made.arms(QuestionPart.TEST) == (whole, "plain-rag", AUTO)
    assert all(made.learns(QuestionPart.LEARN, arm) for arm in (whole, "plain-rag"))
    assert not any(made.learns(QuestionPart.TEST, arm) for arm in (whole, "plain-rag", AUTO))
    assert settings_of(AUTO, AskSettings()).strategy == AUTO


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"strategies": [AUTO]}, "name another one besides"),
        ({"strategies": ["plain-rag", AUTO], "protocol": Protocol.NONE}, "--protocol split"),
        ({"strategies": ["plain-rag", AUTO], "protocol": Protocol.ONLINE}, "--protocol split"),
        ({"strategies": ["plain-rag", AUTO], "stages": [AblationStage.EVENTS]}, "without stages"),
    ],
)
def test_auto_needs_strategies_to_choose_from_and_halves(more: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        plan(dataset(2, 2), LOCAL, **more)


def test_videos_that_are_not_there_are_left_and_named() -> None:
    made = plan(dataset(2, 3, there=1), LOCAL, Protocol.NONE)
    assert made.absent == ("video 1",)
    assert made.settings.questions == 2
    with pytest.raises(InputError, match="no question about a video that is there"):
        plan(dataset(2, there=0), LOCAL)


def test_one_video_cannot_be_split() -> None:
    with pytest.raises(InputError, match="--protocol online or --protocol none"):
        plan(dataset(5), LOCAL)
    assert plan(dataset(5), LOCAL, Protocol.ONLINE).batches == (0,)


def test_a_run_is_called_after_its_settings() -> None:
    assert run_name(plan(dataset(2, 2), LOCAL, limit=3)) == "own-local-split-3"
    ablated = plan(dataset(2), LOCAL, stages=list(AblationStage))
    assert run_name(ablated) == "own-local-none-entity+events+edges"
    odd = LOCAL.model_copy(update={"name": "my ../profile"})
    assert run_name(plan(dataset(2, 2), odd)) == "own-my-..-profile-split"


@pytest.mark.parametrize("name", ["", "../x", "a b", "x" * 81, ".hidden", "a/b"])
def test_a_name_that_would_be_no_file_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        checked_name(name)


def spec(model: str) -> ChatSpec:
    return ChatSpec(model=model)


@pytest.mark.parametrize(
    ("profile", "judge"),
    [
        (LOCAL, ""),
        (Profile(name="x", reasoner="llm", chat={"default": spec("openai:big")}), "openai:big"),
        (Profile(name="x", reasoner="llm", chat={"default": spec("llama:small")}), ""),
        (Profile(name="x", chat={"judge": spec("openai:big")}), "openai:big"),
        (Profile(name="x", chat={"default": spec("openai:big")}), ""),
        (Profile(name="x", reasoner="llm", chat={"writer": spec("openai:big")}), ""),
    ],
)
def test_only_a_strong_model_judges_open_answers(profile: Profile, judge: str) -> None:
    assert judge_model(profile) == judge


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"So it is \boxed{B}.", "B"),
        (r"\boxed{a}", "A"),
        (r"\boxed{ (C) }", "C"),
        (r"first \boxed{A}, no, \boxed{D}", "D"),
        (r"\boxed{A} or \boxed{the red one}", ""),
        ("B", ""),
        (r"\boxed{AB}", ""),
        (r"\boxed{", ""),
    ],
)
def test_the_last_box_is_the_answer(text: str, letter: str) -> None:
    assert boxed_letter(text) == letter


def test_a_long_text_of_boxes_is_read_at_once() -> None:
    assert boxed_letter("\\boxed{" * 50_000 + "}") == ""


def answer(text: str) -> Message:
    return {"role": "assistant", "content": text}


def test_a_right_final_answer_has_one_and_any_other_none() -> None:
    completions: list[list[Message]] = [
        [answer(r"\boxed{A}")],
        [answer(r"\boxed{B}")],
        [CALL, TOOL, answer(r"\boxed{A}")],
        [CALL, TOOL],
        [CALL],
        [],
    ]
    assert right_answers(completions, ["A"] * 6) == [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def test_an_answer_that_is_not_known_is_nowhere_right() -> None:
    assert right_answers([[answer("")], [answer(r"\boxed{}")]], ["", ""]) == [0.0, 0.0]


def test_the_recipe_has_the_constants_of_the_paper() -> None:
    arguments = Recipe().grpo_arguments()
    assert (arguments["num_generations"], arguments["beta"]) == (8, 0.0)
    assert (arguments["learning_rate"], arguments["warmup_steps"]) == (1e-6, 5)
    size = arguments["per_device_train_batch_size"] * arguments["gradient_accumulation_steps"]
    assert size == 64
    assert (arguments["loss_type"], arguments["scale_rewards"]) == ("grpo", "group")
    assert Recipe().right == 1.0


def answers(count: int, seed: int = 1, confidence: bool = False) -> list[AnsweredQuestion]:
    """Answers that are right as often as the square of their raw confidence."""
    dice, made = random.Random(seed), []
    for number in range(count):
        raw = dice.random()
        output = {"confidence": raw} if confidence else {}
        made.append(
            row(f"{seed}-{number}", dice.random() < raw**2, raw=raw, options=("a", "b"), **output)
        )
    return made


def test_a_curve_learns_how_often_answers_are_right() -> None:
    fitted = fit(answers(4000)).options
    for raw in (0.2, 0.5, 0.8):
        assert fitted.at(raw) == pytest.approx(raw**2, abs=0.1)


def test_half_of_the_questions_are_fitted_on_and_the_others_judge() -> None:
    rows = answers(400, confidence=True)
    half = [one for one in rows if is_fitted_on(one.id)]
    assert 150 < len(half) < 250
    assert fit(rows) == fit(half)
    assert reliability(half) == ()
    assert sum(third.right.of for third in reliability(rows)) == len(rows) - len(half)


def test_reliability_tells_what_was_said_and_what_was_right() -> None:
    low, middle, high = reliability(answers(3000, confidence=True))
    assert low.most <= middle.least <= middle.most <= high.least
    assert low.said == pytest.approx(1 / 6, abs=0.05)
    assert not middle.true  # 50 % were said, 25 % were right.
    assert high.right.value > middle.right.value > low.right.value


def test_too_few_answers_are_refused_and_leave_a_curve_as_it_was() -> None:
    with pytest.raises(InputError, match="too few"):
        fit(answers(20))
    known = Calibration(open=Curve(raw=(0.1, 0.9), right=(0.2, 0.8)))
    assert fit(answers(400), known).open == known.open


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_any_judged_answers_make_a_curve(output: list[tuple[float, bool]]) -> None:
    made = curve([row(str(i), right, raw=raw) for i, (raw, right) in enumerate(output)])
    assert all(0 <= made.at(raw) <= 0.95 for raw, _ in output)


def test_a_fitted_curve_is_the_profiles_from_then_on(tmp_path: Path) -> None:
    config, fitted = tmp_path / "homer.toml", fit(answers(400))
    save(calibration_file(config, "local"), fitted)
    assert load_profile("local", config).calibration == fitted
    assert load_profile("gemini", config).calibration != fitted


def test_a_damaged_curve_says_what_to_do(tmp_path: Path) -> None:
    config = tmp_path / "homer.toml"
    path = calibration_file(config, "local")
    path.parent.mkdir()
    path.write_text('{"options": {"raw": [1, 0], "right": [0, 1]}}')
    with pytest.raises(SetupError, match="homer eval calibrate"):
        load_profile("local", config)


@pytest.mark.parametrize(
    ("confidence", "word"),
    [
        (0.0, ConfidenceLevel.LOW),
        (0.39, ConfidenceLevel.LOW),
        (0.4, ConfidenceLevel.MEDIUM),
        (0.7, ConfidenceLevel.HIGH),
    ],
)
def test_confidence_has_a_word(confidence: float, word: ConfidenceLevel) -> None:
    assert level_of_confidence(confidence) is word


@pytest.mark.parametrize(
    ("raw", "share"),
    [(0.0, 0.3), (0.2, 0.3), (0.3, 0.4), (0.4, 0.5), (0.6, 0.7), (0.8, 0.9), (1.0, 0.9)],
)
def test_a_curve_is_straight_between_its_points_and_flat_beyond(raw: float, share: float) -> None:
    assert Curve(raw=(0.2, 0.4, 0.8), right=(0.3, 0.5, 0.9)).at(raw) == pytest.approx(share)


@given(st.floats(0, 1))
def test_without_a_curve_raw_confidence_stays(raw: float) -> None:
    assert Curve().at(raw) == min(0.95, raw)


def test_nothing_is_surer_than_the_specification_allows() -> None:
    assert Curve(raw=(0.1, 0.9), right=(0.2, 1.0)).at(0.95) == 0.95


@pytest.mark.parametrize(
    ("raw", "right"),
    [
        ((0.1,), ()),
        ((0.2, 0.1), (0.3, 0.4)),
        ((0.1, 0.1), (0.3, 0.4)),
        ((0.1, 0.2), (0.4, 0.3)),
        ((0.1, 1.2), (0.3, 0.4)),
        ((0.1, float("nan")), (0.3, 0.4)),
    ],
)
def test_no_falling_curve_is_taken(raw: tuple[float, ...], right: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError):
        Curve(raw=raw, right=right)
