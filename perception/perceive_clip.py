"""Turns one decoded clip into a percept, here or in another thread, process or machine."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from domain import faults
from domain.media import (
    KEYFRAMES_ONLY,
    Box,
    ClipView,
    Gap,
    GapReason,
    Group,
    Keyframe,
    Percept,
    SeenObject,
    Sound,
    TimedImage,
)
from domain.settings import MemorySettings, WatchSettings
from models.devices import trim_heap
from models.onnx import allow_threads, run_both
from perception.clip_view import clip_view
from perception.decode import ClipReader, read_clips
from perception.faces_and_voices import (
    SpeakerTurn,
    clip_span,
    find_faces,
    find_turns,
    group_faces,
    group_voices,
)
from perception.frame_keeper import sample_frames
from perception.hearing import NOTHING_HEARD, Heard, SpeechModels, find_sounds, recognise
from perception.images import Blobs, likeness
from perception.keyframes import ChosenKeyframe, keyframe_candidates, pick_keyframes, read_screen
from perception.source import SourceInfo

if TYPE_CHECKING:
    from domain.media import Stage
    from models.ports import (
        FaceEngine,
        ImageEncoder,
        ObjectDetector,
        ScreenReader,
        SoundClassifier,
        SpeakerEncoder,
        Speech,
    )
    from perception.decode import RawClip


# Detects objects on the keyframes of one clip, with boxes and times.


def find_objects(
    chosen: Sequence[ChosenKeyframe], detector: ObjectDetector | None
) -> tuple[SeenObject, ...]:
    """Return the objects on each keyframe, by time, best score first; boxes in its pixels."""
    if detector is None:
        return ()
    found = []
    for one in chosen:
        for thing in detector.objects(one.image):
            x0, y0, x1, y1 = thing.box
            box = Box(x0=x0, y0=y0, x1=x1, y1=y1)
            at = one.keyframe.time_ms
            found.append(SeenObject(time_ms=at, label=thing.label, score=thing.score, box=box))
    return tuple(found)


class PerceptionModels(SpeechModels, Protocol):
    """The perception models."""

    @property
    def sounds(self) -> SoundClassifier | None:
        """Recognises kinds of sound, if the profile has such a model."""

    @property
    def faces(self) -> FaceEngine:
        """Detects and embeds faces."""

    @property
    def speaker(self) -> SpeakerEncoder:
        """Embeds voices."""

    @property
    def screen(self) -> ScreenReader:
        """Reads screen text."""

    @property
    def objects(self) -> ObjectDetector | None:
        """Detects objects, if the profile has a detector."""

    @property
    def images(self) -> ImageEncoder | None:
        """Embeds images, if the profile has an image-text model."""


@dataclass(frozen=True)
class Perceived:
    """A percept, the JPEGs it names by their SHA-256, and what a model is shown of the clip.

    ``sampled`` are the frames that keepers choose from. The percept has all utterances once
    ``after`` is called on what was perceived of the clip before.
    """

    percept: Percept
    blobs: dict[str, bytes]
    view: ClipView = KEYFRAMES_ONLY
    sampled: tuple[TimedImage, ...] = ()
    heard: Heard = NOTHING_HEARD

    def after(self, words: Sequence[Speech]) -> Perceived:
        """Return this with the first words of the clip, recognised with the clip before it."""
        clip = self.percept.clip
        gaps = [gap for gap in self.percept.gaps if gap.reason != GapReason.UNHEARD]
        gaps += (
            Gap(
                span=clip_span(one.words[0].start_ms, one.words[-1].end_ms, clip),
                reason=GapReason.UNHEARD,
            )
            for one in (*words, *self.heard.speech)
            if not one.text
        )
        utterances = self.heard.utterances(words, clip)
        percept = self.percept.model_copy(update={"utterances": utterances, "gaps": tuple(gaps)})
        return replace(self, percept=percept)


def perceive(
    raw: RawClip,
    models: PerceptionModels,
    settings: WatchSettings,
    skipped_stages: Collection[Stage] = (),
) -> Perceived:
    """Perceive one clip by itself; the same clip gives the same percept.

    What is heard is recognised beside what is seen: neither keeps two processors busy by itself.
    Stages ``skipped_stages`` are left out: their models are not even loaded. ``raw.frames`` is
    emptied once the faces are found: the frames would be held beside what large models compute.

    Raises:
        SetupError: a model's weights are not there.
        ModelError: a model failed.
    """
    blobs = Blobs()
    (said, voices, sounds), seen = run_both(
        partial(_perceive_audio, raw, models, settings, skipped_stages),
        partial(_perceive_pictures, raw, models, settings, skipped_stages, blobs),
    )
    gaps = tuple(Gap(span=span, reason=GapReason.DAMAGED) for span in raw.gaps)
    heard = {"voices": voices, "sounds": sounds}
    percept = seen.model_copy(update={**heard, "gaps": gaps, "error": raw.error})
    trim_heap()
    return Perceived(percept, dict(blobs), heard=said).after(())


def _perceive_pictures(
    raw: RawClip,
    models: PerceptionModels,
    settings: WatchSettings,
    skipped_stages: Collection[Stage],
    blobs: Blobs,
) -> Percept:
    """Perceive the pictures; their JPEGs go into ``blobs``."""
    candidates = keyframe_candidates(raw.frames, settings, raw.clip.span.end_ms)
    chosen = pick_keyframes(raw.frames, candidates, settings, blobs)
    readable = chosen if "screen" not in skipped_stages else ()
    things = chosen if "objects" not in skipped_stages else ()
    faces = tuple[Group, ...]()
    if raw.frames and "faces" not in skipped_stages:
        keyframes = [one.index for one in chosen]
        shots = [candidate.shot for candidate in candidates]
        detected = find_faces(raw.frames, shots, keyframes, models.faces, settings)
        faces = group_faces(detected, models.faces.same_person, raw.clip, settings, blobs)
    raw.frames.clear()
    trim_heap()
    kept = list[Keyframe]()
    if chosen:
        encoder = models.images
        rows = (
            [None] * len(chosen) if encoder is None else encoder.images([c.image for c in chosen])
        )
        for one, row in zip(chosen, rows, strict=True):
            vectors = {
                "vector": None if row is None else tuple(row.tolist()),
                "image_encoder": None if encoder is None else encoder.name,
                "likeness": tuple(likeness(one.image).tolist()),
            }
            kept.append(one.keyframe.model_copy(update=vectors))
    return Percept(
        clip=raw.clip,
        keyframes=tuple(kept),
        screen_texts=read_screen(readable, models.screen) if readable else (),
        objects=find_objects(things, models.objects) if things else (),
        faces=faces,
    )


def _perceive_audio(
    raw: RawClip,
    models: PerceptionModels,
    settings: WatchSettings,
    skipped_stages: Collection[Stage],
) -> tuple[Heard, tuple[Group, ...], tuple[Sound, ...]]:
    """Recognise speech, voices and sounds; sounds cost too little to be skipped."""
    said, voices = NOTHING_HEARD, tuple[Group, ...]()
    if "speech" not in skipped_stages and (raw.samples.any() or raw.following.any()):
        turns, hz = list[SpeakerTurn](), settings.audio_hz
        if spans := models.activity.spans(raw.samples):
            turns = find_turns(raw.samples, spans, models.speaker, hz)
            voices = group_voices(turns, raw.samples, raw.clip, models.speaker, settings)
            trim_heap()
        known = frozenset(voice.number for voice in voices)
        said = replace(recognise(raw, models, settings), turns=tuple(turns), voices=known)
    classifier = models.sounds if raw.samples.any() else None
    sounds = find_sounds(raw.samples, classifier, raw.clip, settings) if classifier else ()
    return said, voices, sounds


class ModelRecipes(PerceptionModels, Protocol):
    """Models with a recipe, from which a copy loads its own models."""

    @property
    def recipe(self) -> object:
        """The recipe that the models are loaded by."""


# What is handed over is small both ways: which clip of which file is perceived how, and what was
# found, with the few JPEGs that are kept. Frames and sound stay where they are decoded.
@dataclass(frozen=True)
class Order:
    """One clip to perceive. ``threads`` is how many one model of one worker uses.

    ``memory`` says what a model is shown of the clip, ``sampled_ms`` are the intervals at which
    frames are sampled for keepers.
    """

    path: Path
    info: SourceInfo
    clip: int
    tools: ModelRecipes
    settings: WatchSettings
    threads: int
    memory: MemorySettings = field(default_factory=MemorySettings)
    sampled_ms: tuple[int, ...] = ()


@dataclass(frozen=True)
class Delivery:
    """A percept, the seconds it took, and the worker (host, process and thread)."""

    perceived: Perceived
    seconds: float
    by: str


def carry_out(order: Order) -> Delivery:
    """Perceive one clip with this thread's own models, which are loaded once.

    Raises:
        HomerError: as `decode_and_perceive`.
    """
    allow_threads(order.threads)
    tools: ModelRecipes | None = getattr(_here, "tools", None)
    if tools is None or tools.recipe != order.tools.recipe:
        tools = _here.tools = copy(order.tools)
    reader: ClipReader | None = getattr(_here, "reader", None)
    if reader is None or reader.source != (order.path, order.info, order.settings):
        reader = _here.reader = ClipReader(order.path, order.info, order.settings, read_clips)
    return decode_and_perceive(
        reader, order.clip, tools, order.settings, order.memory, order.sampled_ms
    )


def decode_and_perceive(
    reader: ClipReader,
    clip: int,
    tools: PerceptionModels,
    settings: WatchSettings,
    memory: MemorySettings,
    sampled_ms: Collection[int] = (),
) -> Delivery:
    """Decode one clip and perceive it with these models, and sample its frames for keepers.

    Raises:
        MediaError: the file is not there, or no longer what was probed.
        SetupError: a model's weights are not there.
        ModelError: a model failed.
    """
    start = time.monotonic()
    raw = reader.clip(clip)
    faults.fault_point(faults.FaultPoint.DECODED)
    # Before perceiving, which empties the frames.
    sampled = sample_frames(raw, sampled_ms, settings.jpeg_quality)
    view = clip_view(raw, memory, settings)
    found = replace(perceive(raw, tools, settings), view=view, sampled=sampled)
    faults.fault_point(faults.FaultPoint.PERCEIVED)
    me = f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"
    return Delivery(found, time.monotonic() - start, me)


_here: Any = threading.local()
"""This thread's models, and the reader of the file that it was last asked for."""
