"""Answers in plain lines, for models that keep to no JSON."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel


@runtime_checkable
class InLines(Protocol):
    """A schema that a model may also answer in plain lines."""

    @classmethod
    def asked_in_lines(cls) -> str:
        """How to answer, for a server that holds its model to nothing."""

    @classmethod
    def from_lines(cls, text: str) -> dict[str, Any] | None:
        """The fields found in such an answer; None where it is none."""


def protocol_of(schema: type[BaseModel]) -> str:
    """How to answer in lines; "" where the schema has no such form."""
    return schema.asked_in_lines() if isinstance(schema, InLines) else ""


def fields_in(text: str, schema: type[BaseModel]) -> dict[str, Any] | None:
    """The fields that ``text`` gives in lines; None where it gives none."""
    return schema.from_lines(text) if isinstance(schema, InLines) else None
