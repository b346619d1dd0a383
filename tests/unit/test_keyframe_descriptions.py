"""Every keyframe is described: as the model wrote it, else by what was recognised on it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from domain.media import Box, IdentityKind, Percept, SeenObject
from domain.memories import ClipMemories, KeyframeDescription, MemorySource
from domain.people import Character, Identity
from memory.drafts import update_tags
from memory.writers.llm_clip import LlmClipWriter, WrittenClip
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext
from models.chat import read_value
from people.characters import ClipPeople
from tests.support.memory import VIDEO, face, keyframe, percept, said, text_at

BLOBS = {"a" * 64: b"one", "b" * 64: b"two", "c" * 64: b"three"}
FACE = Identity(id=1, kind=IdentityKind.FACE, number=4, first_clip=0)
PEOPLE = ClipPeople(faces={0: FACE}, characters=(Character(number=2, name="Ada", faces=(4,)),))


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
        return type("Reply", (), {"value": read_value(json.dumps(self.reply), schema)})


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
        ([{"image": 0, "text": "A door."}], "an image that is no keyframe"),
    ],
)
def test_a_malformed_description_is_dropped_and_said_and_the_clip_is_stored(
    keyframes: Any, said_of_it: str
) -> None:
    found = by_model(keyframes)
    assert any(said_of_it in one for one in found.dropped)
    assert texts(found) == RECOGNISED
    assert [one.text for one in found.drafts if one.source == "model"] == ["Somebody waits."]


def test_what_is_missing_is_filled_in_from_what_was_recognised() -> None:
    found = by_model([{"image": 2, "text": "A blue pot."}, {"image": 2, "text": "Again."}])
    assert texts(found) == {2_000: RECOGNISED[2_000], 12_000: "A blue pot."}
    assert len(found.dropped) == 2


def test_a_reply_without_descriptions_is_read() -> None:
    found = written(Model({"lines": [{"kind": "plot", "text": "They wait."}]}))
    assert texts(found) == RECOGNISED


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
