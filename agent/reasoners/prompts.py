"""Prompts: text files with named slots, filled once; inserted text is never read as a slot."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template

FOLDER = Path(__file__).parents[1] / "prompts"


@cache
def _template(name: str) -> Template:
    return Template((FOLDER / f"{name}.md").read_text(encoding="utf-8"))


def prompt(name: str, **slots: str | int) -> str:
    """Return the prompt ``name`` with its slots filled; a slot without a value is an error."""
    return _template(name).substitute(slots).strip()
