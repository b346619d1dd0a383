"""How a reply is described to a model: a class as a JSON schema, or plain text.

Pydantic takes title and description of a schema from a class's name and docstring, which models
read: docstrings of replies are part of the prompts.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict


class StrictReply(BaseModel):
    """Base of replies in which unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


@runtime_checkable
class PlainTextFormat(Protocol):
    """A reply that may also be given as plain text, by models that keep to no JSON."""

    @classmethod
    def plain_text_protocol(cls) -> str:
        """Return how to answer, for a server that holds its model to no schema."""

    @classmethod
    def parse_plain_text(cls, text: str) -> dict[str, Any] | None:
        """Return the fields found in such an answer; None if it is none."""


def plain_text_protocol(schema: type[BaseModel]) -> str:
    """Return how to answer in plain text; "" where the reply has no such form."""
    return schema.plain_text_protocol() if isinstance(schema, PlainTextFormat) else ""


def parse_plain_text(text: str, schema: type[BaseModel]) -> dict[str, Any] | None:
    """Return the fields that ``text`` gives as plain text; None if it gives none."""
    return schema.parse_plain_text(text) if isinstance(schema, PlainTextFormat) else None
