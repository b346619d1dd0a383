"""The words of the system: values that cannot be changed, are whole, and survive JSON."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import domain
from domain.asking import Action, Answer, Citation, Evidence, Question, Subtask
from domain.base import Frozen
from domain.media import Box, Group, IdentityKind, Utterance, Video
from domain.memories import (
    Memory,
    MemoryDraft,
    MemoryKind,
    MemorySource,
    MemoryView,
    Scope,
    Segment,
)
from domain.people import Character, Identity, IdentityStatement
from domain.settings import AskSettings, MemorySettings, Settings, WatchSettings
from domain.time import TimeSpan


def every_model() -> list[type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}
    for module in pkgutil.iter_modules(domain.__path__, "domain."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(kind, BaseModel) and kind.__module__.startswith("domain."):
                found[f"{kind.__module__}.{kind.__name__}"] = kind
    return list(found.values())


@pytest.mark.parametrize("kind", every_model(), ids=lambda kind: kind.__name__)
def test_every_word_is_frozen_refuses_the_unknown_and_says_what_it_is(kind: type[Frozen]) -> None:
    assert issubclass(kind, Frozen)
    assert kind.__doc__
    with pytest.raises(ValidationError, match=r"Extra inputs|union|tag|not_a_field"):
        kind.model_validate({"not_a_field": 1})


BOX = {"x0": 0, "y0": 0, "x1": 2, "y1": 2}
SPAN = {"start_ms": 0, "end_ms": 1}
FACT = {"kind": "plot", "text": "So.", "span": SPAN, "source": "model"}
REF = {"ref": "m1", "video": "v", "span": SPAN, "text": "t", "score": 0.5}


@pytest.mark.parametrize(
    ("kind", "good", "wrong"),
    [
        (Box, BOX, {"x1": 0}),
        (Box, BOX, {"x0": -1}),
        (Video, {"id": "0" * 16, "title": "t", "path": None, "duration_ms": 1}, {"id": "0" * 15}),
        (Utterance, {"span": SPAN, "text": ""}, {"confidence": 1.1}),
        (Group, None, {"kind": "face", "number": 0, "sightings": []}),
        (MemoryDraft, FACT, {"text": ""}),
        (MemoryDraft, FACT, {"kind": "gossip"}),
        (MemoryDraft, FACT, {"contradicts": [0]}),
        (Memory, {**FACT, "id": 1, "video": "v", "clip": 0}, {"weight": 0}),
        (
            IdentityStatement,
            {"face": 0, "voice": 0, "clip": 0, "support": 1, "reason": ""},
            {"support": 0},
        ),
        (Evidence, REF, {"ref": "x1"}),
        (Evidence, REF, {"score": 1.5}),
        (Answer, {"text": "t", "confidence": 0.95}, {"confidence": 0.96}),
        (Answer, {"text": "t", "confidence": 0}, {"option": "AB"}),
        (Action, {"kind": "search"}, {"kind": "dance"}),
        (Action, {"kind": "search"}, {"mode": "Smell it!"}),
        (Subtask, {"id": "t1", "text": "x"}, {"id": "t0"}),
        (Question, {"text": "q", "videos": ["v"]}, {"text": ""}),
        (Question, {"text": "q", "videos": ["v"]}, {"videos": []}),
        (Question, {"text": "q", "videos": ["v"]}, {"options": ["x"] * 27}),
        (Question, {"text": "q", "videos": ["v"]}, {"as_of_ms": -1}),
        (Scope, {"video": "v", "last_clip": -1}, {"last_clip": -2}),
        (MemoryView, {"scopes": [{"video": "v", "last_clip": 0}]}, {"scopes": []}),
        (WatchSettings, {}, {"clip_ms": 0}),
        (MemorySettings, {}, {"same_fact": 0}),
        (AskSettings, {}, {"rounds": 0}),
    ],
)
def test_what_cannot_be_is_refused(
    kind: type[Frozen], good: dict[str, Any] | None, wrong: dict[str, Any]
) -> None:
    if good is not None:
        assert kind.model_validate(good)
    with pytest.raises(ValidationError):
        kind.model_validate({**(good or {}), **wrong})


def test_the_paper_s_numbers_are_the_defaults() -> None:
    found = Settings()
    assert (found.watch.clip_ms, found.watch.keyframes, found.watch.entropy_weight) == (
        30_000,
        3,
        0.3,
    )
    assert (found.watch.shot_threshold, found.watch.sample_fps) == (30.0, 5.0)
    assert (found.watch.keyframe_gap_ms, found.watch.hue_bins) == (2_000, 32)
    assert found.ask.skill_cosine == 0.45
    assert (found.memory.patch_every, found.memory.same_fact) == (10, 0.85)
    assert (found.ask.subtasks, found.ask.attempts, found.ask.rounds, found.ask.images) == (
        5,
        3,
        10,
        5,
    )
    assert (found.ask.plan_temperature, found.ask.act_temperature) == (0.2, 0.8)


def test_things_are_cited_and_called_by_their_own_names() -> None:
    span = TimeSpan.of(0, 1)
    fact = Memory(
        id=7,
        video="v",
        clip=0,
        kind=MemoryKind.PLOT,
        text="t",
        span=span,
        source=MemorySource.MODEL,
    )
    assert fact.citation == "[m7]"
    segment = Segment(id=3, video="v", number=0, label="l", summary="s", clips=(0,), span=span)
    assert segment.citation == "[s3]"
    assert Identity(id=1, kind=IdentityKind.VOICE, number=4, first_clip=0).tag == "<voice_4>"
    assert Character(number=2).label == Character(number=2).tag == "<character_2>"
    assert Character(number=2, name="Ada").label == "Ada"
    view = MemoryView(scopes=(Scope(video="b", last_clip=0), Scope(video="a", last_clip=1)))
    assert view.videos == ("b", "a")
    assert Citation(ref="k1", video="v", span=span, text="").clip is None
