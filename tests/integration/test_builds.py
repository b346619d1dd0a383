"""Building a strategy's memory in steps, resumed after any fault to the same rows."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete, update

import strategies
from agent.strategy import Strategy
from domain.asking import Question
from domain.errors import Busy, InputError, ModelError
from domain.faults import FaultPoint
from domain.rights import Deed
from domain.trajectory import EvidenceRetrieved
from flows.build import Built, build, watched_clips
from graphs.runner import Runner
from retrieval.quotes_and_citations import cite
from store.database import Store
from store.queries.builds import built_through, cut_builds, read_built
from store.queries.clips import memory_view
from store.queries.rights import record_deed
from store.queries.trajectories import events_of
from store.tables.schema import BuildRow, ClipRow, MemoryRow, VideoRow
from strategies.registry import find_strategy
from tests.support.asking import CLIPS, PARTY, WordToolbox, remember_party
from tests.support.asking import built_rows as rows
from tests.support.caption_evaluations import workspace_of
from tests.support.full_suite import sample
from tests.support.killed_runs import killed_at
from tests.support.remembered import Said, watch

EXTRA = Path(__file__).parents[1] / "support" / "extra_strategies"


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


def test_every_step_is_stored_and_the_last_one_may_be_short(party: Store, pairs: Strategy) -> None:
    heard: list[tuple[int, int]] = []
    made = built(party, pairs, heard)
    assert (made.clips, made.total) == (5, 5)
    assert heard == [(0, 5), (2, 5), (4, 5), (5, 5)]
    nodes = [row for row in rows(party) if row["row"] == "node_revision"]
    assert [(n["number"], n["from_clip"]) for n in nodes] == [(0, 1), (1, 3), (2, 4)]
    assert nodes[0]["text"].startswith("Ann opens")
    assert built(party, pairs).clips == 0


def test_a_step_is_taken_again_from_what_is_stored_after_a_model_failed(
    party: Store, pairs: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(party, pairs)
    whole = rows(party)
    with party.begin() as session:
        cut_builds(session, PARTY, [0])
    monkeypatch.setattr("flows.executors.BACK_OFF_S", (0.0, 0.0))
    fails = [False, True, False, True, True, False]
    kind = import_module("strategies.first_lines.strategy").PairBuild
    step = kind.step

    def failing(run: Any, clips: Any, *, ended: bool) -> Any:
        change = step(run, clips, ended=ended)  # It counts on, as if this were stored.
        if fails.pop(0):
            raise ModelError("the model is busy")
        return change

    monkeypatch.setattr(kind, "step", failing)
    assert (built(party, pairs).clips, fails, rows(party)) == (5, [], whole)


def test_nothing_is_built_upon_clip_that_waits_for_its_model(party: Store, pairs: Strategy) -> None:
    for unwritten, clips, remark in (
        (True, 2, "first-lines waits for the model to write clip 3"),
        (False, 3, ""),
    ):
        with party.begin() as session:
            session.execute(update(ClipRow).where(ClipRow.clip == 3).values(unwritten=unwritten))
        made = built(party, pairs)
        assert (made.clips, made.remark) == (clips, remark)


@pytest.mark.parametrize("point", [FaultPoint.BUILD_ROWS, FaultPoint.BUILD_COMMITTED])
@pytest.mark.parametrize("step", sample([2], [1, 2, 3]))
def test_a_killed_build_goes_on_to_the_same_rows(
    party: Store, pairs: Strategy, monkeypatch: pytest.MonkeyPatch, point: FaultPoint, step: int
) -> None:
    built(party, pairs)
    whole = rows(party)
    with party.begin() as session:
        cut_builds(session, PARTY, [0])
    with killed_at(monkeypatch, point, step):
        built(party, pairs)
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


@pytest.mark.parametrize("other", ["build", "forgetting"])
def test_what_happens_to_a_video_while_it_is_built_does_not_mix(
    party: Store, pairs: Strategy, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """A step may quote a person who is forgotten before it is stored, also the first step."""

    def overtaken(video: Any, lines: Any, *rest: Any) -> Any:
        clips = watched_clips(video, lines, *rest)
        monkeypatch.setattr("flows.build.watched_clips", watched_clips)
        if other == "build":
            built(party, pairs)
        else:
            with party.begin() as session:
                record_deed(session, Deed.FORGOT, f"{PARTY} person 1")
        return clips

    monkeypatch.setattr("flows.build.watched_clips", overtaken)
    monkeypatch.setattr("flows.executors.BACK_OFF_S", ())
    with pytest.raises(Busy, match={"build": "another homer", "forgetting": "erased"}[other]):
        built(party, pairs)
    with party.begin() as session:
        assert built_through(session, PARTY, "first-lines") == (4 if other == "build" else -1)


def test_a_strategy_without_a_memory_of_its_own_says_so(party: Store) -> None:
    with pytest.raises(InputError, match="plain-rag builds no memory of its own"):
        built(party, find_strategy("plain-rag"))


WEEK = (
    "I put the cup on the table",
    "Lucia waters the plants in the kitchen",
    "I talk with Katrina about dinner",
    "Shure plays the guitar in the living room",
    "I open the fridge and take the milk",
)
COFFEE = "Lucia drinks coffee with Alice"
MINUTES, PAUSE = 75, 30
"""The length of the day, and clips from one coffee to the next: a quarter of an hour."""


@pytest.fixture
def day(store: Store) -> Store:
    """Captions of more than an hour, with coffee every quarter of it."""
    texts = [WEEK[n % len(WEEK)] if n % PAUSE else COFFEE for n in range(2 * MINUTES)]
    clips = [[Said(text, 3, source="caption")] for text in texts]
    clips[0] += [Said("Good morning", 9, speaker=name) for name in ("Lucia", "Alice")]
    watch(store, PARTY, clips)
    ended(store)
    return store


def worlds(store: Store, as_of_ms: int | None) -> dict[str, list[str]]:
    """The texts of captions by scale, and what lasts, as of a moment."""
    with store.begin() as session:
        last = memory_view(session, [PARTY], as_of_ms).scopes[0].last_clip
        memory = read_built(session, PARTY, "worldmm")
    texts: dict[str, list[str]] = {}
    for node in memory.nodes:
        if node.from_clip <= last:
            texts.setdefault(node.level, []).append(node.text)
    lasting = [
        r.text
        for r in memory.relations
        if r.level == "semantic" and r.from_clip <= last and (r.to_clip or last + 1) > last
    ]
    return texts | {"semantic": sorted(lasting)}


def test_captions_at_four_scales_and_what_recurs(day: Store) -> None:
    built(day, find_strategy("worldmm"))
    texts = worlds(day, None)
    counts = {level: len(found) for level, found in texts.items() if level != "semantic"}
    assert counts == {"30 s": 150, "180 s": 25, "600 s": 8, "3600 s": 2}
    assert all(len(text.splitlines()) <= 8 for text in texts["3600 s"])
    assert texts["semantic"] == ["Lucia drink coffee", "Lucia drink with Alice"]


def test_as_of_a_moment_there_is_what_was_known_then(day: Store) -> None:
    built(day, find_strategy("worldmm"))
    early = worlds(day, 20 * 60_000)
    assert {level: len(found) for level, found in early.items() if level != "semantic"} == {
        "30 s": 40,
        "180 s": 6,
        "600 s": 2,
    }
    whole = worlds(day, None)
    for level, texts in early.items():
        if level != "semantic":
            assert whole[level][: len(texts)] == texts


@pytest.mark.full
def test_a_cut_build_is_built_again_to_the_same_rows(day: Store) -> None:
    strategy = find_strategy("worldmm")
    built(day, strategy)
    whole = rows(day)
    with day.begin() as session:
        cut_builds(session, PARTY, [40])
    assert len(rows(day)) < len(whole)
    built(day, strategy)
    assert rows(day) == whole


@pytest.mark.full
def test_a_build_goes_on_after_a_deleted_clip(day: Store) -> None:
    strategy = find_strategy("worldmm")
    built(day, strategy)
    with day.begin() as session:
        cut_builds(session, PARTY, [40])
        session.execute(delete(MemoryRow).where(MemoryRow.clip == 39))
        session.execute(update(ClipRow).where(ClipRow.clip == 39).values(state="deleted"))
    built(day, strategy)
    nodes = [(r["level"], r["number"]) for r in rows(day) if r["row"] == "node_revision"]
    assert len(nodes) == len(set(nodes))


def test_with_another_encoder_all_is_built_anew(party: Store) -> None:
    strategy = find_strategy("worldmm")
    assert built(party, strategy).clips == 5
    before = rows(party)
    with party.begin() as session:
        session.execute(update(BuildRow).values(encoder="another"))
    with Runner(party, WordToolbox()) as runner:
        question = Question(text="What does Bob play?", videos=(PARTY,))
        asked = runner.ask(question, strategy=strategy.name)
    with party.begin() as session:
        events = events_of(session, asked.trajectory_id)
    refused = [event.refused for event in events if isinstance(event, EvidenceRetrieved)]
    assert all("has vectors of another" in why and "homer build" in why for why in refused)
    assert (built(party, strategy).clips, rows(party)) == (5, before)
