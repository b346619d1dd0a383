"""The title and description of the JSON schemas that models are given, apart from the code.

Pydantic takes both from a class's name and docstring. They go into prompts and into the hash by
which a recorded reply is found again, so a class may only be renamed or documented anew where they
are set by hand. Names of nested classes are keys of ``$defs``: those classes keep theirs.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


def pinned(title: str, description: str) -> ConfigDict:
    """Return the configuration of a reply whose schema has this title and description."""
    return ConfigDict(title=title, json_schema_extra={"description": description})


def title_of(schema: type[BaseModel]) -> str:
    """Return what a schema is called where a model may read it."""
    return schema.model_config.get("title") or schema.__name__
