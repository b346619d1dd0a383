"""A model is shown frames or a video of each clip of a file, and the record has their digests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from domain.settings import MemorySettings, Settings, WatchSettings
from flows.ingest_files import watch_files
from flows.ingest_steps import SilentListener
from flows.workspace import Workspace
from models.profile import ChatSpec, Profile
from store.database import Store
from store.home import Home
from store.tables.schema import BlobRow, MessageRow
from tests.support.light import LightToolbox
from tests.support.media import make_video
from tests.support.openai_server import OpenAIServer
from views.library import show_video

REPLY = {"lines": [{"kind": "episodic", "text": "Colours follow each other."}], "segments": []}


def parts_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    content = request["messages"][-1]["content"]
    return content if isinstance(content, list) else []


def ingested(
    home: Home, store: Store, path: Path, server: OpenAIServer, **memory: Any
) -> list[dict[str, Any]]:
    """The requests for clips that a model was sent."""
    spec = ChatSpec(model="openai:m", base_url=server.base_url, video=True)
    settings = Settings(
        watch=WatchSettings(clip_ms=2_000, keyframes=1), memory=MemorySettings(**memory)
    )
    lacking = {"objects": "none", "sounds": "none"}
    chat = {"default": spec}
    profile = Profile(name="p", writer="llm", chat=chat, settings=settings, **lacking)
    notes = home.root / "notes"
    notes.mkdir()
    workspace = Workspace(home, store, profile, LightToolbox(profile, notes))
    (outcome,) = watch_files(workspace, [path], SilentListener(), direct=True)
    assert outcome.exit_code == 0
    return [one for one in server.requests if "Write the lines of this clip" in json.dumps(one)]


@pytest.mark.parametrize("view", ["keyframes", "frames", "video"])
def test_the_model_is_shown_each_clip_as_the_profile_says(
    home: Home, store: Store, tmp_path: Path, view: str
) -> None:
    path = make_video(tmp_path / "colours.mp4", seconds=4.0, scene_s=0.5, silent=True)
    with OpenAIServer(lambda _: REPLY) as server:
        requests = ingested(home, store, path, server, clip_view=view, clip_frames=4)
    assert len(requests) == 2
    for request in requests:
        kinds = [part["type"] for part in parts_of(request)[1:]]
        more = {"keyframes": [], "frames": 4 * ["image_url"], "video": ["video_url"]}[view]
        assert [kind for kind in kinds if kind != "text"] == ["image_url", *more]
        assert kinds[::2] == ["text"] * (1 + len(more)), "each has its label before it"
    labels = [part["text"] for part in parts_of(requests[1])[1::2]]
    output = {"frames": "2. frame at 2.2 s", "video": "2. the clip as a video with sound, from 2.0"}
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
