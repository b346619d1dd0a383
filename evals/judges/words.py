"""Open answers: a strong language model judges whether an answer means the reference.

Temperature 0, and recorded like any other call. Without such a model, or if it fails, the answer is
unjudged, never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import Protocol

from pydantic import BaseModel, Field

from agent.harness.inform import quote_untrusted
from domain.asking import Answer
from domain.errors import ModelError, SetupError
from domain.evaluation import Verdict
from evals.dataset import EvalQuestion
from evals.judges.options import ANSWERS_WITHHELD
from models.chat import ChatReply
from models.messages import Message, user
from models.profile import Profile
from models.specs import IN_PROCESS

NOBODY = "nobody"
ROLE, PURPOSE = "judge", "judge"
LONGEST = 2_000
PROMPT = Path(__file__).parents[1] / "prompts" / "judge.md"
M3_BENCH = PROMPT.with_name("m3_bench.md")
"""After the rule of that data set's authors, which allows what follows reasonably."""
WEAK = (
    "no strong language model to judge an open answer: use a profile with one, or give the profile "
    "a [chat.judge]"
)


class Ruling(BaseModel):
    """Whether an answer is right."""

    reason: str = Field(max_length=600)
    right: bool


class JudgeChat(Protocol):
    """A chat with the model (``models.chat.StructuredChat``)."""

    def ask(
        self,
        messages: Sequence[Message],
        schema: type[Ruling],
        *,
        purpose: str,
        temperature: float | None = None,
    ) -> ChatReply[Ruling]:
        """Ask for a value of type ``schema``."""


def judge_model(profile: Profile) -> str:
    """Return the model that judges open answers; "" if the profile has no strong enough one.

    It is the profile's own for the role, else the one that answers, unless that runs in this
    process: such a model is too small to judge.
    """
    if ROLE not in profile.chat and profile.reasoner != "llm":
        return ""
    try:
        spec = profile.chat_for(ROLE)
    except SetupError:
        return ""
    weak = spec.provider == IN_PROCESS and ROLE not in profile.chat
    return "" if weak else spec.model


def judge_words(
    question: EvalQuestion,
    answer: Answer,
    model: str,
    chat: Callable[[], JudgeChat],
    rule: Path = PROMPT,
) -> Verdict:
    """Judge by the model and a rule; unjudged without a model, a reference, or a readable reply."""
    if not question.answer:
        return Verdict(right=None, judge=NOBODY, why=ANSWERS_WITHHELD)
    if not model:
        return Verdict(right=None, judge=NOBODY, why=WEAK)
    try:
        messages = [user(_prompt(question, answer, rule))]
        reply = chat().ask(messages, Ruling, purpose=PURPOSE, temperature=0.0)
    except ModelError as error:
        return Verdict(right=None, judge=model, why=f"the judge failed: {error}", failed=True)
    return Verdict(right=reply.value.right, judge=model, why=reply.value.reason)


def _prompt(question: EvalQuestion, answer: Answer, rule: Path) -> str:
    answer_text = "The memory does not hold it." if answer.not_in_memory else answer.text
    return Template(rule.read_text(encoding="utf-8")).substitute(
        question=quote_untrusted(question.question, LONGEST),
        reference=quote_untrusted(question.answer, LONGEST),
        answer=quote_untrusted(answer_text, LONGEST),
    )
