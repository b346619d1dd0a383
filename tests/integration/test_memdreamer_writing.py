"""MemDreamer's hierarchy as a language model writes it, killed and resumed without paying twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import update

from domain.faults import FaultPoint
from flows.build import build
from store.database import Store
from store.queries.builds import delete_builds
from store.queries.videos import delete_calls
from store.tables.schema import ModelCallRow, VideoRow
from strategies.registry import find_strategy
from tests.support.asking import PARTY
from tests.support.asking import built_rows as rows
from tests.support.caption_evaluations import workspace_of
from tests.support.killed_runs import killed_at
from tests.support.library_templates import FilledLibraries
from tests.support.obedient_model import LlmToolbox, texts_of
from tests.support.openai_server import OpenAIServer
from tests.support.remembered import Said, watch
from tests.support.writing_model import sensible

PURPOSES = {
    "Cut it into complete episodes": "episodes",
    "Write its graph": "graph",
    "Group all of them": "supers",
    "What is the whole about": "root",
}
CLIPS = 50


def written(request: dict[str, Any]) -> str:
    page = texts_of(request)[1]
    purpose = next(purpose for mark, purpose in PURPOSES.items() if mark in page)
    return json.dumps(sensible(purpose, page))


def build_garden(store: Store) -> tuple[list[dict[str, Any]], int]:
    """Twenty-five minutes of work in a garden, built; returns the rows, and how many calls."""
    lines = ("Ann paints the fence", "Bob fixes the red bike")
    clips = [[Said(lines[n // 9 % 2], 3, source="caption")] for n in range(CLIPS)]
    watch(store, PARTY, clips)
    with store.begin() as session:
        session.execute(update(VideoRow).values(state="done"))
    with OpenAIServer(written) as server:
        built(store, server)
        return rows(store), len(server.requests)


def built(store: Store, server: OpenAIServer) -> None:
    workspace = workspace_of(store, LlmToolbox(server, reasoner="local", writer="llm"))
    build(workspace, PARTY, find_strategy("memdreamer"), lambda *_: None)


@pytest.mark.full
@pytest.mark.parametrize(
    ("point", "time"),
    [
        (FaultPoint.BUILD_ROWS, 20),
        (FaultPoint.BUILD_COMMITTED, 20),
        (FaultPoint.CALL_ANSWERED, 2),
        (FaultPoint.CALL_RECORDED, 3),
    ],
)
def test_a_killed_build_is_resumed_to_the_same_rows_without_paying_twice(
    store: Store,
    libraries: FilledLibraries,
    monkeypatch: pytest.MonkeyPatch,
    point: FaultPoint,
    time: int,
) -> None:
    whole, paid = libraries.fill(store, build_garden)
    assert {"A day", "Part 0"} <= {row.get("label") for row in whole}
    with store.begin() as session:
        delete_builds(session, PARTY)
        delete_calls(session, ModelCallRow.video_id == PARTY)
    with OpenAIServer(written) as server:
        with killed_at(monkeypatch, point, time):
            built(store, server)
        built(store, server)
        # A call that was answered but is not on record yet is made again.
        assert len(server.requests) == paid + (point is FaultPoint.CALL_ANSWERED)
    assert rows(store) == whole
