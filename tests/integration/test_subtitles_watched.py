"""A video watched with its subtitles and chapters: they are memory of a source of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from domain.asking import Mode
from domain.errors import InputError
from domain.time import TimeSpan
from domain.watching import Watched
from flows.ingest_video import open_video
from flows.removal import delete_video_rows
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from library.memory import dump_lines, show_video
from memory.subtitles import read_source_texts
from models.toolbox import Toolbox
from perception.containers import SubtitleStream, text_tracks
from perception.source import probe_source
from retrieval.retrievers import Retrievers
from store.database import Store
from store.home import Home
from store.queries.clips import memory_view
from store.tables.schema import UtteranceRow
from tests.support.light_models import in_little_clips
from tests.support.media import make_video
from tests.support.subtitle_tracks import with_packets, with_words, words_file

SRT = """1
00:00:00,200 --> 00:00:01,000
OMAR: The drawbridge

2
00:00:01,000 --> 00:00:01,900
opens at noon.

3
00:00:04,100 --> 00:00:04,900
Nobody crossed it.
"""


INSIDE = ((500, 1400, "The drawbridge opens."), (3500, 4300, "Home."))


def with_texts(source: Path, path: Path) -> Path:
    """The pictures of ``source`` with a track of subtitles and two chapters, in Matroska."""
    words = words_file(source.with_suffix(".words.srt"), INSIDE)
    return with_words(source, words, path, "eng", ("Arrival", "The long way home"))


@pytest.fixture
def workspace(home: Home, store: Store, toolbox: Toolbox) -> Workspace:
    """Clips of two seconds, and little to look at in each."""
    return in_little_clips(home, store, toolbox, sample_fps=1.0)


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = make_video(tmp_path / "talk.mp4", seconds=5.0, audio=None)
    path.with_suffix(".srt").write_text(SRT)
    return path


def watch(workspace: Workspace, path: Path, subtitles: Any = None) -> Watched:
    (outcome,) = watch_files(workspace, [path], SilentListener(), direct=True, subtitles=subtitles)
    return outcome


def output(workspace: Workspace) -> list[tuple[int, str, str]]:
    return [
        (clip.index, line.source, line.text)
        for clip in show_video(workspace.store, "talk").clips
        for line in clip.lines
        if line.source in ("subtitle", "chapter")
    ]


def test_subtitles_beside_a_video_are_read_only_if_asked(workspace: Workspace, talk: Path) -> None:
    assert (watch(workspace, talk).exit_code, output(workspace)) == (0, [])
    assert watch(workspace, talk, "ignore").exit_code == 0
    refused = watch(workspace, talk, "use")
    assert refused.exit_code == InputError.exit_code
    assert "homer delete" in str(refused.error)
    assert output(workspace) == []
    delete_video_rows(workspace.store, "talk")

    assert watch(workspace, talk, "use").exit_code == 0
    said = "Subtitle, Omar: The drawbridge opens at noon."
    assert output(workspace) == [
        (0, "subtitle", said),
        (2, "subtitle", "Subtitle: Nobody crossed it."),
    ]
    (name,) = show_video(workspace.store, "talk").video.subtitles or ()
    assert name.startswith(".srt ")


def test_they_are_found_cited_dumped_and_deleted(workspace: Workspace, talk: Path) -> None:
    watch(workspace, talk, "use")
    with workspace.store.begin() as session:
        view = memory_view(session, [show_video(workspace.store, "talk").video.id])
    found = Retrievers(workspace.store, workspace.toolbox, workspace.settings).search(
        view, Mode.VIDEO, "when does the drawbridge open"
    )
    assert found.evidence[0].text == "Subtitle, Omar: The drawbridge opens at noon."
    first = list(dump_lines(workspace.store, "talk"))
    assert any('"origin":"subtitle"' in line for line in first)
    assert any('"source":"subtitle"' in line for line in first)
    delete_video_rows(workspace.store, "talk")
    with workspace.store.begin() as session:
        assert session.scalars(select(UtteranceRow)).all() == []
    watch(workspace, talk, "use")
    assert list(dump_lines(workspace.store, "talk")) == first


def test_a_video_begun_with_subtitles_goes_on_so(workspace: Workspace, talk: Path) -> None:
    with open_video(workspace, talk, subtitles="use") as work:
        work.perceive(0)
        work.remember(0)
    assert watch(workspace, talk).exit_code == 0
    assert [clip for clip, *_ in output(workspace)] == [0, 2]
    # All is watched: that they are elsewhere by now is of no account.
    talk.with_suffix(".srt").unlink()
    assert watch(workspace, talk).exit_code == 0


def test_damaged_subtitles_stop_this_video_only(workspace: Workspace, talk: Path) -> None:
    talk.with_suffix(".srt").write_bytes(b"\xff\x00\x81 not a subtitle")
    other = make_video(talk.parent / "other.mp4", seconds=2.0, audio=None)
    bad, good = watch_files(
        workspace, [talk, other], SilentListener(), direct=True, subtitles="use"
    )
    assert "talk.srt" in str(bad.error)
    assert "--subtitles ignore" in str(bad.error)
    assert (good.exit_code, watch(workspace, talk).exit_code) == (0, 0)


def test_tracks_and_chapters_inside_a_file_are_read_in_video_time(tmp_path: Path) -> None:
    path = with_texts(
        make_video(tmp_path / "in.mp4", seconds=5.0, audio=None), tmp_path / "talk.mkv"
    )
    probed = probe_source(path)
    (track,) = text_tracks(path, probed)
    assert track.language == "eng"
    assert [(str(c.span.start_ms), c.text) for c in track.cues] == [
        ("500", "The drawbridge opens."),
        ("3500", "Home."),
    ]
    assert [(c.span.start_ms, c.span.end_ms, c.text) for c in probed.chapters] == [
        (0, 3000, "Arrival"),
        (3000, 6000, "The long way home"),
    ]


@pytest.mark.parametrize(
    ("words", "codec"), [("w.srt", "srt"), ("w.ass", "ssa"), ("w.vtt", "webvtt"), ("", "mov_text")]
)
def test_every_common_track_of_text_is_read_alike(words: str, codec: str, tmp_path: Path) -> None:
    source = make_video(tmp_path / "in.mp4", seconds=5.0, audio=None)
    cues = ((500, 1400, "The drawbridge opens."), (3500, 4300, "Home, at last.\nNow."))
    if words:
        path = with_words(source, words_file(tmp_path / words, cues), tmp_path / "talk.mkv")
    else:
        path = with_packets(source, codec, tmp_path / "talk.mp4", cues)
    found = read_source_texts(path, probe_source(path))
    assert (found.names, found.remarks) == (("track 1",), ())
    ((first, second),) = found.tracks
    assert (first.span, first.text) == (TimeSpan.of(500, 1400), "The drawbridge opens.")
    assert (second.span, second.text) == (TimeSpan.of(3500, 4300), "Home, at last. Now.")


def test_a_track_of_pictures_stops_nothing(workspace: Workspace, tmp_path: Path) -> None:
    source = make_video(tmp_path / "in.mp4", seconds=3.0, audio=None)
    path = with_packets(source, "dvdsub", tmp_path / "talk.mkv", [(500, 900, "no words")])
    assert probe_source(path).subtitles == (SubtitleStream(1, "dvdsub", ""),)
    output: list[str] = []

    class Ear(SilentListener):
        def said(self, text: str) -> None:
            output.append(text)

    (ignored,) = watch_files(workspace, [path], Ear(), direct=True)
    assert (ignored.exit_code, output) == (0, [])
    delete_video_rows(workspace.store, "talk")
    (used,) = watch_files(workspace, [path], Ear(), direct=True, subtitles="use")
    assert used.exit_code == 0
    assert output == ["track 1 of talk.mkv is no text (dvdsub): its subtitles are not read"]
    assert show_video(workspace.store, "talk").video.subtitles == ()


def test_they_are_memory_too(workspace: Workspace, tmp_path: Path) -> None:
    path = with_texts(
        make_video(tmp_path / "in.mp4", seconds=5.0, audio=None), tmp_path / "talk.mkv"
    )
    assert watch(workspace, path, "use").exit_code == 0
    assert output(workspace) == [
        (0, "chapter", "Chapter: Arrival"),
        (0, "subtitle", "Subtitle: The drawbridge opens."),
        (1, "chapter", "Chapter: The long way home"),
        (1, "subtitle", "Subtitle: Home."),
    ]
    assert show_video(workspace.store, "talk").video.subtitles == ("track 1", "2 chapters")


def test_the_track_of_a_real_video_is_read(shared_media: Any) -> None:
    path = shared_media("jina_1q8.mkv")
    (track,) = text_tracks(path, probe_source(path))
    assert "search today goes well beyond a simple" in track.cues[0].text
    assert track.cues[0].span.start_ms == pytest.approx(1600, abs=10)
