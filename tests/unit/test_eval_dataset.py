"""The one model that the questions of every data set become."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evals.dataset import EvalQuestion


def _asked(**more: object) -> EvalQuestion:
    return EvalQuestion.model_validate({"id": "1", "video": "v", "question": "Who?", **more})


def test_an_answer_is_the_letter_of_an_option() -> None:
    assert _asked(options=["Ann", "Bob"], answer="B").answer == "B"
    for wrong in ("C", "Bob", "AB"):
        with pytest.raises(ValidationError, match="none of the options"):
            _asked(options=["Ann", "Bob"], answer=wrong)


def test_without_options_an_answer_is_words_and_may_be_kept_secret() -> None:
    assert _asked(answer="Bob, at nine").answer == "Bob, at nine"
    assert _asked(options=["Ann", "Bob"]).answer == ""
