"""How a reply is described to a model: its JSON schema's title, or plain text.

Pydantic takes title and description from a class's name and docstring. They go into prompts and
into the hash by which a recorded reply is found again, so a class may only be renamed or documented
anew where they are set by hand. Names of nested classes are keys of ``$defs``: those classes keep
theirs.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict


def pinned(title: str, description: str) -> ConfigDict:
    """Return the configuration of a reply whose schema has this title and description."""
    return ConfigDict(title=title, json_schema_extra={"description": description})


def title_of(schema: type[BaseModel]) -> str:
    """Return what a schema is called where a model may read it."""
    return schema.model_config.get("title") or schema.__name__


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
