"""Prompts of flows: text files with ``$slots``; inserted text is never parsed for slots."""

from __future__ import annotations

from functools import cache
from importlib import resources
from string import Template


@cache
def _template(name: str) -> Template:
    return Template(resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8"))


def prompt(name: str, **slots: str | int) -> str:
    """Return the prompt ``name`` with its slots filled; a slot without a value is an error."""
    return _template(name).substitute(slots).strip()
