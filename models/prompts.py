"""Prompts: text files beside the code that uses them, and text made safe for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Template
from typing import Protocol

from domain.people import TAG
from domain.texts import strip_invisible

_TAGS = re.compile(rf"({TAG.pattern.replace('(', '(?:')})")
_BRACKETS = str.maketrans("<>＜＞", "‹›‹›")


class Prompts(Protocol):
    """Returns a prompt by its file's name without ending, with its slots filled."""

    def __call__(self, name: str, /, **slots: str | int) -> str:
        """Return the prompt ``name``.

        Raises:
            KeyError: a slot has no value.
        """
        ...


def prompts_beside(file: str) -> Prompts:
    """Return the prompts in the folder ``prompts`` beside a module, which passes its ``__file__``.

    Inserted text is never parsed for slots; a slot without a value is an error.
    """
    folder = Path(file).with_name("prompts")

    @cache
    def template(name: str) -> Template:
        return Template((folder / f"{name}.md").read_text(encoding="utf-8"))

    def prompt(name: str, /, **slots: str | int) -> str:
        return template(name).substitute(slots).strip()

    return prompt


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
