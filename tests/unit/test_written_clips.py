"""Whatever a language model writes about a clip, only what is sound of it becomes memory."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ModelError, ReplayMiss
from domain.media import IdentityKind
from domain.memories import ClipMemories, Memory, MemoryKind, MemorySource
from domain.people import TAG, Character, Identity
from memory.writers.llm_clip import MAX_TRIES, LlmClipWriter, WrittenClip
from memory.writers.port import ClipContext
from models.chat import read_value
from people.characters import ClipPeople
from tests.support.memory import VIDEO, clip, face, percept, said, span, voice

CLIP = 2
SEEN = percept(
    CLIP,
    faces=(face(0, 1, (61, 64)),),
    voices=(voice(0, 1, (62, 64)),),
    utterances=(said(62, "It is late.", voice=0),),
)


def identity(kind: IdentityKind, number: int) -> Identity:
    return Identity(id=number + 1, kind=kind, number=number, first_clip=0)


PEOPLE = ClipPeople(
    faces={0: identity(IdentityKind.FACE, 3)},
    voices={0: identity(IdentityKind.VOICE, 5)},
    characters=(Character(number=1, name="Ada", faces=(3,)),),
)
FACT = Memory(
    id=12,
    video=VIDEO,
    clip=0,
    kind=MemoryKind.CHARACTER,
    text="<face_3> is tired.",
    span=span(0, 1),
    source=MemorySource.MODEL,
)
CONTEXT = ClipContext(VIDEO, "talk", (FACT,))


class Model:
    """A language model that gives these replies, the last one again and again."""

    sees = False

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.prompts: list[list[Any]] = []

    def __call__(self, sink: object, replay: object) -> Any:
        return self

    def ask(self, messages: list[Any], schema: type[WrittenClip], **_: object) -> Any:
        self.prompts.append(messages)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return type("Reply", (), {"value": read_value(reply, schema)})


def reply(*lines: dict[str, Any], **more: Any) -> str:
    return json.dumps(
        {"lines": [{"kind": "episodic", "text": "So.", **one} for one in lines], **more}
    )


def write(*replies: str | Exception) -> ClipMemories:
    return LlmClipWriter(Model(*replies)).write(SEEN, PEOPLE, CONTEXT)


def by_model(written: ClipMemories) -> list[Any]:
    return [one for one in written.drafts if one.source is MemorySource.MODEL]


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        (61, 62.5, (61, 62.5)),
        (0, 1000, (60, 90)),
        (70, 20, (60, 90)),
        (None, 70, (60, 90)),
        (math.nan, 70, (60, 90)),
        (-math.inf, math.inf, (60, 90)),
        (1e300, 1e301, (60, 90)),
        (85, 1e300, (85, 90)),
    ],
)
def test_a_line_lies_within_its_clip(start: Any, end: Any, shown: tuple[float, float]) -> None:
    (line,) = by_model(write(reply({"start_s": start, "end_s": end})))
    assert line.span == span(*shown)


def test_words_that_were_said_are_stored_beside_what_the_model_writes() -> None:
    written = write(reply({"text": "  <face_3>  opens\n the door. "}))
    assert [(one.source, one.text, one.tags) for one in written.drafts] == [
        (MemorySource.MODEL, "<face_3> opens the door.", ("<face_3>",)),
        (MemorySource.SAID, "It is late.", ("<voice_5>",)),
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"text": "<face_9> dances."}, {"text": "<voice_3> sings."}, {"text": "<character_7> sits."}],
)
def test_a_line_about_nobody_is_asked_again_then_left_out(wrong: dict[str, Any]) -> None:
    model = Model(reply(wrong, {}))
    written = LlmClipWriter(model).write(SEEN, PEOPLE, CONTEXT)
    assert [one.text for one in by_model(written)] == ["So."]
    assert len(model.prompts) == MAX_TRIES
    output = str(model.prompts[-1][-1].content)
    assert TAG.findall(wrong["text"])[0][0] in output
    assert "does not exist" in output


def test_a_clip_of_which_no_line_can_be_stored_is_an_error() -> None:
    with pytest.raises(ModelError, match="no line that can be stored"):
        write(reply({"text": "<face_9> dances."}))
    with pytest.raises(ModelError, match="no line that can be stored"):
        write(reply())
    with pytest.raises(ModelError, match="cannot be read"):
        write("I would rather not.")


@given(st.integers(1, 60), st.integers(1, 60))
def test_a_clip_gives_no_more_lines_than_its_density_allows(most: int, written: int) -> None:
    model = Model(reply(*[{"text": f"Fact {n}."} for n in range(written)]))
    found = LlmClipWriter(model, most).write(SEEN, PEOPLE, CONTEXT)
    assert len(by_model(found)) == min(most, written)
    assert len(model.prompts) == 1
    assert f"at most {most} lines" in str(model.prompts[0][0].content)
    assert [one for one in found.drafts if one.source is MemorySource.SAID]


def test_of_too_many_lines_those_go_that_add_least() -> None:
    texts = ["A red boat lands.", "A boat, red, lands here.", "It gets late.", "Anna sings."]
    model = Model(reply(*({"text": text} for text in texts)))
    found = LlmClipWriter(model, lines=2).write(SEEN, PEOPLE, CONTEXT)
    assert [one.text for one in by_model(found)] == [texts[0], texts[3]]


def test_a_call_that_is_not_on_record_ends_a_replay_at_once() -> None:
    model = Model(ReplayMiss("gone"))
    with pytest.raises(ReplayMiss):
        LlmClipWriter(model).write(SEEN, PEOPLE, CONTEXT)
    assert len(model.prompts) == 1


@pytest.mark.parametrize(
    ("ref", "closed"), [("m12", (12,)), ("[m12]", (12,)), (" m12 ", (12,)), ("m13", ()), ("12", ())]
)
def test_only_a_known_fact_can_be_closed(ref: str, closed: tuple[int, ...]) -> None:
    (line,) = by_model(write(reply({"contradicts": [ref]})))
    assert line.contradicts == closed


TAGS = st.sampled_from(["<face_3>", "<face_0>", "<voice_5>", "<character_1>", "<face_03>", "Ada"])
TEXTS = st.lists(TAGS | st.text(max_size=6), max_size=4).map(" ".join)
LINES = st.fixed_dictionaries(
    {"kind": st.sampled_from([str(kind) for kind in MemoryKind] + ["gossip"]), "text": TEXTS},
    optional={
        "start_s": st.none() | st.floats() | st.integers(-100, 200),
        "end_s": st.none() | st.floats() | st.integers(-100, 200),
        "contradicts": st.lists(st.sampled_from(["m12", "m1", "", "[m12]", "x"]), max_size=2),
    },
)
WRITTEN = st.fixed_dictionaries(
    {"lines": st.lists(LINES, max_size=3)},
    optional={
        "same": st.lists(
            st.fixed_dictionaries({"face": TAGS, "voice": TAGS, "reason": TEXTS}), max_size=2
        ),
        "names": st.lists(st.fixed_dictionaries({"tag": TAGS, "name": TEXTS}), max_size=2),
    },
).map(json.dumps)


@given(st.lists(WRITTEN | st.text(max_size=20), min_size=1, max_size=3))
def test_nothing_but_clip_its_people_and_its_time_reaches_the_memory(replies: list[str]) -> None:
    try:
        written = write(*replies)
    except ModelError:
        return
    known, whole = PEOPLE.tags(), clip(CLIP).span
    assert "It is late." in [one.text for one in written.drafts]
    assert by_model(written)
    for draft in written.drafts:
        assert draft.text.strip()
        assert set(draft.tags) <= known
        assert draft.span.overlap_ms(whole) == draft.span.length_ms
        assert set(draft.contradicts) <= {12}
        assert {found[0] for found in TAG.finditer(draft.text)} <= known
    assert {tag for tag, _ in written.names} <= known
    assert all(name.strip() for _, name in written.names)
    assert {(one.face, one.voice) for one in written.statements} <= {(3, 5)}
    starts = [one.span.start_ms for one in written.drafts]
    assert starts == sorted(starts)
