"""Spans, what a collector is told of them, and what of a record is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanKind, StatusCode

from agent.run_context import Rounds
from domain.media import Video
from telemetry import redaction, tracing
from telemetry.otel import CONTENT, content_wanted, wanted
from telemetry.tracing import Metric, Work, attributes, bind_ids, current_ids, mask_id
from tests.support.telemetry_exporters import Exported

VIDEO = "0123456789abcdef"
KINDS = ("TRACES", "METRICS")
VIDEO_OF_TRACING = Video(id="0123456789abcdef", title="t", path="p", duration_ms=5_000)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    monkeypatch.delenv(CONTENT, raising=False)
    found = Exported()
    tracing.export_to(found.traces, found.metrics)
    yield found
    tracing.export_to()


def call(**more: Any) -> None:
    said = {"model": "openai:gpt", "provider": "openai", "purpose": "plan", "tokens_in": 7, **more}
    with tracing.span(Work.CALL, **said):
        pass


def test_what_happens_inside_is_a_child(sent: Exported) -> None:
    with tracing.span(Work.QUESTION, trajectory=VIDEO), tracing.span(Work.ROUND, round=1):
        call()
    spans = sent.spans()
    top, step, asked = spans["question"], spans["round"], spans["chat openai:gpt"]
    assert top.parent is None
    assert step.parent is not None
    assert asked.parent is not None
    assert step.parent.span_id == top.context.span_id
    assert asked.parent.span_id == step.context.span_id
    assert (asked.kind, step.kind) == (SpanKind.CLIENT, SpanKind.INTERNAL)


def test_a_call_goes_by_the_names_of_the_conventions(sent: Exported) -> None:
    with bind_ids(trajectory=VIDEO):
        call(tokens_out=3, temperature=0.5)
    assert dict(sent.spans()["chat openai:gpt"].attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "openai:gpt",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "homer.purpose": "plan",
        "homer.trajectory": VIDEO,
    }


def test_only_a_call_has_them(sent: Exported) -> None:
    span = tracing.begin(Work.STAGE, "perceive", model="whisper", video=VIDEO)
    assert attributes(span) == {"homer.model": "whisper", "homer.video": VIDEO}
    assert attributes(tracing.begin(Work.QUESTION))["gen_ai.agent.name"] == "homer"
    search = tracing.begin(Work.SEARCH, mode="event")
    assert attributes(search) == {"gen_ai.operation.name": "retrieval", "homer.mode": "event"}


def test_an_error_is_reported_by_its_class_and_nothing_it_says(sent: Exported) -> None:
    with pytest.raises(ValueError, match="Ann's secret"), tracing.span(Work.CLIP):
        raise ValueError("Ann's secret")
    span = sent.spans()["clip"]
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "ValueError"
    assert not span.events
    assert "secret" not in span.to_json()


@pytest.mark.parametrize(
    ("asked", "output"), [("", False), ("false", False), ("true", True), (" SPAN_ONLY ", True)]
)
def test_words_go_only_if_asked(monkeypatch: pytest.MonkeyPatch, asked: str, output: bool) -> None:
    monkeypatch.setenv(CONTENT, asked)
    found = Exported()
    tracing.export_to(found.traces, content=content_wanted())
    with tracing.span(Work.CALL, model="m") as span:
        span.content = lambda: {"input": "what Ann said"}
    shown = found.spans()["chat m"].attributes or {}
    assert shown.get("gen_ai.input.messages") == ("what Ann said" if output else None)


def test_calls_are_measured_in_seconds_and_tokens_by_model(sent: Exported) -> None:
    with bind_ids(trajectory=VIDEO, video=VIDEO):
        call(tokens_out=3)
        call()
    points = sent.points()
    ((count, about),) = points["gen_ai.client.operation.duration"]
    assert count == 2
    assert about == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "openai:gpt",
        "gen_ai.provider.name": "openai",
    }
    tokens = {one["gen_ai.token.type"]: n for n, one in points["gen_ai.client.token.usage"]}
    assert tokens == {"input": 2, "output": 1}


def test_steps_are_distinguished_by_name_and_failures_by_class(sent: Exported) -> None:
    for name in ("perceive", "build windows"):
        with tracing.span(Work.STAGE, name, clip=3):
            pass
    with pytest.raises(OSError, match="x"), tracing.span(Work.SEARCH, mode="video"):
        raise OSError("x")
    points = sent.points()
    found = {one["homer.stage"] for _, one in points["homer.stage.duration"]}
    assert found == {"perceive", "build windows"}
    ((_, about),) = points["homer.search.duration"]
    assert (about["error.type"], about["homer.mode"]) == ("OSError", "video")


def test_clips_and_failures_are_counted_and_the_lag_is_the_last_one(sent: Exported) -> None:
    tracing.measure(Metric.CLIPS)
    tracing.measure(Metric.CLIPS, 2)
    tracing.measure(Metric.FAILURES, error="MediaError")
    with bind_ids(video=VIDEO):
        tracing.measure(Metric.LAG_S, 9.5)
        tracing.measure(Metric.LAG_S, 2.5)
    points = sent.points()
    assert points["homer.clips"] == [(3, {})]
    assert points["homer.failures"] == [(1, {"error.type": "MediaError"})]
    assert points["homer.lag"] == [(2.5, {"homer.video": VIDEO})]


def test_without_traces_numbers_are_sent_and_without_metrics_spans() -> None:
    numbers, spans = Exported(), Exported()
    for exports in ((None, numbers.metrics), (spans.traces, None)):
        tracing.export_to(*exports)
        call()
        tracing.measure(Metric.CLIPS)
    assert (list(numbers.spans()), list(spans.spans())) == ([], ["chat openai:gpt"])
    assert set(numbers.points()) >= {"homer.clips", "gen_ai.client.token.usage"}
    assert spans.points() == {}


@pytest.mark.parametrize(
    ("environment", "traces", "metrics"),
    [
        ({}, False, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, True, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, True, False),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c"}, False, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, False, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"}, True, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, False, False),
        ({"OTEL_TRACES_EXPORTER": "console"}, False, False),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "True"}, False, False),
    ],
)
def test_the_standard_variables_say_what_is_sent(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], traces: bool, metrics: bool
) -> None:
    for name in ("OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for kind in KINDS:
        monkeypatch.delenv(f"OTEL_{kind}_EXPORTER", raising=False)
        monkeypatch.delenv(f"OTEL_EXPORTER_OTLP_{kind}_ENDPOINT", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert tuple(map(wanted, KINDS)) == (traces, metrics)


@pytest.fixture
def exported() -> Iterator[Exported]:
    found = Exported()
    tracing.export_to(found.traces, found.metrics)
    yield found
    assert current_ids() == {}


def test_what_happens_inside_is_about_the_same_video(exported: Exported) -> None:
    with tracing.span(Work.FLOW, "ingest", video=VIDEO_OF_TRACING.id):
        with tracing.span(Work.CLIP, clip=3):
            assert current_ids() == {"video": VIDEO_OF_TRACING.id, "clip": 3}
        assert current_ids() == {"video": VIDEO_OF_TRACING.id}
    assert exported.log == ["+ingest", "+clip", "-clip", "-ingest"]


@given(st.text(max_size=40))
def test_an_id_made_of_a_file_s_name_is_not_told(name: str) -> None:
    output = mask_id(name)
    assert mask_id(output) == output
    assert len(str(output)) == 16
    assert len(name) < 3 or name not in str(output)


def test_the_same_name_is_reported_in_the_same_way() -> None:
    assert mask_id("Anna's wedding") == mask_id("Anna's wedding")
    assert mask_id(VIDEO_OF_TRACING.id) == VIDEO_OF_TRACING.id
    assert mask_id(7) == 7


def test_a_clip_has_one_span_however_its_steps_are_spread(exported: Exported) -> None:
    seen = []

    class Watching:
        video = VIDEO_OF_TRACING

        @tracing.traced_step("perceive")
        def step(self) -> None:
            seen.append(dict(current_ids()))

    def ahead() -> Future[None]:
        return beside.submit(partial(copy_context().run, Watching().step))

    with tracing.ClipSpans(VIDEO_OF_TRACING, 2_000) as clips, ThreadPoolExecutor(1) as beside:
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
    clips = tracing.ClipSpans(VIDEO_OF_TRACING, 2_000)
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


MARK = "zQx7"
WORDS = st.text(max_size=12).map(lambda text: f"{text}{MARK}")
VALUES = st.recursive(
    WORDS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        *("mode", "purpose", "where", "message", "error", "cause", "trace", "video", "event"),
        *("kind", "clip", "ms", "answer", "level", "said", "round", "sqlstate"),
    ]
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=8)
AT = "2026-01-01T00:00:00.000+00:00"


@given(TABLES)
def test_no_word_of_an_event_is_shown(payload: dict[str, Any]) -> None:
    assert MARK not in json.dumps(redaction.redact_event(payload))


@given(TABLES)
def test_no_word_of_a_record_is_shown(fields: dict[str, Any]) -> None:
    line = json.dumps({"at": AT, "level": "info", "event": "clip done", **fields})
    assert MARK not in json.dumps(list(redaction.redact_log([line])))


@given(st.text())
def test_any_line_can_be_read(line: str) -> None:
    assert MARK not in json.dumps(
        list(redaction.redact_log([line, f"{AT} info clip done: {line}"]))
    )
    assert redaction.count_known_words([line])["lines"] == 1


@given(st.dictionaries(st.sampled_from("abc"), VALUES))
def test_no_word_of_a_setting_is_shown(table: dict[str, Any]) -> None:
    assert MARK not in json.dumps(redaction.numbers_of(table))


def test_both_forms_of_the_log_show_the_same() -> None:
    output = {"video": "0123456789abcdef", "clip": 3, "error": "OSError", "trace": ["OSError"]}
    as_json = json.dumps({"at": AT, "level": "info", "event": "clip done", **output})
    fields = 'video="0123456789abcdef" clip=3 error="OSError" trace=["OSError"]'
    first, second = redaction.redact_log([as_json, f"{AT} info clip done: {fields}"])
    assert first == second == {"at": AT, "level": "info", "event": "clip done", **output}


def test_an_error_is_classed_by_what_homer_says() -> None:
    assert redaction.error_kind("openai:x did not answer: Anna") == "the model did not answer"
    assert redaction.error_kind("Anna") == "something else"
    assert redaction.error_class("ModelError: Anna") == "ModelError"
    assert redaction.error_class("Anna: ModelError") is None
