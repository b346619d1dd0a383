"""Prompts: text files with ``$slots``; what goes into a slot is never read as a slot."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import resources
from string import Template


@cache
def _template(name: str) -> Template:
    return Template(resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8"))


def prompt(name: str, **slots: str | int) -> str:
    """The prompt ``name`` with its slots filled; a slot without a value is an error."""
    return _template(name).substitute(slots).strip()


def foreign(text: str) -> str:
    """Words of others for use in a prompt: they can neither forge a tag nor close a mark."""
    return " ".join(text.replace("<", "‹").replace(">", "›").split())


def listed(lines: Iterable[str]) -> str:
    """One a line, or ``(none)``."""
    return "\n".join(lines) or "(none)"
