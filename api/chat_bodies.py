"""Chat completions as OpenAI's API has them: what is read of a request, and the answer's form."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.errors import InputError
from domain.moments import Answered
from domain.words import client_text, format_time, plain_line

MOST_CHARS = 4000
"""Characters of a question."""


class TextPart(BaseModel):
    """A part of a message that is text; parts of other kinds are refused."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str = Field(max_length=MOST_CHARS)


class ChatMessage(BaseModel):
    """A message of a conversation; other fields than these are not read."""

    role: str = Field(max_length=40)
    content: (
        Annotated[str, Field(max_length=100_000)]
        | Annotated[list[TextPart], Field(max_length=100)]
        | None
    ) = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content).strip()
        return (self.content or "").strip()


class ChatRequest(BaseModel):
    """A request for a completion; what steers language models is not read."""

    model: str = Field(
        max_length=400, description="a strategy, or STRATEGY/VIDEO", examples=["homer/talk"]
    )
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    stream: bool = False
    n: Literal[1] | None = None

    @property
    def question(self) -> str:
        """The last message of the user.

        Raises:
            InputError: there is none, or it is empty or too long.
        """
        said = [message.text for message in self.messages if message.role == "user"]
        if not said or not said[-1]:
            raise InputError("the last message of the role 'user' is the question: it is empty")
        if len(said[-1]) > MOST_CHARS:
            raise InputError(f"the question is longer than {MOST_CHARS} characters")
        return said[-1]

    @property
    def strategy(self) -> str:
        """The strategy that the model's name begins with."""
        return self.model.partition("/")[0]

    @property
    def videos(self) -> tuple[str, ...]:
        """The video that the model's name ends with; none: all."""
        video = self.model.partition("/")[2]
        return (video,) if video else ()


class ModelLine(BaseModel):
    """A model of the list."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["homer"] = "homer"


class ModelList(BaseModel):
    """The list of models."""

    object: Literal["list"] = "list"
    data: list[ModelLine]


def cited_text(answer: Answered, base_url: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the answer with a numbered line for each moment that it cites, and annotations.

    An annotation says where in the text a moment is cited, and at which address it is.

    Args:
        answer: the answer.
        base_url: the server's address, which the address of a moment begins with.
    """
    text = f"{answer.option}. {answer.answer}" if answer.option else answer.answer
    text = client_text("\n\n".join(part for part in (text, answer.note) if part))
    found = []
    for number, one in enumerate(answer.citations, 1):
        text += "\n\n" if number == 1 else "\n"
        place = f"{client_text(plain_line(one.title))} {format_time(one.span.start_ms)}"
        start = len(text)
        mark = f"[{number}]"
        url = f"{base_url.rstrip('/')}/videos/{one.video}/memory?at={one.span.start_ms / 1000:g}"
        citation = {
            "start_index": start,
            "end_index": start + len(mark),
            "title": place,
            "url": url,
        }
        found.append({"type": "url_citation", "url_citation": citation})
        text += f"[{number}] {place}: {client_text(plain_line(one.text))}"
    return text, found


def completion(
    answer: Answered, model: str, base_url: str, used: tuple[int, int]
) -> dict[str, Any]:
    """Return a whole completion; ``used``: tokens in and out, 0 where no model was asked."""
    text, found = cited_text(answer, base_url)
    message = {"role": "assistant", "content": text, "annotations": found}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    head = _head(answer.id, "chat.completion", model)
    usage = {
        "prompt_tokens": used[0],
        "completion_tokens": used[1],
        "total_tokens": sum(used),
    }
    return head | {"choices": [choice], "usage": usage}


def chunk(
    question: str, model: str, delta: dict[str, Any], finish: str | None = None
) -> dict[str, Any]:
    """Return a piece of a streamed completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _head(question, "chat.completion.chunk", model) | {"choices": [choice]}


def _head(question: str, kind: str, model: str) -> dict[str, Any]:
    return {"id": question, "object": kind, "created": int(time.time()), "model": model}
