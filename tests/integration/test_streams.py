"""Live streams in memory: clip by clip, asked meanwhile, broken off, stopped and taken up again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sqlalchemy import func, select
from typer.testing import CliRunner

from cli.main import app
from cli.render import render
from domain.errors import InputError, ModelError, SetupError
from domain.media import GapReason, StreamSettings, Video
from domain.rights import Deed
from domain.settings import HOUR_MS
from flows.live_stream import StreamIngestion, open_stream, watch_stream
from flows.perception_workers import WorkerPool
from flows.removal import delete_video_rows
from flows.workspace import Workspace
from library.memory import VideoDetails, dump_lines, show_video
from models.specs import ChatSpec
from models.toolbox import Toolbox
from perception.live import live_source
from perception.perceive_clip import perceive
from store.database import Store
from store.files import Slots
from store.home import Home
from store.queries.clips import memory_view
from store.queries.rights import audit_entries
from store.tables.schema import StreamClipRow, StreamGapRow, StreamRow
from tests.support.light_models import in_little_clips, light_toolbox
from tests.support.openai_server import OpenAIServer
from tests.support.streams import Camera, Fed, Hands, segment
from tests.support.worker_pools import limited


class Heard:
    """A listener that takes notes, and may do something at each clip."""

    def __init__(self, then: Callable[[int], None] = lambda _clip: None) -> None:
        self.notes: list[str] = []
        self._then = then

    def opened(self, video: Video, clips: int, done: int) -> None:
        self.notes.append(f"opened {clips} {done}")

    def remembered(self, video: Video, clip: int) -> None:
        self.notes.append(f"remembered {clip}")
        self._then(clip)

    def failed(self, video: Video, clip: int, error: Exception) -> None:
        self.notes.append(f"failed {clip}: {error}")

    def said(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Three seconds: a clip and a half."""
    return segment(tmp_path_factory.mktemp("streams"), "three", 3.0)


@pytest.fixture
def workspace(home: Home, store: Store, toolbox: Toolbox) -> Workspace:
    """A workspace over a fresh database: clips of two seconds, and little to look at in each."""
    stream = StreamSettings(gap_ms=500, waiting=3, connect_s=1, least_ms=400)
    return in_little_clips(home, store, toolbox, stream=stream)


@contextmanager
def opened(workspace: Workspace, fed: Fed) -> Iterator[StreamIngestion]:
    with (
        fed.feeding() as source,
        open_stream(workspace, source, stop=fed.stop, clock=fed.clock) as work,
    ):
        yield work


def watched(workspace: Workspace, fed: Fed, heard: Heard | None = None) -> VideoDetails:
    """The stream, watched to its end."""
    with opened(workspace, fed) as work:
        watch_stream(work, heard or Heard(), direct=True)
    return show_video(workspace.store, work.video.id)


def gaps(portrait: VideoDetails) -> list[tuple[int, int, GapReason]]:
    assert portrait.stream is not None
    found = portrait.stream.gaps
    return [(round(g.span.start_ms / 100), round(g.span.end_ms / 100), g.reason) for g in found]


def spans(portrait: VideoDetails) -> list[tuple[int, int]]:
    return [(round(c.span.start_ms / 100), round(c.span.end_ms / 100)) for c in portrait.clips]


