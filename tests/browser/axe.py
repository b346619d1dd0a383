"""axe-core in a page: what it finds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "homer-tests/axe.min.js"


OF_STREAMLIT = ("presentation-role-conflict",)
"""Rules that Streamlit's own drop zone for files breaks, with minor impact."""


def violations(page: Page) -> list[tuple[Any, ...]]:
    """Rule, impact and the first nodes of each violation of accessibility."""
    if not AXE.exists():
        pytest.skip("no axe-core: scripts/fetch-axe fetches it")
    page.evaluate(AXE.read_text("utf-8") + "\n;undefined")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (one["id"], one["impact"], [_told(node) for node in one["nodes"][:3]])
        for one in found["violations"]
        if one["id"] not in OF_STREAMLIT
    ]


def _told(node: Any) -> str:
    why = [check["message"] for check in (*node["any"], *node["all"], *node["none"])]
    return f"{node['html'][:200]} {why}"
