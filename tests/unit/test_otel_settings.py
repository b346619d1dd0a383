"""What a collector of traces and metrics is told: by conventional names, and never content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from telemetry import tracing
from telemetry.otel import CONTENT, content_wanted, wanted
from telemetry.tracing import Metric, Work, attributes, bind_ids
from tests.support.telemetry_exporters import Exported

VIDEO = "0123456789abcdef"
KINDS = ("TRACES", "METRICS")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    monkeypatch.delenv(CONTENT, raising=False)
    found = Exported()
    tracing.export_to(found.traces, found.metrics)
    yield found
    tracing.export_to()


def call(**more: Any) -> None:
    output = {
        "model": "openai:gpt",
        "provider": "openai",
        "purpose": "plan",
        "tokens_in": 7,
        **more,
    }
    with tracing.span(Work.CALL, **output):
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
    output = dict(sent.spans()["chat openai:gpt"].attributes or {})
    assert output == {
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


def say() -> dict[str, str]:
    return {"input": "what Ann said"}


@pytest.mark.parametrize(
    ("asked", "output"), [("", False), ("false", False), ("true", True), (" SPAN_ONLY ", True)]
)
def test_words_go_only_if_asked(monkeypatch: pytest.MonkeyPatch, asked: str, output: bool) -> None:
    monkeypatch.setenv(CONTENT, asked)
    found = Exported()
    tracing.export_to(found.traces, content=content_wanted())
    with tracing.span(Work.CALL, model="m") as span:
        span.content = say
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
    assert {one["homer.stage"] for _, one in points["homer.stage.duration"]} == {
        "perceive",
        "build windows",
    }
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
