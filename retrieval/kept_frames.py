"""Frames that strategies kept, as evidence: what is known to be on them."""

from __future__ import annotations

from collections.abc import Mapping

from domain.built import BuiltFrame
from retrieval.keyframe_mode import NEAR_MS, VideoKeyframes, describe
from store.queries.clip_contents import ClipContents, KeyframeOnClip


def describe_kept(
    contents: ClipContents, frame: BuiltFrame, names: Mapping[str, str], nearby_line: str = ""
) -> str:
    """Describe a kept frame for text-only models: what was recognised within a second of it.

    Text and things are recognised on keyframes only, so those of the nearest keyframe count.

    Args:
        contents: of the frame's clip.
        names: of people, by tag.
        nearby_line: what is known of that time besides; "" for nothing.
    """
    recognised = [time for time, _ in contents.texts] + [item.time_ms for item in contents.objects]
    near = [time for time in recognised if abs(time - frame.time_ms) <= NEAR_MS]
    nearest = min(near, key=lambda time: (abs(time - frame.time_ms), time), default=-1)
    at = frame.time_ms
    on_frame = contents._replace(
        texts=[(at, text) for time, text in contents.texts if time == nearest],
        objects=[
            item.model_copy(update={"time_ms": at})
            for item in contents.objects
            if item.time_ms == nearest
        ],
    )
    image = KeyframeOnClip(frame.id, frame.clip, at, 0.0, frame.blob, None)
    return describe(VideoKeyframes("", on_frame, {}), image, names, nearby_line)
