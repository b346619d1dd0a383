"""The size of a stored trajectory beside that of its unique content.

The machine runs ten rounds with the recorder on. The reference counts each text of sixteen or more
characters once, however many events repeat it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select

from benchmarks.lines import Line, Taken, costs
from benchmarks.machine import PLAN, QUESTION, memory
from domain.settings import AskSettings
from graphs.runner import Runner
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from store.tables.questions import TrajectoryEventRow
from tests.support.asking import WordToolbox
from tests.support.machine import ScriptedContexts, ScriptedReasoner, watched

BAR = 1.2
SHORT = 16
"""Texts with fewer characters are words and refs: pointing to them would cost as much."""


def lines() -> Iterator[Line]:
    """Yield one line: the bytes of all events over those without repeated texts."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store:
                watched(store)
                record = recorded(store)
        finally:
            EmbeddedPostgres(home).stop()
    whole, again = size(record), repeated(record, set())
    ours, unique = Taken((whole / 1000,), "kB"), Taken(((whole - again) / 1000,), "kB")
    yield costs("record of a trajectory of ten rounds", ours, unique, "its unique content", BAR)


def recorded(store: Store) -> list[Any]:
    """Return the payloads of all events of one question."""
    contexts = ScriptedContexts(ScriptedReasoner(plan=[PLAN]), memory(), AskSettings())
    with Runner(store, WordToolbox(), contexts) as runner:
        asked = runner.ask(QUESTION)
    row = TrajectoryEventRow
    query = select(row.payload).where(row.trajectory_id == asked.trajectory_id).order_by(row.seq)
    with store.begin() as session:
        return list(session.scalars(query))


def size(value: object) -> int:
    """Bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def repeated(value: object, seen: set[str]) -> int:
    """Return the bytes of the texts in a value that are in ``seen``, and add its texts to it."""
    if isinstance(value, dict):
        return sum(repeated(one, seen) for one in value.values())
    if isinstance(value, list):
        return sum(repeated(one, seen) for one in value)
    if not isinstance(value, str) or len(value) < SHORT:
        return 0
    known = value in seen
    seen.add(value)
    return size(value) if known else 0
