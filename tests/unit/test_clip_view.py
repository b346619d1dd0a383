"""What a model is shown of a clip: spaced frames with their times, or a small video with sound."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from typing import Any

import av
import cv2
import numpy as np
import pytest

from domain.errors import ModelError, SetupError
from domain.media import Clip, ClipView, TimedImage
from domain.settings import MemorySettings, Settings, WatchSettings
from domain.time import TimeSpan
from memory.writers.llm_clip import LlmClipWriter
from memory.writers.port import ClipContext
from models.chat import StructuredChat
from models.endpoint import Endpoint
from models.messages import to_langchain, to_record, user
from models.profile import Profile
from models.specs import ChatSpec
from people.characters import ClipPeople
from perception.clip_view import clip_view
from perception.decode import RawClip
from perception.frames import Frame, FrameMetrics
from tests.support.memory import VIDEO, keyframe, percept
from tests.unit.test_keyframe_choice import Model

MP4 = b"\0\0\0\x18ftypisom"


def frame(time_ms: int, colour: int, size: tuple[int, int] = (1280, 720)) -> Frame:
    image = np.full((size[1], size[0], 3), colour, np.uint8)
    return Frame(time_ms, FrameMetrics(0, 1, 1), av.VideoFrame.from_ndarray(image, format="rgb24"))


def raw(frames: list[Frame], seconds: float = 6, sound: bool = True) -> RawClip:
    end = 30_000 + round(seconds * 1_000)
    tone = np.sin(np.arange(round(seconds * 16_000) if sound else 0) / 6)
    samples = np.asarray(tone / 2, dtype=np.float32)
    return RawClip(Clip(index=1, span=TimeSpan.of(30_000, end)), frames, samples)


MOVING = raw([frame(30_000 + 200 * n, 8 * n) for n in range(30)])


def shown(clip: RawClip, **settings: Any) -> ClipView:
    return clip_view(clip, MemorySettings(**settings), WatchSettings())


def test_frames_are_as_many_as_change_and_no_more_and_no_larger_than_was_said() -> None:
    found = shown(MOVING, clip_frames=3).frames
    assert len(found) == 3
    assert all(b.time_ms - a.time_ms >= 1_000 for a, b in pairwise(found))
    for one in found:
        image: Any = cv2.imdecode(np.frombuffer(one.jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert image.shape == (432, 768, 3)
        assert abs(float(image.mean()) - 8 * (one.time_ms - 30_000) / 200) < 3


def test_a_picture_that_stands_still_is_shown_once() -> None:
    slides = raw([frame(30_000, 10), frame(35_000, 200), frame(37_000, 201)], seconds=10)
    assert [one.time_ms for one in shown(slides).frames] == [30_000, 35_000]


def test_no_short_scene_is_left_out_for_movement_in_a_long_one() -> None:
    """A picture that changes somewhat all the time, with a second of something else in it."""
    images = [np.full((180, 320, 3), 60, np.uint8) for _ in range(150)]
    for n, image in enumerate(images):
        image[(n * 7) % 130 : (n * 7) % 130 + 50, :, 1] = 200
    for image in images[70:76]:
        image[:] = 250
    frames = [
        replace(frame(30_000 + 200 * n, 0), picture=av.VideoFrame.from_ndarray(one, format="rgb24"))
        for n, one in enumerate(images)
    ]
    found = shown(raw(frames, seconds=30), clip_frames=12).frames
    assert len(found) == 12
    assert any(44_000 <= one.time_ms < 45_200 for one in found)


def decoded(video: bytes) -> tuple[Any, Any, list[float], int]:
    with av.open(io.BytesIO(video), "r") as container:
        pictures, sound = container.streams.video[0], container.streams.audio
        codecs = pictures.codec_context.name, sound[0].codec_context.name if sound else None
        size = pictures.width, pictures.height
        means = [float(one.to_ndarray(format="rgb24").mean()) for one in container.decode(video=0)]
        container.seek(0)
        heard = sum(int(one.samples) for one in container.decode(audio=0)) if sound else 0
    return codecs, size, means, heard


def test_a_video_has_the_clip_s_pictures_at_their_times_and_its_sound() -> None:
    video = shown(MOVING, clip_view="video").video
    assert video is not None
    codecs, size, means, heard = decoded(video)
    assert codecs == ("h264", "aac")
    assert size == (1280, 720)
    assert means == pytest.approx([8 * n for n in range(30)], abs=4)
    assert heard == pytest.approx(6 * 16_000, abs=2_048)


def test_a_still_silent_clip_is_as_long_as_it_was() -> None:
    still = raw([frame(30_000, 90, (321, 181))], seconds=4, sound=False)
    video = shown(still, clip_view="video", clip_video_height=100).video
    assert video is not None
    codecs, size, means, _ = decoded(video)
    assert codecs == ("h264", None)
    assert size == (178, 100)
    assert len(means) == 20


@pytest.mark.full
def test_a_video_too_large_is_made_smaller_and_at_last_frames_stand_for_it() -> None:
    noise = np.random.default_rng(1).integers(0, 255, (30, 720, 1280, 3), np.uint8)
    frames = [
        replace(frame(30_000 + 200 * n, 0), picture=av.VideoFrame.from_ndarray(one, format="rgb24"))
        for n, one in enumerate(noise)
    ]
    small = shown(raw(frames), clip_view="video", clip_video_bytes=1_000_000).video
    assert small is not None
    assert len(small) <= 1_000_000
    none = shown(raw(frames), clip_view="video", clip_video_bytes=1_000)
    assert (none.video, none.too_large, bool(none.frames)) == (None, True, True)


def test_the_model_is_given_each_picture_after_its_time_and_keyframes_keep_their_numbers() -> None:
    model = Model({"lines": [{"kind": "plot", "text": "They wait."}]})
    frames = tuple(TimedImage(time_ms=n, jpeg=b"%d" % n) for n in (1_000, 3_000))
    seen = percept(0, keyframes=(keyframe(2, "a" * 64),))
    context = ClipContext(VIDEO, blobs={"a" * 64: b"key"}, view=ClipView(frames=frames))
    LlmClipWriter(model).write(seen, ClipPeople(), context)
    assert model.images == [b"key", b"1000", b"3000"]
    assert model.labels == ["1. keyframe at 2.0 s", "2. frame at 1.0 s", "3. frame at 3.0 s"]


def test_a_video_is_sent_as_each_kind_of_server_takes_it_and_recorded_by_digest() -> None:
    turns, label = [user("Look.")], ["the clip"]
    assert to_langchain(turns, [MP4], label)[0]["content"][1:] == [
        {"type": "text", "text": "the clip"},
        {"type": "video", "base64": "AAAAGGZ0eXBpc29t", "mime_type": "video/mp4"},
    ]
    (sent,) = to_langchain(turns, [MP4], video_urls=True)[0]["content"][1:]
    assert sent["video_url"]["url"] == "data:video/mp4;base64,AAAAGGZ0eXBpc29t"
    (kept,) = to_record(turns, [MP4])[0]["content"][1:]
    assert (kept["type"], len(kept["sha256"])) == ("video", 64)


def test_a_model_without_video_is_never_sent_one() -> None:
    chat = StructuredChat(Endpoint(ChatSpec(model="openai:m", base_url="http://h")), "p")
    with pytest.raises(ModelError, match="cannot watch a video"):
        chat.ask([user("Look.")], MemorySettings, purpose="clip", images=[MP4])


def profile(view: str, writer: str = "llm", **spec: Any) -> Profile:
    memory = MemorySettings.model_validate({"clip_view": view})
    chat = {"default": ChatSpec(model="openai:m", **spec)}
    return Profile(name="p", writer=writer, chat=chat, settings=Settings(memory=memory))


@pytest.mark.parametrize(
    ("made", "view"),
    [
        (profile("frames"), "frames"),
        (profile("frames", images=False), "keyframes"),
        (profile("frames", writer="local"), "keyframes"),
        (profile("video", video=True), "video"),
        (profile("video", images=False), "keyframes"),
    ],
)
def test_no_more_is_shown_than_the_writer_can_look_at(made: Profile, view: str) -> None:
    assert made.shown_clips.clip_view == view


def test_a_video_for_a_model_that_takes_none_is_refused_with_what_to_do() -> None:
    with pytest.raises(SetupError, match="homer doctor --profile p"):
        _ = profile("video").shown_clips


def test_what_is_shown_more_of_a_clip_may_be_paid_for() -> None:
    plain, frames, video = (
        profile(v, video=True).settings for v in ("keyframes", "frames", "video")
    )
    assert plain.clip_budget == 60_000
    assert frames.clip_budget == 60_000 + 3 * 12 * 1_100 * 5 // 3
    assert video.clip_budget == 60_000 + 3 * 30 * 300 * 5 // 3
