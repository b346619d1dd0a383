"""A model is shown frames or a video of each clip of a file, and the record has their digests."""

from __future__ import annotations

import base64
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner, Result

from cli.main import app
from domain.errors import InputError
from domain.media import Video
from domain.rights import Deed
from domain.settings import MemorySettings, Settings, WatchSettings
from domain.time import TimeSpan
from domain.watching import IngestEstimate, sum_of
from flows.build import build
from flows.estimate import estimate_file
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from library.memory import show_video
from library.trajectories import ingest_usage
from models.profile import Profile
from models.specs import ChatSpec, Price
from perception.cut_file import cut_file
from perception.source import clips_of, probe, video_id
from store.database import Store
from store.home import Home
from store.queries.videos import add_video, list_videos
from store.tables.schema import AuditRow, BlobRow, ClipRow, MessageRow
from strategies.registry import find_strategy
from tests.support.full_suite import in_full
from tests.support.light_models import LightToolbox
from tests.support.media import COLOURS, make_video
from tests.support.openai_server import Answer, OpenAIServer

REPLY = {"lines": [{"kind": "episodic", "text": "Colours follow each other."}], "segments": []}


def parts_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    content = request["messages"][-1]["content"]
    return content if isinstance(content, list) else []


def workspace(home: Home, store: Store, server: OpenAIServer, **memory: Any) -> Workspace:
    """A workspace whose model is the server's, and in which nobody is seen or heard."""
    price = Price(input=1.0, output=4.0)
    spec = ChatSpec(model="openai:m", base_url=server.base_url, video=True, price=price)
    settings = Settings(
        watch=WatchSettings(clip_ms=2_000, keyframes=1), memory=MemorySettings(**memory)
    )
    lacking = {"objects": "none", "sounds": "none"}
    profile = Profile(name="p", writer="llm", chat={"default": spec}, settings=settings, **lacking)
    notes = home.root / "notes"
    notes.mkdir()
    return Workspace(home, store, profile, LightToolbox(profile, notes))


def ingested(opened: Workspace, path: Path, server: OpenAIServer) -> list[dict[str, Any]]:
    """The requests for clips that a model was sent."""
    (outcome,) = watch_files(opened, [path], SilentListener(), direct=True)
    assert outcome.exit_code == 0
    return [one for one in server.requests if "Write the lines of this clip" in json.dumps(one)]


def labels_of(request: dict[str, Any]) -> list[str]:
    """The text before each picture, as in ``1. keyframe at 2.1 s``."""
    return [part["text"] for part in parts_of(request)[1::2]]


@pytest.mark.parametrize("view", ["keyframes", "frames", "video"])
def test_clip_is_shown_as_profile_says(home: Home, store: Store, tmp_path: Path, view: str) -> None:
    path = make_video(tmp_path / "colours.mp4", seconds=4.0, scene_s=0.5, silent=True)
    with OpenAIServer(lambda _: REPLY) as server:
        opened = workspace(home, store, server, clip_view=view, clip_frames=4)
        requests = ingested(opened, path, server)
    assert len(requests) == 2
    for request in requests:
        kinds = [part["type"] for part in parts_of(request)[1:]]
        more = {"keyframes": [], "frames": 3 * ["image_url"], "video": ["video_url"]}[view]
        assert [kind for kind in kinds if kind != "text"] == ["image_url", *more]
        assert kinds[::2] == ["text"] * (1 + len(more)), "each has its label before it"
    # Clips are written at a time, so the second one's request may come first.
    labels = max(map(labels_of, requests), key=lambda shown: float(shown[0].split()[3]))
    output = {"frames": "2. frame at 2.", "video": "2. the clip as a video with sound, from 2.0"}
    assert labels[0].startswith("1. keyframe at ")
    assert view == "keyframes" or labels[1].startswith(output[view])
    details = show_video(store, "colours")
    assert [clip.state for clip in details.clips] == ["done", "done"]
    assert [clip.left_out for clip in details.clips] == [(), ()]
    with store.begin() as session:
        blobs = set(session.scalars(select(BlobRow.sha256)))
        contents = list(session.scalars(select(MessageRow.content)))
    lists = [one["content"] for one in contents if isinstance(one["content"], list)]
    sent = [part for parts in lists for part in parts]
    digests = {part["sha256"] for part in sent if part["type"] != "text"}
    assert len(digests) == 2 * (1 + len(more))
    assert len(digests & blobs) == 2, "keyframes are stored, what is shown besides is not"


