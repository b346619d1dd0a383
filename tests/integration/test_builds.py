"""Building a strategy's memory in steps, resumed after any fault to the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

import strategies
from agent.strategy import Strategy
from domain import faults
from domain.errors import Busy, InputError
from domain.faults import FaultPoint
from flows import build as building
from flows.build import Built, build
from retrieval.citations import cite
from store.database import Store
from store.queries.builds import cut_builds
from store.queries.clips import memory_view
from store.queries.records import video_records
from store.tables.schema import BuildRow, VideoRow
from strategies.registry import find_strategy
from tests.support.asking import CLIPS, PARTY, remember_party
from tests.support.caption_evaluations import workspace_of

EXTRA = Path(__file__).parents[1] / "support" / "extra_strategies"
KINDS = ("build", "node_revision", "entity", "relation")


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Strategy:
    """A strategy that keeps the first line of every two clips."""
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(EXTRA)])
    return find_strategy("first-lines")


@pytest.fixture
def party(store: Store) -> Store:
    remember_party(store, len(CLIPS) - 1)
    ended(store)
    return store


def ended(store: Store, state: str = "done") -> None:
    with store.begin() as session:
        session.execute(update(VideoRow).values(state=state))


def built(store: Store, strategy: Strategy, heard: list[tuple[int, int]] | None = None) -> Built:
    steps = [] if heard is None else heard
    return build(workspace_of(store), PARTY, strategy, lambda done, of: steps.append((done, of)))


def rows(store: Store) -> list[dict[str, Any]]:
    with store.begin() as session:
        return [record for record in video_records(session, PARTY) if record["row"] in KINDS]


def test_every_step_is_stored_and_the_last_one_may_be_short(party: Store, pairs: Strategy) -> None:
    heard: list[tuple[int, int]] = []
    made = built(party, pairs, heard)
    assert (made.clips, made.total) == (5, 5)
    assert heard == [(0, 5), (2, 5), (4, 5), (5, 5)]
    nodes = [row for row in rows(party) if row["row"] == "node_revision"]
    assert [(n["number"], n["from_clip"]) for n in nodes] == [(0, 1), (1, 3), (2, 4)]
    assert nodes[0]["text"].startswith("Ann opens")
    assert built(party, pairs).clips == 0


def test_of_a_stream_only_whole_steps_are_built(party: Store, pairs: Strategy) -> None:
    ended(party, "watching")
    assert built(party, pairs).clips == 4
    ended(party)
    assert built(party, pairs).clips == 1


@pytest.mark.parametrize("point", [FaultPoint.BUILD_ROWS, FaultPoint.BUILD_COMMITTED])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_killed_build_goes_on_to_the_same_rows(
    party: Store, pairs: Strategy, monkeypatch: pytest.MonkeyPatch, point: FaultPoint, step: int
) -> None:
    built(party, pairs)
    whole = rows(party)
    with party.begin() as session:
        cut_builds(session, PARTY, [0])
    seen: list[FaultPoint] = []

    def dies(at: FaultPoint) -> None:
        seen.extend([at] if at is point else [])
        if at is point and len(seen) == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(faults, "fault_point", dies)
    with pytest.raises(KeyboardInterrupt):
        built(party, pairs)
    monkeypatch.setattr(faults, "fault_point", lambda _: None)
    assert rows(party) != whole or (point, step) == (FaultPoint.BUILD_COMMITTED, 3)
    built(party, pairs)
    assert rows(party) == whole


def test_what_was_built_is_cited_as_of_the_moment(party: Store, pairs: Strategy) -> None:
    built(party, pairs)
    with party.begin() as session:
        early, late = (memory_view(session, [PARTY], ms) for ms in (60_000, None))
        refs = [f"n{n}" for n in range(1, 20)] + [f"r{n}" for n in range(1, 20)]
        by_then, all_of_it = cite(session, early, refs), cite(session, late, refs)
    assert [c.ref[0] for c in by_then.citations] == ["n", "r"]
    assert [c.ref[0] for c in all_of_it.citations] == ["n"] * 3 + ["r"] * 3
    assert by_then.citations[0].text.startswith("Ann opens")
    assert " says " in by_then.citations[1].text


def test_two_builds_at_a_time_do_not_mix(
    party: Store, pairs: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = building.read_built

    def overtaken(*arguments: Any) -> Any:
        before = read(*arguments)
        monkeypatch.setattr(building, "read_built", read)
        built(party, pairs)
        return before

    monkeypatch.setattr(building, "read_built", overtaken)
    with pytest.raises(Busy, match="another homer builds first-lines"):
        built(party, pairs)
    with party.begin() as session:
        assert session.get_one(BuildRow, (PARTY, "first-lines")).through_clip == 4


def test_a_strategy_without_a_memory_of_its_own_says_so(party: Store) -> None:
    with pytest.raises(InputError, match="homer builds no memory of its own"):
        built(party, find_strategy("homer"))
