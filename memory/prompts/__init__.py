"""Prompts: text files with ``$slots``; inserted text is never parsed for slots."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from string import Template

from domain.people import TAG
from domain.texts import strip_invisible

_TAGS = re.compile(rf"({TAG.pattern.replace('(', '(?:')})")
_BRACKETS = str.maketrans("<>＜＞", "‹›‹›")


@cache
def _template(name: str) -> Template:
    return Template(resources.files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8"))


def prompt(name: str, **slots: str | int) -> str:
    """The prompt ``name`` with its slots filled; a slot without a value is an error."""
    return _template(name).substitute(slots).strip()


def sanitise(text: str) -> str:
    """Make untrusted text safe for a prompt: it can neither forge a tag nor close a delimiter."""
    return " ".join(strip_invisible(text).translate(_BRACKETS).split())


def sanitise_generated(text: str) -> str:
    """What a model wrote of a video, for use in another prompt: tags of people stay, no mark does.

    Generated text may repeat untrusted text.
    """
    return "".join(
        piece
        if TAG.fullmatch(piece)
        else re.sub(r"\s+", " ", strip_invisible(piece).translate(_BRACKETS))
        for piece in _TAGS.split(text)
    )


def join_lines(lines: Iterable[str]) -> str:
    """Join lines with line ends; ``(none)`` if there are none."""
    return "\n".join(lines) or "(none)"
