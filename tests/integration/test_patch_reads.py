"""A patch reads what it touches, however large the graph is and however little is known of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.orm import Session

from benchmarks.patches import fill, first_graph
from store.database import Store, open_store
from store.home import Home
from store.queries.events import add_revisions, add_segments, open_edges_of, open_segments_near
from store.tables.schema import Base
from tests.support.memory import VIDEO, known_video
from tests.support.statements import statements

SEGMENTS = 3_000
OPENING = {
    "revision": 0,
    "label": "Opening",
    "summary": "It begins.",
    "clips": [0, 1],
    "history": [],
    "from_clip": 1,
    "embedding": None,
}


@pytest.fixture(scope="module")
def large(
    tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Iterator[Store]:
    """A graph of which the planner has no statistics."""
    home = Home(tmp_path_factory.mktemp("large")).make()
    with open_store(home, make_database()) as store:
        with store.begin() as session:
            for name in Base.metadata.tables:
                session.execute(text(f"ALTER TABLE {name} SET (autovacuum_enabled = off)"))
        fill(store, first_graph(SEGMENTS))
        yield store


def rows_visited(session: Session, statement: str, given: Any) -> float:
    """The most rows that any step of the statement goes through, all its loops together."""
    connection = session.connection().connection.driver_connection
    assert connection is not None
    explained = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", given)
    (plan,) = explained.fetchone()
    return max(_visited(plan[0]["Plan"] if isinstance(plan, list) else json.loads(plan)))


def _visited(plan: dict[str, Any]) -> Iterator[float]:
    dropped = sum(value for key, value in plan.items() if key.startswith("Rows Removed"))
    yield (plan["Actual Rows"] + dropped) * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from _visited(part)


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(
    ("labels", "clips"),
    [
        (["Event 7", "New"], range(21, 31)),
        ([f"Event {n}" for n in range(8)], range(9_000, 9_010)),
    ],
)
def test_segments_near_a_patch_are_found_by_their_indexes(
    large: Store, plans: str, labels: Sequence[str], clips: Sequence[int]
) -> None:
    with large.begin() as session:
        session.execute(text(f"SET LOCAL plan_cache_mode = {plans}"))
        with statements(session) as sent:
            found = open_segments_near(session, VIDEO, labels=labels, clips=clips)
        (one,) = sent
        assert rows_visited(session, *one) <= SEGMENTS / 10
        named = {int(label.split()[1]) for label in labels if label != "New"}
        wanted = named | {clip // 3 for clip in clips if clip < 3 * SEGMENTS}
        assert {one.number for one in found.values()} == wanted


def test_edges_of_a_patch_are_found_by_their_indexes(large: Store) -> None:
    with large.begin() as session:
        near = open_segments_near(session, VIDEO, clips=range(300, 310))
        with statements(session) as sent:
            edges = open_edges_of(session, near)
        (one,) = sent
        assert rows_visited(session, *one) <= SEGMENTS / 10
        assert len(edges) == len(near) + 1


def test_nothing_of_other_videos_leaves_the_database(store: Store) -> None:
    """Every video has a first clip, and many have an event of the same name."""
    for video in (VIDEO, *(f"{n:016x}" for n in range(1, 9))):
        known_video(store, 3, video)
        with store.begin() as session:
            (segment,) = add_segments(session, video, [0]).values()
            add_revisions(session, [{**OPENING, "segment_id": segment}])
    counts: list[int] = []
    with store.begin() as session:
        engine = session.get_bind()
        event.listen(
            engine, "after_cursor_execute", lambda *output: counts.append(output[1].rowcount)
        )
        (found,) = open_segments_near(session, VIDEO, labels=["Opening"], clips=[0]).values()
    assert (found.number, found.label) == (0, "Opening")
    # One row for its label, and the same for its clip.
    assert counts == [2]
