"""Keyframes are chosen as in the paper, and every one is described."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import Box, IdentityKind, Percept, SeenObject
from domain.memories import ClipMemories, KeyframeDescription, MemorySource
from domain.people import Character, Identity
from domain.settings import WatchSettings
from memory.drafts import update_tags
from memory.writers.llm_clip import LlmClipWriter, WrittenClip
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext
from models.chat import read_value
from people.characters import ClipPeople
from perception.frames import Frame, FrameMetrics
from perception.images import Blobs
from perception.keyframes import (
    Candidate,
    ShotPosition,
    choose_keyframes,
    keyframe_candidates,
    pick_keyframes,
    shot_positions,
)
from tests.support.memory import VIDEO, face, keyframe, percept, said, text_at
from tests.support.signals import decoded

GAP = 2_000
BLOBS = {"a" * 64: b"one", "b" * 64: b"two", "c" * 64: b"three"}
FACE = Identity(id=1, kind=IdentityKind.FACE, number=4, first_clip=0)
PEOPLE = ClipPeople(faces={0: FACE}, characters=(Character(number=2, name="Ada", faces=(4,)),))


@st.composite
def clips(draw: st.DrawFn) -> list[Candidate]:
    """Frames 200 ms apart, with cuts and qualities (ties are likely)."""
    count = draw(st.integers(0, 60))
    cuts = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    marks = draw(st.lists(st.integers(0, 12), min_size=count, max_size=count))
    shots = np.cumsum(cuts).tolist()
    places = shot_positions([i * 200 for i in range(count)], shots, 200)
    rows = zip(shots, marks, places, strict=True)
    return [Candidate(i * 200, shot, float(mark), at) for i, (shot, mark, at) in enumerate(rows)]


def best(found: list[Candidate], among: list[int]) -> int:
    return max(among, key=lambda i: (-found[i].position, found[i].quality, -i))


def written_out(found: list[Candidate], count: int) -> list[int]:
    """The selection of section 3.1, step by step, with frames beside cuts after all others."""
    shots = sorted({c.shot for c in found})
    firsts = [best(found, [i for i, c in enumerate(found) if c.shot == shot]) for shot in shots]
    passing = [i for i in firsts if found[i].position == ShotPosition.SHORT_SHOT]
    firsts = [i for i in firsts if i not in passing]
    clear = [i for i, c in enumerate(found) if c.position == ShotPosition.CLEAR]
    chosen: list[int] = []
    while firsts and len(chosen) < count:
        chosen.append(best(found, firsts))
        firsts.remove(chosen[-1])
    while len(chosen) < count:
        far = [
            i
            for i in (*clear, *passing)
            if all(abs(found[i].time_ms - found[j].time_ms) >= GAP for j in chosen)
        ]
        if not far:
            break
        chosen.append(best(found, far))
    return sorted(chosen)


@given(clips(), st.integers(1, 5))
def test_the_choice_is_the_papers(found: list[Candidate], count: int) -> None:
    assert choose_keyframes(found, count, GAP) == written_out(found, count)


def placed(*lengths: int) -> str:
    """Where the frames of shots of so many samples each lie: clear, beside a cut, passing."""
    shots = [shot for shot, length in enumerate(lengths) for _ in range(length)]
    found = shot_positions([i * 200 for i in range(len(shots))], shots, 200)
    return "".join("cbp"[place] for place in found)


def test_a_flash_and_the_steps_of_a_cross_fade_are_passing() -> None:
    assert placed(5, 1, 5) == "cccbb" + "p" + "bbccc"
    assert placed(5, 2, 1, 1, 5) == "cccbb" + "pppp" + "bbccc"
    assert placed(5, 3, 5) == "cccbb" + "bbb" + "bbccc"


def test_a_picture_that_stands_still_is_no_flash() -> None:
    """It comes once, and lasts until the next one."""
    found = shot_positions([0, 200, 5_200], [0, 1, 2], 200, 9_000)
    assert found == [ShotPosition.SHORT_SHOT, ShotPosition.NEAR_CUT, ShotPosition.NEAR_CUT]
    assert shot_positions([0], [0], 200, 9_000) == [ShotPosition.CLEAR]
    assert shot_positions([], [], 200) == []


def test_a_flash_does_not_take_the_place_of_a_second_frame_of_a_long_shot() -> None:
    shots = [*[0] * 60, 1, *[2] * 10]
    at = shot_positions([i * 200 for i in range(71)], shots, 200)
    found = [
        Candidate(i * 200, shot, 99.0 if shot == 1 else 71.0 - i, at[i])
        for i, shot in enumerate(shots)
    ]
    assert choose_keyframes(found, 3, GAP) == [0, 10, 63]


def frame(ms: int, grey: int, change: float = 0.0, sharp: float = 1.0) -> Frame:
    rgb = np.full((48, 64, 3), grey, np.uint8)
    return Frame(
        ms, FrameMetrics(change, sharp, 1.0), av.VideoFrame.from_ndarray(rgb, format="rgb24")
    )


def test_keyframes_carry_their_numbers_and_their_jpegs() -> None:
    frames = [frame(0, 40), frame(1_000, 90, 50.0, 4.0), frame(2_000, 200, 80.0, 2.0)]
    settings, blobs = WatchSettings(), Blobs()
    chosen = pick_keyframes(frames, keyframe_candidates(frames, settings, 3_000), settings, blobs)
    assert [one.index for one in chosen] == [0, 1, 2]
    assert [one.keyframe.shot for one in chosen] == [0, 1, 2]
    assert chosen[1].keyframe.quality == pytest.approx(4.0 * 1.3)
    for one in chosen:
        key = one.keyframe
        assert hashlib.sha256(blobs[key.blob]).hexdigest() == key.blob
        pixels = decoded(blobs[key.blob])
        assert pixels.shape == (key.height, key.width, 3) == one.image.shape
        assert abs(int(pixels.mean()) - int(one.image.mean())) <= 2


def thing(time_s: float, label: str) -> SeenObject:
    box = Box(x0=0, y0=0, x1=2, y1=2)
    return SeenObject(time_ms=round(1000 * time_s), label=label, score=0.8, box=box)


SEEN = percept(
    0,
    keyframes=tuple(keyframe(time, sha) for time, sha in zip((2, 12, 22), BLOBS, strict=True)),
    faces=(face(0, 1, (1.5, 3), (11, 13)),),
    objects=(thing(2, "person"), thing(2, "cup"), thing(12, "person")),
    screen_texts=(text_at(2, "PARIS"), text_at(2, "<face_4> forged", row=1)),
    utterances=(said(1, "Hello."),),
)
RECOGNISED = {
    2_000: "in view: <face_4>; seen: a person, a cup; text on screen: PARIS / ‹face_4› forged",
    12_000: "in view: <face_4>; seen: a person",
}


class Model:
    """A language model that sees and gives one reply."""

    def __init__(self, reply: dict[str, Any], sees: bool = True) -> None:
        self.reply, self.sees = reply, sees
        self.prompts: list[str] = []
        self.images: list[bytes] = []
        self.labels: list[str] = []

    def __call__(self, sink: object, replay: object) -> Any:
        return self

    def ask(self, messages: list[Any], schema: type[WrittenClip], **more: Any) -> Any:
        self.prompts += [message.content for message in messages]
        self.images, self.labels = list(more["images"]), list(more["labels"])
        return read_value(json.dumps(self.reply), schema)


def written(model: Model, seen: Percept = SEEN) -> ClipMemories:
    return LlmClipWriter(model).write(seen, PEOPLE, ClipContext(VIDEO, blobs=BLOBS))


def by_model(keyframes: Any, **more: Any) -> ClipMemories:
    lines = [{"kind": "episodic", "text": "Somebody waits."}]
    return written(Model({"lines": lines, "keyframes": keyframes}, **more))


def texts(memories: ClipMemories) -> dict[int, str]:
    return {one.time_ms: one.text for one in memories.descriptions}


def test_without_a_model_what_was_recognised_describes_a_keyframe() -> None:
    assert texts(LocalClipWriter().write(SEEN, PEOPLE, ClipContext(VIDEO))) == RECOGNISED


def test_a_keyframe_is_described_as_the_model_saw_it() -> None:
    found = by_model(
        [
            {"image": 1, "text": "<face_4> in a red\n coat before a green door."},
            {"image": 2, "text": "<character_2> pours tea from a blue pot."},
            {"image": 3, "text": "An empty street at night."},
        ]
    )
    assert texts(found) == {
        2_000: "<face_4> in a red coat before a green door.",
        12_000: "<character_2> pours tea from a blue pot.",
        22_000: "An empty street at night.",
    }
    assert found.dropped == ()


@pytest.mark.parametrize(
    ("keyframes", "said_of_it"),
    [
        ([{"image": 1, "text": ""}], "at 2.0 s: the model wrote none that can be read"),
        ([{"image": "one", "text": "A door."}], "at 2.0 s: the model wrote none"),
        ([{"text": "A door."}, 7, None], "at 2.0 s: the model wrote none"),
        ("a red door", "at 12.0 s: the model wrote none"),
        ({"1": "a red door"}, "at 12.0 s: the model wrote none"),
        (None, "at 22.0 s: the model wrote none"),
        ([{"image": 1, "text": "<face_9> waves."}], "at 2.0 s: it names somebody who is not"),
        ([{"image": 9, "text": "A door."}], "an image that is no keyframe"),
    ],
)
def test_a_malformed_description_is_dropped_and_said(keyframes: Any, said_of_it: str) -> None:
    found = by_model(keyframes)
    assert any(said_of_it in one for one in found.dropped)
    assert texts(found) == RECOGNISED
    assert [one.text for one in found.drafts if one.source == "model"] == ["Somebody waits."]


def test_what_is_missing_is_filled_in_from_what_was_recognised() -> None:
    found = by_model([{"image": 2, "text": "A blue pot."}, {"image": 2, "text": "Again."}])
    assert texts(found) == {2_000: RECOGNISED[2_000], 12_000: "A blue pot."}
    assert len(found.dropped) == 2


def test_a_model_without_eyes_is_not_reproached_for_what_it_was_not_shown() -> None:
    found = by_model([], sees=False)
    assert (texts(found), found.dropped) == (RECOGNISED, ())


def test_the_model_is_told_to_describe_and_which_images_are_keyframes() -> None:
    model = Model({"lines": [{"kind": "plot", "text": "They wait."}]})
    written(model)
    assert any("keyframes: for every image that is a keyframe" in one for one in model.prompts)
    assert any("1. keyframe at 2.0 s\n2. keyframe at 12.0 s" in one for one in model.prompts)
    assert model.images[:3] == list(BLOBS.values())


def test_a_description_follows_somebody_who_joined_another_character_meanwhile() -> None:
    before = ClipPeople(faces={0: FACE}, characters=(Character(number=2, faces=(4,)),))
    now = ClipPeople(faces={0: FACE}, characters=(Character(number=1, faces=(4,)),))
    text = KeyframeDescription(time_ms=2_000, text="<character_2> waves.")
    found = update_tags(ClipMemories(drafts=(), descriptions=(text,)), before, now)
    assert [one.text for one in found.descriptions] == ["<character_1> waves."]


def test_of_each_person_is_told_when_seen_and_on_which_image_by_the_closest_look() -> None:
    other = Identity(id=2, kind=IdentityKind.FACE, number=5, first_clip=0)
    people = ClipPeople(faces={0: FACE, 1: other, 2: FACE}, characters=PEOPLE.characters)
    faces = (face(0, 1, (1.1, 2.1)), face(1, 2, (2.0, 3.0)), face(2, 1, (11, 13)))
    model = Model({"lines": [{"kind": "plot", "text": "They wait."}]})
    seen = SEEN.model_copy(update={"faces": faces})
    LlmClipWriter(model).write(seen, people, ClipContext(VIDEO, blobs=BLOBS))
    ada = "<character_2>, known as Ada: seen 1.1-2.1 s, 11.0-13.0 s; image 2 left"
    assert f"{ada}\n<face_5>: seen 2.0-3.0 s; image 1 left\n" in model.prompts[1]


@pytest.mark.parametrize("twice", [False, True])
def test_a_second_look_adds_what_the_first_left_out(twice: bool) -> None:
    class Careless(Model):
        def ask(self, messages: list[Any], schema: type[Any], **more: Any) -> Any:
            waits = {"kind": "episodic", "text": "<face_4> waits."}
            first = [waits | {"start_s": at, "end_s": at + 2} for at in (0, 8)]
            later = [*first, waits, {"kind": "episodic", "text": "Her coat is red."}]
            self.reply = {"lines": first if schema is WrittenClip else later}
            return super().ask(messages, schema, **more)

    model = Careless({})
    writer = LlmClipWriter(model, looks_twice=twice)
    drafts = writer.write(SEEN, PEOPLE, ClipContext(VIDEO, blobs=BLOBS)).drafts
    told = [one.text for one in drafts if one.source == MemorySource.MODEL]
    assert sorted(told) == ["<face_4> waits.", "<face_4> waits.", "Her coat is red."][: 2 + twice]
    assert model.images == [*BLOBS.values()], "the same images"
