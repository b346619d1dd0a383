"""The reward of a final answer: whether it is the right option."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evals.training.recipe import Recipe

_BOX = re.compile(r"\\boxed\{([^{}]{0,200})\}")

Messages = Sequence[Mapping[str, Any]]
"""A conversation, as chat templates take it."""


def boxed_letter(text: str) -> str:
    """Return the letter in the last box of an answer; "" without one."""
    boxes = _BOX.findall(text)
    letter = boxes[-1].strip().strip("().").strip().upper() if boxes else ""
    return letter if re.fullmatch("[A-Z]", letter) else ""


def right_answers(completions: Sequence[Messages], answer: Sequence[str], **_: Any) -> list[float]:
    """Return the reward of each completion: that of a right final answer, else 0.

    A reward function of TRL's ``GRPOTrainer``.

    Args:
        completions: what the model wrote of each prompt, with the results of tools.
        answer: the letter of the right option, for each.
    """
    right = Recipe().right
    return [
        right if letter and _final_letter(completion) == letter else 0.0
        for completion, letter in zip(completions, answer, strict=True)
    ]


def _final_letter(completion: Messages) -> str:
    """Return the letter of the final answer: of the last message, if the model wrote it."""
    last = completion[-1] if completion else {}
    if last.get("role") != "assistant" or last.get("tool_calls"):
        return ""
    return boxed_letter(str(last.get("content") or ""))