def test_a_stream_with_a_break_is_one_video_with_a_gap_that_is_shown(
    workspace: Workspace, tmp_path: Path, three: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    portrait = watched(workspace, Fed(tmp_path / "door", [three, three], away_s=59))
    assert spans(portrait) == [(0, 20), (20, 30), (600, 620), (620, 630)]
    assert gaps(portrait) == [(30, 600, GapReason.LOST)]
    assert ([clip.state for clip in portrait.clips], portrait.state) == (["done"] * 4, "done")
    assert portrait.video.path is None
    assert portrait.stream is not None
    assert sum(one.tally.came for one in portrait.stream.clips.values()) == 60
    assert all(one.lag_ms is not None for one in portrait.stream.clips.values())
    render(portrait, json=False)
    shown = capsys.readouterr().out
    assert f"live from {tmp_path}/door, 1 gap, 0:5" in shown
    assert "gap     0:03-1:00  the connection was lost" in shown
    assert len(re.findall(r"\d+ frames came, \d looked at; .*lag \d+.0 s", shown)) == 4
    assert shown.index("clip 1 ") < shown.index("gap  ") < shown.index("clip 2 ")
    lines = list(dump_lines(workspace.store, portrait.video.id))
    assert len([line for line in lines if json.loads(line)["row"] == "clip"]) == 4
    (gap,) = (one.span for one in portrait.stream.gaps)
    kept = [clip.span for clip in portrait.clips]
    kept += [line.span for clip in portrait.clips for line in clip.lines]
    assert not any(span.overlap_ms(gap) for span in kept)
    delete_video_rows(workspace.store, portrait.video.id)
    with workspace.store.begin() as session:
        for table in (StreamRow, StreamClipRow, StreamGapRow):
            assert session.scalar(select(func.count()).select_from(table)) == 0


def test_question_sees_memory_of_now(workspace: Workspace, tmp_path: Path, three: bytes) -> None:
    fed = Fed(tmp_path / "door", [three])
    seen: list[int | str] = []

    def look(_clip: int) -> None:
        with workspace.store.begin() as session:
            seen.append(memory_view(session, [work.video.id]).scopes[0].last_clip)
        seen.append(show_video(workspace.store, work.video.id).state)

    with opened(workspace, fed) as work:
        watch_stream(work, Heard(look), direct=True)
    assert seen == [0, "watching", 1, "watching"]


def test_stopped_it_keeps_what_came(workspace: Workspace, tmp_path: Path, three: bytes) -> None:
    """The writer is still there: only being stopped ends this stream."""
    fed = Fed(tmp_path / "door", [three], stays=True)
    with opened(workspace, fed) as work:
        reported = watch_stream(work, Heard(lambda _clip: fed.stop.set()), direct=True)
    portrait = show_video(workspace.store, work.video.id)
    assert reported == "2 clips are kept, the last one as short as it was"
    assert spans(portrait)[0] == (0, 20)
    assert 25 <= spans(portrait)[1][1] <= 31
    assert [clip.state for clip in portrait.clips] == ["done"] * 2


def test_started_again_it_is_the_same(workspace: Workspace, tmp_path: Path, three: bytes) -> None:
    first = watched(workspace, Fed(tmp_path / "door", [three]))
    (tmp_path / "door").unlink()
    fed, heard = Fed(tmp_path / "door", [three]), Heard()
    fed.clock.ms += 120_000
    # A source that is known is tried until it answers: nothing is read before the first wait.
    fed.pieces.insert(0, three)
    again = watched(workspace, fed, heard)
    assert again.video.id == first.video.id
    with workspace.store.begin() as session:
        added = [(one.deed, one.subject) for one in audit_entries(session)]
    assert (added, heard.notes[0]) == ([(Deed.ADDED, first.video.id)], "opened 2 2")
    assert spans(again)[:3] == [(0, 20), (20, 30), (1200, 1220)]
    assert gaps(again)[0] == (30, 1200, GapReason.STOPPED)
    assert [clip.index for clip in again.clips] == list(range(len(again.clips)))


@pytest.mark.full
def test_a_clip_whose_process_died_is_forgotten_and_its_time_is_a_gap(
    workspace: Workspace, tmp_path: Path, three: bytes
) -> None:
    with opened(workspace, Fed(tmp_path / "door", [three])) as work:
        work.start_stream()
        assert work.take_up(wait=True) == 0
        work.perceive(0)
    (tmp_path / "door").unlink()
    later = Fed(tmp_path / "door", [three, three])
    later.clock.ms += 60_000
    portrait = watched(workspace, later)
    assert (spans(portrait)[0], gaps(portrait)[0]) == ((600, 620), (0, 600, GapReason.STOPPED))


def test_a_clip_that_cannot_be_watched_is_lost_and_said_so_and_hides_nothing(
    workspace: Workspace,
    tmp_path: Path,
    three: bytes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def never(raw: Any, *args: Any) -> Any:
        if raw.clip.index == 0:
            raise ModelError("it is away")
        return perceive(raw, *args)

    monkeypatch.setattr("flows.live_stream.perceive", never)
    monkeypatch.setattr("flows.executors.BACK_OFF_S", ())
    heard = Heard()
    portrait = watched(workspace, Fed(tmp_path / "door", [three]), heard)
    assert heard.notes == ["opened 0 0", "failed 0: it is away", "remembered 1"]
    assert [clip.state for clip in portrait.clips] == ["failed", "done"]
    assert portrait.clips[0].given_up
    assert portrait.last_clip == 1
    render(portrait, json=False)
    assert "clip 0  0:00-0:02  failed  it is away" in capsys.readouterr().out


@pytest.mark.full
def test_where_nobody_keeps_up_less_is_looked_at_and_each_clip_says_so(
    workspace: Workspace, tmp_path: Path, three: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each clip takes a minute by the clock; the source is said to be one that cannot wait."""
    fed = Fed(tmp_path / "door", [three, three, three])
    left_out: list[tuple[str, ...]] = []

    def slow(raw: Any, tools: Any, settings: Any, without: Any) -> Any:
        fed.clock.ms += 60_000
        left_out.append(without)
        return perceive(raw, tools, settings, without)

    monkeypatch.setattr("flows.live_stream.perceive", slow)
    store_record = StreamIngestion._store_record

    def impatient(work: StreamIngestion, clip: int) -> None:
        work._arrived[clip] = replace(work._arrived[clip], can_wait=False)
        store_record(work, clip)

    monkeypatch.setattr(StreamIngestion, "_store_record", impatient)
    portrait = watched(workspace, fed)
    assert portrait.stream is not None
    levels = [one.level for one in portrait.stream.clips.values()]
    assert (levels[0], levels) == (0, sorted(levels))
    assert levels[-1] >= 3
    assert left_out[-1][:2] == ("objects", "screen")
    reported = portrait.stream.clips
    assert reported[0].tally.sampled >= reported[len(reported) - 1].tally.sampled
    assert (
        sum(one.tally.came for one in reported.values())
        + sum(gap.frames for gap in portrait.stream.gaps)
        == 90
    )


def test_to_wait_for_a_place_on_the_machine_is_lag_and_what_that_leaves_out_is_a_gap(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command perceives, on a machine for one; the camera goes on meanwhile."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    workspace = replace(limited(workspace, 1), toolbox=light_toolbox(tmp_path / "notes"))
    clock, heard, place = Racing(), Heard(), ExitStack()
    camera = Camera([segment(tmp_path, "long", 12.0)])
    place.enter_context(Slots("perceive", 1).acquire())

    def let_go(_crew: WorkerPool, _seconds: float) -> None:
        assert heard.notes == ["opened 0 0"]
        while not any(gap.reason is GapReason.OVERRUN for gap in work._reader.pending_gaps):
            Event().wait(0.01)
        clock.ms += HOUR_MS
        place.close()

    monkeypatch.setattr(WorkerPool, "_wait", let_go)
    source = live_source(f"rtsp://{camera.place}/live")
    with open_stream(workspace, source, stop=Event(), clock=clock, away_s=0) as work:
        watch_stream(work, heard, direct=True)
    portrait = show_video(workspace.store, work.video.id)
    assert portrait.stream is not None
    reported = list(portrait.stream.clips.values())
    assert [clip.state for clip in portrait.clips] == ["done"] * len(reported)
    assert reported[0].lag_ms is not None
    assert reported[0].lag_ms >= HOUR_MS
    # The second had been begun before the first was told to be late.
    assert [one.level for one in reported[:3]] == [0, 0, 1]
    came = sum(one.tally.came for one in reported) + sum(gap.frames for gap in portrait.stream.gaps)
    assert 117 <= came <= 120


class Racing(Hands):
    """A clock with which nobody keeps up."""

    def now_ms(self) -> int:
        self.ms += 1000
        return self.ms


def test_a_stream_that_another_process_watches_is_refused(
    workspace: Workspace, tmp_path: Path, three: bytes
) -> None:
    fed = Fed(tmp_path / "door", [three])
    with opened(workspace, fed) as work:
        source = work._reader.source
        with (
            pytest.raises(InputError, match="being watched by another homer"),
            open_stream(workspace, source, stop=fed.stop),
        ):
            raise AssertionError("it is open twice")


def test_a_stream_goes_on_where_prefects_server_goes_away(
    workspace: Workspace, tmp_path: Path, three: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from httpx import ConnectError

    heard = Heard()
    with opened(workspace, Fed(tmp_path / "door", [three])) as work:

        def gone(*_: object, **__: object) -> bool:
            work.take_up(wait=True)  # The run had taken a clip up when its server went.
            raise ConnectError("refused")

        api = "http://127.0.0.1:9/api"
        monkeypatch.setattr("flows.live_stream.connect_to_prefect", lambda *_: api)
        monkeypatch.setattr("flows.live_stream.run_reported", gone)
        watch_stream(work, heard)
    assert heard.notes[1:] == [
        "going on without Prefect: ConnectError",
        "remembered 0",
        "remembered 1",
    ]


def test_the_command_says_in_a_line_what_is_wrong_and_never_the_password(
    home: Home, database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    address = "rtsp://me:hunter2@127.0.0.1:9/cam?key=hunter2"
    found = CliRunner().invoke(app, ["--debug", "watch", address, "--direct"])
    assert found.exit_code == SetupError.exit_code
    assert "rtsp://127.0.0.1:9/cam?key=...: cannot be reached" in found.stderr
    assert "hunter2" not in found.output + found.stderr + caplog.text
    assert CliRunner().invoke(app, ["videos"]).stdout == ""


def test_the_command_watches_a_pipe_and_says_what_it_kept(
    home: Home, database: str, tmp_path: Path, three: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home.root / "homer.toml").write_text(
        "[profiles.local.settings.watch]\nclip_ms = 2000\nsample_fps = 2.0\nkeyframes = 1\n"
    )
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    with Fed(tmp_path / "door", [three]).feeding() as source:
        command = ["watch", source.address, "--title", "door", "--direct", "--away", "0", "--json"]
        found = CliRunner().invoke(app, command)
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["clips"] == 2
    assert "door: clip 0 is in memory" in found.stderr


@pytest.mark.full
def test_a_model_sees_streams_as_files(workspace: Workspace, tmp_path: Path, three: bytes) -> None:
    reply = {"lines": [{"kind": "episodic", "text": "It goes on."}], "segments": []}
    with OpenAIServer(lambda _: reply) as server:
        spec = ChatSpec(model="openai:m", base_url=server.base_url, video=True)
        profile = workspace.profile.model_copy(update={"writer": "llm", "chat": {"default": spec}})
        shown = replace(
            workspace, profile=profile, toolbox=Toolbox(profile, workspace.toolbox.weights)
        ).with_clip_view("video")
        portrait = watched(shown, Fed(tmp_path / "door", [three]))
    assert {clip.state for clip in portrait.clips} == {"done"}
    kinds = [
        {part["type"] for part in request["messages"][1]["content"] if isinstance(part, dict)}
        for request in server.requests
    ]
    assert len([kind for kind in kinds if "video_url" in kind]) == len(portrait.clips)
