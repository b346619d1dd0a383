"""Undocumented parts of Prefect that are used work in the pinned versions.

When a version changes: run these, read what they name, then raise the version here.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import Any

import pytest
from prefect.events import emit_event
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_URL, temporary_settings

from services.prefect_internals import drain_events

TESTED = {"prefect": "3.8.8"}
"""No server listens there."""


@pytest.mark.parametrize("package", TESTED)
def test_the_version_is_the_one_whose_parts_were_tried(package: str) -> None:
    assert version(package) == TESTED[package]


def test_prefect_drops_events_for_a_server_that_is_gone() -> None:
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        worker: Any = EventsWorker.instance()
        for number in range(20):
            emit_event("homer.tried", {"prefect.resource.id": f"homer.{number}"})
        start = time.monotonic()
        drain_events(0.2)
        assert time.monotonic() - start < 5
        assert worker._queue.qsize() <= 1
        assert EventsWorker.instance() is not worker
        drain_events(0.2)
