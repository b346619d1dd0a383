"""What the live view shows: the short-term memory as it is now, and kept frames by tier."""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pytest
from rich.console import Console
from sqlalchemy import update

from cli import answers
from domain.asking import Question
from domain.built import FrameDraft, KeptClip
from domain.media import Clip, Stream, TimedImage
from domain.trajectory import Event, PartialReply
from library.strategies import MAX_OF_TIER, KeptNow, load_live_memory
from memory.kept_frames import ClipKeeping, VideoKeepers
from people.model_transactions import run_with_models
from store.database import Store, remove_unused_blobs
from store.queries.clips import clips_of
from store.queries.keyframes import store_kept
from store.queries.trajectories import calls_of
from store.queries.videos import add_stream, find_video
from store.tables.schema import KeeperRow
from strategies.eventmem.strategy import SETTINGS
from strategies.registry import all_strategies, find_strategy
from tests.support.app_pages import app_over, open_page, words
from tests.support.asking import PARTY
from tests.support.listeners import collect_events
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import OpenAIServer
from tests.support.picture_cards import striped_jpeg
from tests.support.remembered import Said, watch
from tests.support.runs import ask

CLIPS = 4
DARK_S = 40
"""Seconds of the first, dark scene; a bright one follows."""


def jpeg(second: int) -> bytes:
    return striped_jpeg(second, dark=second < DARK_S)


