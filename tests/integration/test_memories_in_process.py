"""A model in this process looks at frames and writes memories, without any server besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.ingest_files import watch_files
from flows.watching import SilentListener
from flows.workspace import Workspace
from library.memory import show_video
from models.hub import hub_language_model
from models.profile import Profile
from models.specs import ChatSpec
from store.database import Store
from store.queries.calls import images_sent
from tests.support.light_models import LIGHT, LightToolbox
from tests.support.media import make_video
from tests.support.tiny_vision_model import write_tiny_vision_model

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