@pytest.mark.parametrize("erased", [False, True])
def test_an_event_is_shown_as_video(home: Home, store: Store, tmp_path: Path, erased: bool) -> None:
    """Not where something was erased: the file may still show that."""
    path = make_video(tmp_path / "colours.mp4", seconds=4.0, scene_s=0.5, silent=True)
    documents: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> Any:
        if "Write the lines of this event" not in json.dumps(request):
            return REPLY
        documents.append(request)
        return {"lines": ["Colours follow each other."]}

    with OpenAIServer(answer) as server:
        opened = workspace(home, store, server, clip_view="video").with_memory_of(("vam",))
        ingested(opened, path, server)
        if erased:
            with store.begin() as session:
                (video,) = list_videos(session)
                session.add(AuditRow(who="me", deed=Deed.DELETED, subject=video.id))
            documents.clear()
            build(opened, video.id, find_strategy("vam"), lambda *_: None, again=True)
    assert documents
    for request in documents:
        videos = [one for one in parts_of(request) if one["type"] == "video_url"]
        assert len(videos) == int(not erased)
        if not erased:
            assert "a video with sound, from 00:00" in labels_of(request)
            shown = tmp_path / "shown.mp4"
            shown.write_bytes(base64.b64decode(videos[0]["video_url"]["url"].partition(",")[2]))
            assert 1_500 < probe(shown).duration_ms < 2_500, "as long as a clip at most"


LINES = [
    {
        "kind": "episodic",
        "text": f"At this moment the colour is number {n}, and it stays so.",
        "start_s": n / 12,
        "end_s": n / 12 + 0.5,
    }
    for n in range(24)
]


def counting(request: dict[str, Any]) -> Answer:
    """A model that writes as many lines as it may, and counts like the dearest of models."""
    shown = parts_of(request)
    keyframes = [
        {"image": n, "text": f"A flat colour with a white bar, seen as picture {n} of the clip."}
        for n, part in enumerate(shown[1::2], 1)
        if "keyframe" in part["text"]
    ]
    reply = {"lines": LINES, "keyframes": keyframes}
    if "Write the lines of this clip" not in json.dumps(request):
        summary = "Colours follow each other. " * 6
        reply = {
            "segments": [
                {"label": f"Colours of part {n}", "summary": summary, "clips": list(clips)}
                for n, clips in enumerate((range(3), range(3, 6), range(6, 10)))
            ]
        }
    text = (
        json.dumps(request["messages"])
        if not shown
        else json.dumps([part.get("text", "") for part in shown] + request["messages"][:-1])
    )
    form = len(json.dumps(request.get("response_format", {})))
    images = sum(part["type"] == "image_url" for part in shown) * 1_100
    videos = sum(part["type"] == "video_url" for part in shown) * 2 * 300
    tokens = round((len(text) + form) / 3) + images + videos
    return Answer(reply, tokens=(tokens, round(len(json.dumps(reply)) / 4)))


