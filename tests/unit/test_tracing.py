"""Spans carry their ids to what happens inside, in whichever thread, and tell how they end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.run_context import Rounds
from domain.media import Video
from telemetry import tracing
from telemetry.ingest_spans import ClipSpans, stage
from telemetry.tracing import Number, Span, Work

VIDEO = Video(id="0123456789abcdef", title="t", path="p", duration_ms=5_000)


class Heard:
    """Keeps what it is told, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.numbers: list[tuple[Number, float, tracing.Fields]] = []

    def began(self, span: Span) -> None:
        self.told.append(f"+{span.name}")

    def inside(self, span: Span) -> AbstractContextManager[object]:
        del span
        return nullcontext()

    def ended(self, span: Span, error: BaseException | None) -> None:
        self.told.append(f"-{span.name}" + (f" {type(error).__name__}" if error else ""))

    def number(self, number: Number, value: float, fields: tracing.Fields) -> None:
        self.numbers.append((number, value, fields))


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    one = Heard()
    monkeypatch.setattr(tracing, "observers", [one])
    yield one
    assert tracing.about() == {}


def test_what_happens_inside_is_about_the_same_video(heard: Heard) -> None:
    with tracing.span(Work.FLOW, "ingest", video=VIDEO.id):
        with tracing.span(Work.CLIP, clip=3):
            assert tracing.about() == {"video": VIDEO.id, "clip": 3}
        assert tracing.about() == {"video": VIDEO.id}
    assert heard.told == ["+ingest", "+clip", "-clip", "-ingest"]


def test_a_failure_is_told_and_goes_on_its_way(heard: Heard) -> None:
    with pytest.raises(ValueError, match="no"), tracing.span(Work.SEARCH):
        raise ValueError("no")
    assert heard.told == ["+search", "-search ValueError"]


def test_nobody_listens_and_ids_are_carried_all_the_same() -> None:
    with tracing.span(Work.QUESTION, trajectory="fedcba9876543210"):
        assert tracing.about() == {"trajectory": "fedcba9876543210"}


@given(st.text(max_size=40))
def test_an_id_made_of_a_file_s_name_is_not_told(name: str) -> None:
    told = tracing.unnamed(name)
    assert tracing.unnamed(told) == told
    assert len(str(told)) == 16
    assert len(name) < 3 or name not in str(told)


def test_the_same_name_is_told_in_the_same_way() -> None:
    assert tracing.unnamed("Anna's wedding") == tracing.unnamed("Anna's wedding")
    assert tracing.unnamed(VIDEO.id) == VIDEO.id
    assert tracing.unnamed(7) == 7


def test_a_clip_has_one_span_however_its_steps_are_spread(heard: Heard) -> None:
    seen = []

    class Watching:
        video = VIDEO

        @stage("perceive")
        def step(self) -> None:
            seen.append(dict(tracing.about()))

    def ahead() -> Future[None]:
        return beside.submit(partial(copy_context().run, Watching().step))

    with ClipSpans(VIDEO, 2_000) as clips, ThreadPoolExecutor(1) as beside:
        clips.during(0, ahead).result()
        clips.during(0, Watching().step)
        clips.during(1, ahead).result()
        clips.end(0, None)
        clips.end(1, ValueError())
    assert [s.get("clip") for s in seen] == [0, 0, 1]
    assert heard.told.count("+clip") == 2
    assert heard.told[-2:] == ["-clip", "-clip ValueError"]
    assert [(n, v) for n, v, _ in heard.numbers] == [
        (Number.LAG_S, 3.0),
        (Number.CLIPS, 1),
        (Number.LAG_S, 1.0),
        (Number.FAILURES, 1),
    ]


def test_a_clip_that_was_begun_ahead_is_ended_when_the_watching_breaks_off(heard: Heard) -> None:
    clips = ClipSpans(VIDEO, 2_000)
    clips.during(0, int)
    clips.during(1, int)
    with pytest.raises(KeyboardInterrupt), clips:
        raise KeyboardInterrupt
    assert heard.told == ["+clip", "+clip", "-clip KeyboardInterrupt", "-clip KeyboardInterrupt"]


def test_a_round_lasts_from_its_action_to_its_record(heard: Heard) -> None:
    rounds, inside = Rounds(), []
    walk = [("plan", 0), ("schedule", 0), ("act", 1), ("guard", 1), ("act", 1), ("retrieve", 1)]
    for step, number in [*walk, ("progress", 1), ("act", 2), ("answer", 2), ("finish", 2)]:
        with rounds.during(step, number):
            inside.append(tracing.about().get("round"))
    assert inside == [None, None, 1, 1, 1, 1, None, 2, 2, None]
    assert heard.told == ["+round", "-round", "+round", "-round"]
