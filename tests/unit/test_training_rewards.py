"""The reward of a final answer, and the constants of the recipe."""

from __future__ import annotations

import pytest

from evals.training.export import Message, Recipe, boxed_letter, right_answers


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


TOOL: Message = {"role": "tool", "name": "nearest", "content": r"\boxed{A}"}
CALL: Message = {"role": "assistant", "content": r"\boxed{A}", "tool_calls": [{"type": "function"}]}


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
    assert arguments["num_generations"] == 8
    assert arguments["beta"] == 0.0
    assert arguments["learning_rate"] == 1e-6
    assert arguments["warmup_steps"] == 5
    size = arguments["per_device_train_batch_size"] * arguments["gradient_accumulation_steps"]
    assert size == 64
    assert (arguments["loss_type"], arguments["scale_rewards"]) == ("grpo", "group")
    assert Recipe().right == 1.0
