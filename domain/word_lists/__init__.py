"""Word lists as text files, one word a line; ``#`` begins a comment."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def load_words(name: str) -> frozenset[str]:
    """Load the words of the list ``name.txt``."""
    text = resources.files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(line for line in text.split("\n") if line and not line.startswith("#"))
