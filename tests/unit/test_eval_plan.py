"""What a run asks: which questions, in which part, batch and arm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.strategy import AUTO
from domain.errors import InputError
from domain.evaluation import WITH_SKILLS, WITHOUT_SKILLS, QuestionPart
from domain.evaluation_options import AblationStage, Protocol
from domain.settings import AskSettings
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from evals.judging import judge_model
from evals.plan import checked_name, learning_videos, plan, run_name, settings_of
from models.profile import Profile, load_profile
from models.specs import ChatSpec
from skills.learn import BATCH

LOCAL = load_profile("local", None)


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
