"""Undocumented parts of Prefect and LangGraph that are used work in the pinned versions.

When a version changes: run these, read what they name, then raise the version here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, StateGraph
from prefect.events import emit_event
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_URL, temporary_settings
from typing_extensions import TypedDict

from graphs.checkpoints import NEXT, BoundarySaver
from services.prefect_internals import drain_events

TESTED = {"prefect": "3.8.8", "langgraph": "1.2.22", "langgraph-checkpoint-postgres": "3.2.0"}
NOWHERE = "http://127.0.0.1:9/api"
"""No server listens there."""


@pytest.mark.parametrize("package", TESTED)
def test_the_version_is_the_one_whose_parts_were_tried(package: str) -> None:
    assert version(package) == TESTED[package]


def test_prefect_drops_events_for_a_server_that_is_gone() -> None:
    with temporary_settings({PREFECT_API_URL: NOWHERE}):
        worker: Any = EventsWorker.instance()
        for number in range(20):
            emit_event("homer.tried", {"prefect.resource.id": f"homer.{number}"})
        start = time.monotonic()
        drain_events(0.2)
        assert time.monotonic() - start < 5
        assert worker._queue.qsize() <= 1
        assert EventsWorker.instance() is not worker
        drain_events(0.2)


class Steps(TypedDict, total=False):
    """The state of a machine of two steps."""

    number: int


def test_langgraph_names_the_next_step_in_the_channels_of_a_checkpoint() -> None:
    graph = StateGraph(Steps)
    graph.add_node("first", lambda _: {"number": 1})
    graph.add_node("second", lambda _: {"number": 2})
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    saver = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "a"}}
    graph.compile(checkpointer=saver).invoke({}, config)
    channels = [set(one.checkpoint["channel_values"]) for one in saver.list(config)]
    last, before_second, before_first, *_ = channels
    assert f"{NEXT}second" in before_second
    assert f"{NEXT}first" in before_first
    assert not any(name.startswith(NEXT) for name in last)


class Noted:
    """A cursor that notes what it is given."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def execute(self, query: str, *_: object, **__: object) -> None:
        self.written.append(query)

    executemany = execute


def test_langgraph_puts_a_checkpoint_in_one_cursor_of_the_saver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cursors: list[Noted] = []

    @contextmanager
    def cursor(_saver: object, *, pipeline: bool = False) -> Iterator[Noted]:
        assert pipeline
        cursors.append(Noted())
        yield cursors[-1]

    monkeypatch.setattr(PostgresSaver, "_cursor", cursor)
    checked: list[tuple[object, str]] = []
    saver = BoundarySaver(
        None,  # type: ignore[arg-type]
        (),
        lambda one, thread: checked.append((one, thread)),
    )
    config: Any = {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}
    saver.put(config, empty_checkpoint(), {}, {})
    (only,) = cursors
    assert checked == [(only, "a")]
    assert any("checkpoints" in query for query in only.written)


@pytest.mark.parametrize("name", ["_cursor", "_load_writes", "with_allowlist", "MIGRATIONS"])
def test_langgraph_s_saver_has_what_ours_overrides_or_reads(name: str) -> None:
    assert hasattr(PostgresSaver, name)