@pytest.mark.full
@pytest.mark.parametrize("view", [in_full("keyframes"), in_full("frames"), "video"])
def test_ingestion_takes_the_estimate(home: Home, store: Store, tmp_path: Path, view: str) -> None:
    path = make_video(tmp_path / "colours.mp4", seconds=20.0, scene_s=0.5, silent=True)
    with OpenAIServer(counting) as server:
        opened = workspace(home, store, server, clip_view=view)
        estimate = estimate_file(opened, path)
        assert not server.requests
        with store.begin() as session:
            assert not session.scalars(select(ClipRow)).all()
        (outcome,) = watch_files(opened, [path], SilentListener(), direct=True)
        assert outcome.exit_code == 0
        used = ingest_usage(store, outcome.video)
        assert len(server.requests) == 11, "ten clips and a patch"
        assert (estimate.clips, used.clips) == (10, 10)
        assert used.images / used.clips == pytest.approx(estimate.images, rel=0.1)
        wanted = estimate.tokens_in + estimate.tokens_out
        assert (used.tokens_in + used.tokens_out) / used.clips == pytest.approx(wanted, rel=0.1)
        assert used.cost_usd == pytest.approx(estimate.cost_usd, rel=0.1)
        assert estimate.cost_usd is not None
        assert estimate.cost_usd > 0
        assert estimate.seconds > 0
        assert not estimate.model_timed
        again = estimate_file(opened, path)
        other = make_video(tmp_path / "other.mp4", seconds=20.0, scene_s=0.4, silent=True)
        known = estimate_file(opened, other)
    assert known.model_timed
    assert known.tokens_out == pytest.approx(used.tokens_out / used.clips, rel=0.01)
    assert (again.clips, str(again)) == (0, "colours: nothing to watch, it is in memory")
    assert f"{estimate.images:.1f} images and" in str(estimate)
    assert f"{used.images / used.clips:.1f} images and" in str(used)


def test_a_short_last_clip_is_estimated_by_itself(home: Home, store: Store, tmp_path: Path) -> None:
    path = make_video(tmp_path / "colours.mp4", seconds=8.2, scene_s=0.5, silent=True)
    with OpenAIServer(counting) as server:
        opened = workspace(home, store, server, clip_view="frames", strategies=())
        estimate = estimate_file(opened, path)
        (outcome,) = watch_files(opened, [path], SilentListener(), direct=True)
        used = ingest_usage(store, outcome.video)
    assert used.clips == estimate.clips == 5
    assert used.images / used.clips == pytest.approx(estimate.images, rel=0.05)
    assert used.tokens_in / used.clips == pytest.approx(estimate.tokens_in, rel=0.1)


@pytest.mark.full
def test_estimate_counts_subtitles_that_are_used(home: Home, store: Store, tmp_path: Path) -> None:
    path = make_video(tmp_path / "colours.mp4", seconds=20.0, scene_s=0.5, silent=True)
    cues = (f"00:{n:02}.000 --> 00:{n + 1:02}.000\nWord {n} " + "of many " * 40 for n in range(20))
    (tmp_path / "colours.vtt").write_text("WEBVTT\n\n" + "\n\n".join(cues) + "\n")
    with OpenAIServer(counting) as server:
        opened = workspace(home, store, server)
        without = estimate_file(opened, path)
        estimate = estimate_file(opened, path, subtitles="use")
        assert estimate.tokens_in > without.tokens_in + 200
        (outcome,) = watch_files(opened, [path], SilentListener(), direct=True, subtitles="use")
        used = ingest_usage(store, outcome.video)
        assert used.tokens_in / used.clips == pytest.approx(estimate.tokens_in, rel=0.1)
        assert estimate_file(opened, path).clips == 0
        with pytest.raises(InputError, match="was watched with"):
            estimate_file(opened, path, subtitles="ignore")


def test_without_a_model_only_time_is_told(home: Home, store: Store, tmp_path: Path) -> None:
    path = make_video(tmp_path / "colours.mp4", seconds=4.0, silent=True)
    with OpenAIServer() as server:
        opened = workspace(home, store, server)
        profile = opened.profile.model_copy(update={"writer": "local"})
        estimate = estimate_file(replace(opened, profile=profile), path)
    assert (estimate.clips, estimate.images, estimate.cost_usd) == (2, 0, 0)
    assert str(estimate).startswith("colours: 2 clips; about 0:0")
    both = sum_of([estimate, estimate])
    assert (both.clips, both.seconds) == (4, 2 * estimate.seconds)


