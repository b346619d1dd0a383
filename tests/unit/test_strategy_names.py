"""Nothing outside a strategy's folder knows it by name, but for what tests and measures it."""

from __future__ import annotations

import re

import pytest

from strategies.registry import strategy_names
from tests.support.packages import ROOT

PRODUCT = "homer"
"""Also the name of the program, and of the default strategy."""


@pytest.mark.parametrize("name", [name for name in strategy_names() if name != PRODUCT])
def test_a_strategy_is_named_in_its_own_folder_only(name: str) -> None:
    folder = name.replace("-", "_")
    named = re.compile(rf"\b({re.escape(name)}|{re.escape(folder)})\b", re.IGNORECASE)
    measuring = {".venv", "tests", "benchmarks"}
    files = [one for one in ROOT.rglob("*.py") if not measuring & {*one.parts}]
    others = [one for one in files if (ROOT / "strategies" / folder) not in one.parents]
    assert [str(one) for one in others if named.search(one.read_text())] == []
