"""The packages of Homer, as import-linter has them, and where the checkout lies."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rooms() -> tuple[str, ...]:
    """Name every package of Homer's own code."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return tuple(linter["root_packages"])