@pytest.fixture
def stream(store: Store) -> Store:
    """A stream of two minutes, of which both keepers keep frames."""
    watch(store, PARTY, [[Said("Ann paints")] for _ in range(CLIPS)])
    keepers = {name: find_strategy(name).keeper for name in ("eventmem", "vam")}
    with store.begin() as session:
        video = find_video(session, PARTY)
        clips = clips_of(session, PARTY)
        add_stream(session, PARTY, Stream(source="camera", began_ms=0))
    made = VideoKeepers(video, {name: keeper() for name, keeper in keepers.items() if keeper})
    for clip in clips:
        times = range(clip.span.start_ms, clip.span.end_ms, 1_000)
        frames = [TimedImage(time_ms=time, jpeg=jpeg(time // 1_000)) for time in times]
        keeping = ClipKeeping(store, made, Clip(index=clip.index, span=clip.span), frames)
        keeping.prepare()
        run_with_models(store, keeping.store)
        remove_unused_blobs(store, keeping.unused)
    return store


def kept_by(store: Store, strategy: str) -> KeptNow:
    (found,) = (one for one in load_live_memory(store, PARTY)[1] if one.strategy == strategy)
    return found


def test_the_short_term_memory_is_shown_by_event_as_it_is_now(stream: Store) -> None:
    through_ms, kept = load_live_memory(stream, PARTY)
    assert through_ms == 120_000
    assert [one.strategy for one in kept] == ["eventmem", "vam"]
    events = kept_by(stream, "eventmem").events
    assert events is not None
    # The bright scene alone fills the memory, so the dark one has left.
    assert [(one.number, one.seen) for one in events] == [(2, 120 - DARK_S)]
    assert len(events[0].frames) == SETTINGS.frames
    times = list(events[0].frames)
    assert times == sorted(times)
    assert times[0] >= DARK_S * 1_000
    assert all(stream.blobs.exists(blob) for blob in events[0].frames.values())
    assert kept_by(stream, "vam").events is None


def test_frames_that_left_are_in_the_tier_below(stream: Store) -> None:
    short, long = kept_by(stream, "eventmem").tiers
    assert short.name == "short-term memory"
    # The first frame of the present event stays, even where the sample has dropped it.
    assert short.all.frames in (SETTINGS.frames, SETTINGS.frames + 1)
    assert (long.all.frames, long.all.first_ms, long.all.last_ms) == (1, 0, 0)
    assert long.all.bytes == len(stream.blobs.get(long.frames[0]))


def test_a_tier_shows_frames_that_are_spread_evenly_and_its_last(store: Store) -> None:
    watch(store, PARTY, [[Said("Ann paints")]])
    names = [one.memory for one in all_strategies() if one.tiers]
    data = [jpeg(second) for second in range(3)]
    for name in names:
        for one in data:
            store.blobs.put(one)
        blobs = [hashlib.sha256(one).hexdigest() for one in data]
        frames = [
            FrameDraft(1_000 * n, blobs[n % 3], 60, 40, n // 100, "moment", None, None)
            for n in range(250)
        ]
        files = dict(zip(blobs, data, strict=True))
        with store.begin() as session:
            store_kept(session, PARTY, KeptClip(name, 1, 0, frames, (), (), {}, files))
    tiers = kept_by(store, "vam").tiers
    assert [one.all.frames for one in tiers] == [100, 100, 50]
    assert [one.name for one in tiers] == [
        "up to 1 h old",
        "up to 24 h old, one in 20 s",
        "older, one in 120 s",
    ]
    for tier in tiers:
        times = list(tier.frames)
        assert len(times) == MAX_OF_TIER
        assert times[-1] == tier.all.last_ms
        steps = np.diff(times)
        assert steps.max() - steps.min() <= 1_000
    # Frames that a newer version than this carried on are not read as a short-term memory.
    with store.begin() as session:
        found = session.get(KeeperRow, (PARTY, "eventmem"))
        assert found is not None
        found.version += 1
    assert kept_by(store, "eventmem").events is None


def test_the_page_of_a_stream_has_it(stream: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with app_over(stream, monkeypatch):
        shown = words(open_page("video", video=PARTY, show="Live")).replace("**", "")
    assert "Not being watched now. In memory up to 2:00." in shown
    assert "Short-term memory: 32 frames of 1 event" in shown
    assert "Event 2, " in shown
    assert "Up to 1 h old: " in shown


def test_a_file_has_no_live_view(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    watch(store, PARTY, [[Said("Ann paints")]])
    with app_over(store, monkeypatch):
        page = open_page("video", video=PARTY)
    assert "Live" not in next(one for one in page.radio if one.label == "Show").options


LATE = {"record": {"number": 0, "runs": []}, "seen": 1, "frames": [10**30]}


@pytest.mark.parametrize("state", [[], {"events": 7}, {"events": [LATE]}])
def test_a_state_that_an_import_altered_breaks_no_page(stream: Store, state: object) -> None:
    with stream.begin() as session:
        session.execute(update(KeeperRow).values(state=state))
    assert not any(event.frames for event in kept_by(stream, "eventmem").events or ())


# What the model writes is seen while it writes it, and leaves no other trace than its call.


GATE = Question(text="Who opens the gate?", videos=(PARTY,), options=("Bob", "Ann", "a dog"))


def test_who_listens_changes_neither_the_answer_nor_what_is_recorded(party: Store) -> None:
    events: list[Event] = []
    said: list[PartialReply] = []
    with OpenAIServer(obedient) as server:
        toolbox = LlmToolbox(server)
        seen = ask(party, toolbox, GATE, collect_events(events, said))
        alone = ask(party, toolbox, GATE)
    assert said
    assert seen.answer == alone.answer
    with party.begin() as session:
        one, other = (calls_of(session, asked.trajectory_id) for asked in (seen, alone))
    assert [(c.request_hash, c.reply, c.tokens_out) for c in one] == [
        (c.request_hash, c.reply, c.tokens_out) for c in other
    ]


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> tuple[io.StringIO, list[str]]:
    """A terminal: what stays on it, and what its last line shows one after another."""
    screen, shown = io.StringIO(), list[str]()
    monkeypatch.setattr(answers, "is_terminal", lambda: True)
    monkeypatch.setattr(
        "cli.answers.Console",
        lambda **_: Console(file=screen, force_terminal=True, width=width, height=30),
    )
    monkeypatch.setattr(
        "rich.status.Status.update", lambda _self, status, **_: shown.append(str(status))
    )
    return screen, shown


def test_a_terminal_shows_words_then_lines(party: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, shown = terminal(monkeypatch, width=100)
    with OpenAIServer(obedient) as server, answers.progress_listener(verbose=True) as tell:
        ask(party, LlmToolbox(server), GATE, tell)
    assert any(line.startswith("act: ") and len(line) > 5 for line in shown)
    assert all(len(line) <= 100 and line.isprintable() for line in shown)
    assert "plan t1:" in screen.getvalue()
    assert "round 1: t1:" in screen.getvalue()


def test_a_terminal_is_left_with_the_answer_alone_unless_all_is_asked_for(
    party: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, shown = terminal(monkeypatch, width=60)
    with OpenAIServer(obedient) as server, answers.progress_listener() as tell:
        ask(party, LlmToolbox(server), GATE, tell)
    assert any(line.startswith("round 1: t1") for line in shown)
    assert all(len(line) <= 60 for line in shown)
    assert "round 1" not in screen.getvalue()


def test_json_wants_no_lines_and_a_log_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    with answers.progress_listener(silent=True) as tell:
        assert tell is None
    with answers.progress_listener(verbose=True) as tell:
        assert tell is not None
        tell(PartialReply(round=1, purpose="act", text='{"query": "the gate'))
    assert capsys.readouterr().err == ""
