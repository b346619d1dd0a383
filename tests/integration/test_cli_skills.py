"""``homer skills`` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skills.library import find_skill
from store.database import Store
from tests.support.commands import run as homer
from tests.support.machine import watched

FILE = """
[[skills]]
name = "order-of-events"
topic = "mode"
description = "Questions about what happened first"
triggers = ["before"]
instructions = ["Find both events first."]
[skills.policy]
modes = ["event", "video"]
split = false
"""


def test_from_a_file_to_a_ban_and_back(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    watched(store)
    monkeypatch.setenv("HOMER_HOME", str(store.home.root))
    monkeypatch.setenv("HOMER_DATABASE_URL", store.url)
    (tmp_path / "mine.toml").write_text(FILE)
    assert "no skills yet" in homer("skills").stderr
    mine = str(tmp_path / "mine.toml")
    assert homer("skills", "import", mine).stdout == "order-of-events: version 1\n"
    again = homer("skills", "import", mine)
    assert (again.stdout, "as they are" in again.stderr) == ("", True)
    listed = homer("skills").stdout
    assert "order-of-events" in listed
    assert "in use" in listed
    shown = homer("skills", "show", "order-of-events").stdout
    assert "- Find both events first." in shown
    assert "search in the order event, video" in shown
    assert "leave the question whole" in shown
    homer("skills", "ban", "order-of-events")
    assert find_skill(store, "order-of-events").banned
    assert "banned" in homer("skills", "show", "order-of-events").stdout
    homer("skills", "unban", "order-of-events")
    out = tmp_path / "out.json"
    homer("skills", "export", "--out", str(out))
    assert json.loads(out.read_text())["skills"][0]["name"] == "order-of-events"
    assert json.loads(homer("skills", "list", "--json").stdout)[0]["banned"] is False
