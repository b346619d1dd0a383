"""Spans carry their ids to what happens inside, in whichever thread, and tell how they end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.run_context import Rounds
from domain.media import Video
from telemetry import tracing
from telemetry.ingest_spans import ClipSpans, traced_step
from telemetry.tracing import Work, current_ids, mask_id
from tests.support.telemetry_exporters import Exported

VIDEO = Video(id="0123456789abcdef", title="t", path="p", duration_ms=5_000)


@pytest.fixture
def exported() -> Iterator[Exported]:
    found = Exported()
    tracing.export_to(found.traces, found.metrics)
    yield found
    assert current_ids() == {}


def test_what_happens_inside_is_about_the_same_video(exported: Exported) -> None:
    with tracing.span(Work.FLOW, "ingest", video=VIDEO.id):
        with tracing.span(Work.CLIP, clip=3):
            assert current_ids() == {"video": VIDEO.id, "clip": 3}
        assert current_ids() == {"video": VIDEO.id}
    assert exported.log == ["+ingest", "+clip", "-clip", "-ingest"]


@given(st.text(max_size=40))
def test_an_id_made_of_a_file_s_name_is_not_told(name: str) -> None:
    output = mask_id(name)
    assert mask_id(output) == output
    assert len(str(output)) == 16
    assert len(name) < 3 or name not in str(output)


def test_the_same_name_is_reported_in_the_same_way() -> None:
    assert mask_id("Anna's wedding") == mask_id("Anna's wedding")
    assert mask_id(VIDEO.id) == VIDEO.id
    assert mask_id(7) == 7


def test_a_clip_has_one_span_however_its_steps_are_spread(exported: Exported) -> None:
    seen = []

    class Watching:
        video = VIDEO

        @traced_step("perceive")
        def step(self) -> None:
            seen.append(dict(current_ids()))

    def ahead() -> Future[None]:
        return beside.submit(partial(copy_context().run, Watching().step))

    with ClipSpans(VIDEO, 2_000) as clips, ThreadPoolExecutor(1) as beside:
        clips.run(0, ahead).result()
        clips.run(0, Watching().step)
        clips.run(1, ahead).result()
        clips.end(0, None)
        assert exported.points()["homer.lag"] == [(3.0, {"homer.video": ""})]
        clips.end(1, ValueError())
    assert [s.get("clip") for s in seen] == [0, 0, 1]
    assert exported.log.count("+clip") == 2
    assert exported.log[-2:] == ["-clip", "-clip ValueError"]
    points = exported.points()
    assert points["homer.lag"] == [(1.0, {"homer.video": ""})]
    assert points["homer.clips"] == [(1, {})]
    assert points["homer.failures"] == [(1, {"error.type": "ValueError"})]


def test_a_clip_begun_ahead_is_ended_when_the_ingestion_breaks_off(exported: Exported) -> None:
    clips = ClipSpans(VIDEO, 2_000)
    clips.run(0, int)
    clips.run(1, int)
    with pytest.raises(KeyboardInterrupt), clips:
        raise KeyboardInterrupt
    assert exported.log == ["+clip", "+clip", "-clip KeyboardInterrupt", "-clip KeyboardInterrupt"]


def test_a_round_lasts_from_its_action_to_its_record(exported: Exported) -> None:
    rounds, inside = Rounds(), []
    walk = [("plan", 0), ("schedule", 0), ("act", 1), ("guard", 1), ("act", 1), ("retrieve", 1)]
    for step, number in [*walk, ("progress", 1), ("act", 2), ("answer", 2), ("finish", 2)]:
        with rounds.during(step, number):
            inside.append(current_ids().get("round"))
    assert inside == [None, None, 1, 1, 1, 1, None, 2, 2, None]
    assert exported.log == ["+round", "-round", "+round", "-round"]