def test_a_model_without_a_known_price_is_said_to_have_none() -> None:
    known = IngestEstimate(title="a", clips=1, tokens_in=10, cost_usd=0.5)
    unknown = IngestEstimate(title="b", clips=1, tokens_in=10, cost_usd=None)
    assert "at an unknown price" in str(unknown)
    assert sum_of([known, unknown]).cost_usd is None


def test_the_command_says_what_it_will_cost_and_then_what_it_took(
    home: Home, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_video(tmp_path / "one.mp4", seconds=4.0, silent=True)
    make_video(tmp_path / "two.mp4", seconds=6.0, silent=True)
    with OpenAIServer(counting) as server:
        opened = workspace(home, store, server)
        monkeypatch.setattr("flows.workspace.open_workspace", lambda *_: nullcontext(opened))
        ingest = ["ingest", str(tmp_path)]
        first = CliRunner().invoke(app, [*ingest, "--dry-run", "--clip-view", "keyframes"])
        assert not server.requests
        frames = CliRunner().invoke(app, [*ingest, "--dry-run"])
        as_json = CliRunner().invoke(app, [*ingest, "--dry-run", "--json"])
        then = CliRunner().invoke(app, [*ingest, "--direct"])
        with store.begin() as session:
            failed = update(ClipRow).where(ClipRow.clip == 1)
            session.execute(failed.values(state="failed", attempts=3))
        dry = ["ingest", str(tmp_path), "--dry-run", "--json"]
        left = CliRunner().invoke(app, dry)
        again = CliRunner().invoke(app, [*dry, "--again"])
        (tmp_path / "one.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nHello.\n")
        other = CliRunner().invoke(app, [*dry, "--subtitles", "use"])
    assert [row["clips"] for row in json.loads(left.stdout)] == [0, 0]
    assert [row["clips"] for row in json.loads(again.stdout)] == [1, 1]
    assert (other.exit_code, "one was watched with no subtitles" in other.stderr) == (2, True)
    assert (first.exit_code, then.exit_code) == (0, 0)
    one, two = first.stdout.splitlines()
    assert one.startswith("one: 2 clips; 1.0 images and ")
    assert " in all besides the model's replies" in one
    assert two.startswith("two: 3 clips; ")
    assert "images and" in frames.stdout
    assert "; 1.0 images and" not in frames.stdout
    assert "together: 5 clips; " in first.stderr
    assert [row["clips"] for row in json.loads(as_json.stdout)] == [2, 3]
    assert "one: watched (2 clips, id" in then.stdout
    assert "); 2.0 images and " in then.stdout


def test_a_file_that_is_no_video_costs_nothing_and_is_said(
    home: Home, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.mp4").write_bytes(b"no video")
    with OpenAIServer() as server:
        opened = workspace(home, store, server)
        monkeypatch.setattr("flows.workspace.open_workspace", lambda *_: nullcontext(opened))
        told = CliRunner().invoke(app, ["ingest", str(tmp_path / "odd.mp4"), "--dry-run"])
    assert (told.exit_code, told.stdout) == (2, "")
    assert "odd.mp4" in told.stderr


# Spans that are cut out of real files.


def colours(path: Path) -> list[int]:
    """The colour that each picture shows, by its place in COLOURS."""
    found = []
    info = probe(path)
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            middle = info.upright.pixels(frame).reshape(-1, 3).astype(float).mean(axis=0)
            found.append(int(np.abs(np.array(COLOURS) - middle).sum(axis=1).argmin()))
    return found


def sound_ms(path: Path) -> float:
    with av.open(str(path)) as container:
        samples = sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))
    return 1000 * samples


