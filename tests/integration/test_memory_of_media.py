"""Real clips, real models: who is named, who speaks, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from domain.media import ClipState, Video
from flows.watching import SilentListener, watch_files
from flows.workspace import Workspace
from library.memory import VideoDetails, show_video
from memory.captions import read_captions
from memory.writers import make_writers
from models.hub import hub_language_model
from models.profile import Profile
from models.specs import ChatSpec
from models.toolbox import Toolbox
from perception.decode import read_clips
from perception.perceive_clip import perceive
from perception.source import clips_of, probe, video_id
from store.database import Store
from store.queries.trajectories import images_sent
from store.queries.videos import add_video
from tests.support.event_graphs import import_with_events, update_event_graph
from tests.support.light_models import LIGHT, LightToolbox
from tests.support.media import make_video
from tests.support.memory import remember
from tests.support.tiny_vision_model import write_tiny_vision_model


def watched(store: Store, toolbox: Toolbox, path: Path) -> VideoDetails:
    settings = toolbox.profile.settings
    writers, info = make_writers(toolbox, toolbox.profile), probe(path)
    video = Video(id=video_id(path), title=path.stem, path=str(path), duration_ms=info.duration_ms)
    with store.begin() as session:
        add_video(session, video, clips_of(info.duration_ms, settings.watch), {})
    for raw in read_clips(path, info, settings.watch):
        seen = perceive(raw, toolbox, settings.watch)
        assert remember(store, video.id, seen, writers, toolbox, settings) == ClipState.DONE
    update_event_graph(store, video.id, writers, toolbox, settings, is_final=True)
    return show_video(store, video.id)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_name_shown_with_an_occupation_is_the_speaker_s(
    store: Store, toolbox: Toolbox, shared_media: Callable[[str], Path]
) -> None:
    shown = watched(store, toolbox, shared_media("googlework_short.mp4"))
    omar = next(one for one in shown.people if one.label.casefold().startswith("omar"))
    assert {name.source for name in omar.names} == {"read"}
    assert {tag[1:5] for tag in omar.tags} == {"face", "voic"}
    lines = [line.text for clip in shown.clips for line in clip.lines]
    assert any("Software Engineer (shown on screen)" in line for line in lines)
    # Which words are heard differs a little between processors; that he says them does not.
    said = [line.removeprefix("Omar: ") for line in lines if line.startswith("Omar: ")]
    assert sum(len(words.split()) for words in said) > 7
    assert len(shown.people) < 10
    assert {clip for one in shown.segments for clip in one.clips} == {0, 1}


@pytest.mark.timeout(900)
def test_subtitles_do(store: Store, toolbox: Toolbox, shared_media: Callable[[str], Path]) -> None:
    track = read_captions(shared_media("jackson_hole_speech.srt"))
    writers, settings = make_writers(toolbox, toolbox.profile), toolbox.profile.settings
    import_with_events(store, track, writers, toolbox, settings)
    shown = show_video(store, "jackson_hole_speech")
    words = " ".join(line.text for clip in shown.clips for line in clip.lines)
    assert "forward guidance" in words.lower()
    assert {clip for one in shown.segments for clip in one.clips} == set(range(len(shown.clips)))
    assert all(1 <= len(one.label.split()) <= 8 for one in shown.segments)


# A model in this process looks at frames and writes memories, without any server besides.


TINY = "homer/tiny"


def test_video_is_written_by_model_that_sees_in_this_process(store: Store, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    write_tiny_vision_model(hub_language_model(TINY, sees=True).folder(tmp_path))
    chat = {"default": ChatSpec(model=f"llama:{TINY}", max_tokens=2_048)}
    profile = Profile(
        name="tiny", objects="none", sounds="none", writer="llm", chat=chat, settings=LIGHT
    )
    workspace = Workspace(store.home, store, profile, LightToolbox(profile, tmp_path))
    film = make_video(tmp_path / "film.mp4", seconds=4.0, audio=None)
    (watched,) = watch_files(workspace, [film], SilentListener(), direct=True)
    assert not watched.error
    shown = show_video(store, "film")
    assert [(clip.state, clip.error) for clip in shown.clips] == [("done", None)] * 2
    assert all("model" in {line.source for line in clip.lines} for clip in shown.clips)
    with store.begin() as session:
        assert images_sent(session, shown.video.id) >= 2 * len(shown.clips)
