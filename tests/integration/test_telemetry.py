"""What a collector is sent of watching and asking: the tree of spans, the numbers, no content."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from models.profile import load_profile
from models.toolbox import Toolbox
from services.health import check_setup
from store.database import Store
from store.home import Home
from telemetry import otel, tracing
from telemetry.tracing import Work
from tests.support.markup_video import plant
from tests.support.media import make_video
from tests.support.otlp_collector import Collector, Seen

MARK = "evil"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as found:
        monkeypatch.setenv(otel.ENDPOINT, found.url)
        yield found


def sending() -> list[Any]:
    """Export from this process, as ``start_export`` does; return what is to be shut down."""
    traces, meters = otel.tracer_provider(), otel.meter_provider()
    tracing.export_to(traces, meters, content=otel.content_wanted())
    return [traces, meters]


def test_watching_and_asking_are_a_tree_without_content(
    home: Home, store: Store, toolbox: Toolbox, tmp_path: Path, collector: Collector
) -> None:
    small = {"clip_ms": 2000, "sample_fps": 2.0, "keyframes": 1}
    watch = toolbox.profile.settings.watch.model_copy(update=small)
    settings = toolbox.profile.settings.model_copy(update={"watch": watch})
    profile = toolbox.profile.model_copy(update={"settings": settings})
    providers = sending()
    video = make_video(tmp_path / f"{MARK}.mp4", seconds=3.0, fps=5, gop=5)
    # First what is asked: its words are encoded by the test's own encoder.
    asked = plant(store, str(video))
    workspace = Workspace(home, store, profile, toolbox)
    (outcome,) = watch_files(workspace, [video], SilentListener(), direct=True)
    watched = outcome.video
    otel.shut_down(providers)
    spans = collector.spans()
    (flow,) = named(spans, "ingest")
    assert flow.parent is None
    assert (flow.attributes["homer.video"], flow.attributes["homer.fresh"]) == (watched, 2)
    clips = named(below(spans, flow), "clip")
    assert sorted(one.attributes["homer.clip"] for one in clips) == [0, 1]
    for clip in clips:
        assert sorted(one.name for one in below(spans, clip)) == ["perceive", "remember"]
        assert {one.attributes["homer.clip"] for one in below(spans, clip)} == {
            clip.attributes["homer.clip"]
        }
    assert [one.name for one in below(spans, flow) if one not in clips] == ["build windows"]
    (question,) = named(spans, "question")
    assert question.attributes["homer.trajectory"] == asked
    assert question.attributes["gen_ai.operation.name"] == "invoke_agent"
    rounds = named(below(spans, question), "round")
    numbers = [one.attributes["homer.round"] for one in rounds]
    assert numbers == list(range(1, question.attributes["homer.rounds"] + 1))
    for one in rounds:
        parts = [part.name.split()[0] for part in below(spans, one)]
        assert parts[0] == "chat"
        assert set(parts) <= {"chat", "search"}
    searches = [one for r in rounds for one in below(spans, r) if one.name.startswith("search")]
    assert searches
    assert all(one.attributes["homer.found"] >= 0 for one in searches)
    calls = [one for one in spans if one.name.startswith("chat")]
    assert len({one.trace for one in [question, *rounds, *searches, *calls]}) == 1
    plan = named(below(spans, question), "chat test")[0]
    output = plan.attributes
    assert (output["gen_ai.operation.name"], output["gen_ai.provider.name"]) == ("chat", "openai")
    assert output["gen_ai.request.model"] == "test"
    assert output["gen_ai.usage.input_tokens"] > 0
    assert output["gen_ai.usage.output_tokens"] > 0
    assert output["gen_ai.request.temperature"] == pytest.approx(0.2)
    assert (output["homer.purpose"], plan.kind) == ("plan", 3)
    found = collector.metrics()
    assert [point.as_int for _, point in found["homer.clips"]] == [2]
    assert found["homer.lag"][0][0] == {"homer.video": watched}
    assert found["homer.lag"][0][1].as_double == 0
    tokens = {
        about["gen_ai.token.type"]: point for about, point in found["gen_ai.client.token.usage"]
    }
    assert tokens["input"].sum > tokens["output"].sum > 0
    assert {about["homer.mode"] for about, _ in found["homer.search.duration"]} >= {"event"}
    assert {about["homer.stage"] for about, _ in found["homer.stage.duration"]} == {
        *("perceive", "remember", "build windows")
    }
    for name, points in found.items():
        for about, _point in points:
            assert name == "homer.lag" or not {"homer.video", "homer.trajectory"} & about.keys()
    for path, body in collector.raw:
        assert MARK.encode() not in body, path
        assert str(home.root).encode() not in body, path
    assert {one["service.name"] for one in collector.resources()} == {"homer"}


def below(spans: list[Seen], span: Seen) -> list[Seen]:
    return [one for one in spans if one.parent == span.id]


def named(spans: list[Seen], name: str) -> list[Seen]:
    return [one for one in spans if one.name == name]


@pytest.mark.parametrize(("asked_for", "sent"), [("", False), ("false", False), ("true", True)])
def test_words_go_along_only_where_they_are_asked_for(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, asked_for: str, sent: bool
) -> None:
    monkeypatch.setenv(otel.CONTENT, asked_for)
    providers = sending()
    with tracing.span(Work.CALL, "model call", model="m") as call:
        call.content = lambda: {"input": '["who?"]', "output": '"Ann"'}
    otel.shut_down(providers)
    (span,) = collector.spans()
    assert ("gen_ai.input.messages" in span.attributes) is sent
    assert any(b"Ann" in body for _, body in collector.raw) is sent


PROBE = """
import sys
from pathlib import Path
from telemetry import tracing
from telemetry.logs import set_up_telemetry
from store.home import Home
set_up_telemetry(Home(Path(sys.argv[1])))
with tracing.span(tracing.Work.FLOW, "ingest"):
    pass
sdk = ("opentelemetry.sdk", "opentelemetry.exporter")
print(*[name for name in sys.modules if name.startswith(sdk)])
"""


def run(home: Path, environment: dict[str, str]) -> str:
    command = [sys.executable, "-c", PROBE, str(home)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_without_a_collector_no_sdk_is_imported(tmp_path: Path) -> None:
    assert run(tmp_path, {}).split() == []


def test_a_process_sends_what_is_left_when_it_ends(tmp_path: Path) -> None:
    with Collector() as found:
        loaded = run(tmp_path, {otel.ENDPOINT: found.url, "OTEL_SERVICE_NAME": "house"})
    assert "opentelemetry.sdk.trace" in loaded
    assert [one.name for one in found.spans()] == ["ingest"]
    assert found.resources()[0]["service.name"] == "house"


def test_a_collector_that_is_away_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    run(tmp_path, {otel.ENDPOINT: "http://127.0.0.1:1"})
    assert time.monotonic() - began < 30


def test_doctor_says_what_is_missing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.health._database", lambda _home: checks_of(home)[:1])
    assert "telemetry" not in [one.what for one in check_setup(home, load_profile("local"))]
    monkeypatch.setenv(otel.ENDPOINT, "http://c")
    monkeypatch.setattr(otel, "NEEDED", "opentelemetry.exporter.gone")
    output = {one.what: one for one in check_setup(home, load_profile("local"))}["telemetry"]
    assert (output.ok, "opentelemetry-sdk" in output.fix) == (False, True)


def checks_of(home: Home) -> list[Any]:
    from services.health import Check

    return [Check("database", True, str(home.root))]
