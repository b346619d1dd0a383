"""The skill writer with a language model; code reviews what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Protocol

from pydantic import BaseModel, Field, ValidationError

from domain.errors import ModelError
from domain.skills import Pattern, Skill
from domain.texts import strip_invisible
from models.chat import ChatReply
from models.messages import Message, user
from skills.writer import ADVICE, Example, LocalSkillWriter, Words

PROMPT = Path(__file__).parent / "prompts" / "write.md"
SHOWN = 20
"""Questions that the model is shown at most."""
LINE = 300
_BRACKETS = str.maketrans("<>＜＞", "()()")


class WrittenSkill(BaseModel):
    """Advice for questions of one kind."""

    description: str = Field(min_length=1, max_length=300)
    triggers: list[str] = Field(default=[], max_length=12)
    instructions: list[str] = Field(min_length=1, max_length=5)


class SkillWriterChat(Protocol):
    """A chat with the model (``models.chat.StructuredChat``)."""

    def ask(
        self, messages: Sequence[Message], schema: type[WrittenSkill], *, purpose: str
    ) -> ChatReply[WrittenSkill]:
        """Ask for a value of type ``schema``."""


class LlmSkillWriter:
    """A language model words the advice; the policy is what the examples have in common."""

    def __init__(self, chat: Callable[[], SkillWriterChat]) -> None:
        self._chat = chat
        self._local = LocalSkillWriter()

    def write(
        self, pattern: Pattern, examples: Sequence[Example], known: Skill | None, words: Words
    ) -> Skill:
        """Write the skill for a pattern.

        Raises:
            ModelError: the model returns nothing, or no valid skill.
        """
        base = self._local.write(pattern, examples, known, words)
        request = _prompt(pattern, examples, known)
        written = self._chat().ask([user(request)], WrittenSkill, purpose="skill").value
        try:
            return Skill.model_validate(base.model_dump() | written.model_dump())
        except ValidationError as error:
            raise ModelError(f"what was written is no skill: {error.errors()[0]['msg']}") from error


def _prompt(pattern: Pattern, examples: Sequence[Example], known: Skill | None) -> str:
    lines = [line for example in examples[:SHOWN] for line in _example_lines(example)]
    earlier = "\n".join(f"- {line}" for line in known.instructions) if known else ""
    return Template(PROMPT.read_text(encoding="utf-8")).substitute(
        signal=pattern.signal.value.replace("_", " "),
        kind=_quoted(pattern.question_type),
        meaning=" ".join(ADVICE[pattern.signal]),
        examples="\n".join(lines),
        known=f"What was learned of it before, to be refined:\n{earlier}" if earlier else "",
    )


def _example_lines(example: Example) -> Iterator[str]:
    """Yield what was asked, what was searched with what it added, and the judged answer."""
    yield f"<question>{_quoted(example.question)}</question>"
    yield from (f"- searched {_quoted(search)}" for search in example.searches)
    yield f"- answered {_quoted(example.answer)}"


def _quoted(text: str) -> str:
    """Put a text on one line that cannot close the marks around it."""
    return " ".join(strip_invisible(text).translate(_BRACKETS).split())[:LINE]