@pytest.mark.parametrize(
    ("changes", "suffix", "copied"),
    [
        ({}, ".mp4", True),
        in_full(({"b_frames": 2}, ".mp4", True)),
        in_full(({}, ".ts", True)),
        ({"gop": 250}, ".mp4", False),
        in_full(({"codec": "libvpx-vp9", "audio": "libopus"}, ".webm", False)),
        in_full(({"rotation": 90}, ".mp4", True)),
        in_full(({"rotation": 90, "gop": 250}, ".mp4", False)),
        ({"video_start_ms": 700, "audio_start_ms": 500}, ".mkv", True),
        in_full(({"size": (161, 121), "pix_fmt": "yuv444p", "gop": 250}, ".mkv", False)),
    ],
)
def test_a_span_shows_and_sounds_what_the_video_does_then(
    tmp_path: Path, changes: dict[str, Any], suffix: str, copied: bool
) -> None:
    path = make_video(tmp_path / f"whole{suffix}", seconds=6.0, **changes)
    out = tmp_path / "cut.mp4"
    cut = cut_file(path, TimeSpan.of(2_500, 4_500), out)
    assert cut.copied == copied
    assert cut.span.end_ms == 4_500
    assert (2_500 - cut.span.start_ms) in (range(1_001) if copied else range(1))
    whole, part = probe(path), probe(out)
    assert abs(part.duration_ms - cut.span.length_ms) < 150
    assert (part.width, part.height) == (whole.width & ~1, whole.height & ~1)
    shown, rate = colours(out), whole.frame_rate
    assert abs(len(shown) - cut.span.length_ms / 1000 * rate) <= 3
    all_of_it, lead = colours(path), max(0, changes.get("video_start_ms", 0) - 500)
    first = round((cut.span.start_ms - lead) / 1000 * rate)
    expected = all_of_it[first : first + len(shown)]
    assert sum(a == b for a, b in zip(shown, expected, strict=False)) >= len(shown) - 2
    assert abs(sound_ms(out) - cut.span.length_ms) < 150


def test_a_file_with_sound_alone_is_cut(tmp_path: Path) -> None:
    path = make_video(tmp_path / "talk.m4a", seconds=4.0, codec=None, format="mp4")
    assert cut_file(path, TimeSpan.of(1_000, 2_000), tmp_path / "cut.mp4").copied
    assert abs(sound_ms(tmp_path / "cut.mp4") - 1_000) < 60


def test_a_span_after_the_end_is_cut_short_or_refused(tmp_path: Path) -> None:
    path, out = make_video(tmp_path / "whole.mp4", seconds=3.0), tmp_path / "cut.mp4"
    assert cut_file(path, TimeSpan.of(2_000, 90_000), out).span.end_ms == probe(path).duration_ms
    with pytest.raises(InputError, match=r"01:30 is after 00:03, the end of the video"):
        cut_file(path, TimeSpan.of(90_000, 91_000), out)


def stored(store: Store, path: Path) -> str:
    """Add a file to the library, not watched as yet; return its id."""
    info, ident = probe(path), video_id(path)
    video = Video(
        id=ident,
        title=path.stem,
        path=str(path),
        duration_ms=info.duration_ms,
        width=info.width,
        height=info.height,
        has_video=info.has_video,
        has_audio=info.has_audio,
        profile="local",
    )
    with store.begin() as session:
        add_video(session, video, clips_of(info.duration_ms, WatchSettings()), {})
    return ident


def test_the_command_cuts_a_moment_and_leaves_no_half_file(
    store: Store, home: Home, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    path, out = make_video(tmp_path / "whole.mp4", seconds=3.0), tmp_path / "cut.mp4"
    ident = stored(store, path)

    def clip(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["clip", *arguments, "--out", str(out)])

    done = clip("whole", "0:01", "0:02")
    assert (done.exit_code, done.stdout.startswith(f"{out}: 0:01-0:02, ")) == (0, True)
    made = out.read_bytes()
    late = clip(ident, "1:00", "2:00")
    assert (late.exit_code, "the end of the video" in late.stderr) == (2, True)
    path.write_bytes(path.read_bytes() + b"changed")
    changed = clip(ident, "0:01", "0:02")
    assert (changed.exit_code, "has changed since it was watched" in changed.stderr) == (2, True)
    assert out.read_bytes() == made
    assert {one.name for one in tmp_path.iterdir() if one.is_file()} == {"whole.mp4", "cut.mp4"}
