"""The packages of Homer as import-linter lists them, and the root of the checkout."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def homer_packages() -> tuple[str, ...]:
    """List the names of Homer's own top-level packages."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return tuple(linter["root_packages"])
