"""What a model is shown of a clip fits its budget; only what is sound of its words stays."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.calls import CallRecord
from domain.errors import ModelError, ReplayMiss
from domain.media import IdentityKind, Percept
from domain.memories import ClipMemories, Memory, MemoryKind, MemorySource
from domain.people import TAG, Character, Identity
from domain.settings import IMAGE_TOKENS, MIN_CLIP_TOKENS, MemorySettings, Settings, WatchSettings
from memory.writers.clip_page import (
    MIN_ITEMS,
    MIN_LINES,
    REDUCTION_ORDER,
    PromptItem,
    count_tokens,
    describe_omitted,
    fit_parts,
    subsample,
)
from memory.writers.llm_clip import MAX_TRIES, LlmClipWriter, WrittenClip
from memory.writers.port import ClipContext
from models.chat import Replay, Sink, read_value
from models.messages import Message, request_tokens
from people.characters import ClipPeople
from tests.support.memory import VIDEO, clip, face, keyframe, percept, said, span, voice

LINES = "lines of speech"
FRAMES = {f"{n:064}": b"jpeg" for n in range(3)}
PEOPLE = ClipPeople(faces={0: Identity(id=1, kind=IdentityKind.FACE, number=0, first_clip=0)})
ITEMS = st.builds(
    PromptItem, text=st.text(max_size=60), image=st.none() | st.just(b"jpeg"), crop=st.booleans()
)
PARTS = st.dictionaries(st.sampled_from(REDUCTION_ORDER), st.lists(ITEMS, max_size=20).map(tuple))
CLIP = 2
SEEN = percept(
    CLIP,
    faces=(face(0, 1, (61, 64)),),
    voices=(voice(0, 1, (62, 64)),),
    utterances=(said(62, "It is late.", voice=0),),
)


def lines(count: int, text: str = "They talk of the bridge.") -> tuple[PromptItem, ...]:
    return tuple(PromptItem(f"{n}: {text}") for n in range(count))


def images(count: int, *, crop: bool = False) -> tuple[PromptItem, ...]:
    return tuple(PromptItem(f"image {n}", b"jpeg", crop=crop) for n in range(count))


@given(PARTS, st.integers(-100, 30_000))
def test_what_is_shown_fits_and_keeps_its_order(parts: Any, room: int) -> None:
    kept = fit_parts(parts, room)
    assert count_tokens(kept) <= max(0, room)
    assert kept.keys() == parts.keys()
    for name, items in kept.items():
        every = iter(parts[name])
        assert all(item in every for item in items)
    if count_tokens(parts) <= room:
        assert kept == parts
        assert describe_omitted(parts, kept) == ()


@given(PARTS, st.integers(0, 30_000))
def test_parts_go_in_the_declared_order(parts: Any, room: int) -> None:
    kept = fit_parts(parts, room)
    least = {
        name: min(len(parts.get(name, ())), MIN_ITEMS.get(name, MIN_LINES))
        for name in REDUCTION_ORDER
    }
    counts = {name: len(kept.get(name, ())) for name in REDUCTION_ORDER}
    full = {name: len(parts.get(name, ())) for name in REDUCTION_ORDER}
    for place, name in enumerate(REDUCTION_ORDER):
        before = REDUCTION_ORDER[:place]
        if counts[name] < full[name]:
            assert all(counts[one] <= least[one] for one in before)
        if counts[name] < least[name]:
            assert all(counts[one] == 0 for one in before)


def test_images_go_before_words_and_words_evenly() -> None:
    parts = {"keyframes": images(3), "faces": images(8, crop=True), LINES: lines(100)}
    few = fit_parts(parts, count_tokens(parts) - 2 * IMAGE_TOKENS)
    found = {name: len(items) for name, items in few.items()}
    assert found == {"keyframes": 1, "faces": 8, LINES: 100}
    assert describe_omitted(parts, few) == ("2 of 3 keyframes",)
    fewer = fit_parts(parts, count_tokens({LINES: lines(20)}))
    kept = [parts[LINES].index(one) for one in fewer[LINES]]
    assert not fewer["keyframes"] + fewer["faces"]
    assert len(kept) >= 18
    assert max(b - a for a, b in pairwise(kept)) <= 7


@given(st.lists(st.integers(), max_size=30, unique=True), st.integers(0, 40))
def test_thinning_keeps_so_many_and_the_order(items: list[int], most: int) -> None:
    kept = subsample(items, most)
    assert len(kept) == min(most, len(items))
    assert [one for one in items if one in kept] == list(kept)


class Model:
    """A model that sees, counts its calls as the estimates have it, and keeps what it was sent."""

    sees = True

    def __init__(self, *replies: str, tokens: int | None = None) -> None:
        self.replies, self.tokens = list(replies), tokens
        self.asked: list[tuple[list[Message], int, int]] = []
        self.spent = 0
        self.sink: Sink | None = None

    def __call__(self, sink: Sink | None, replay: Replay | None) -> Any:
        self.sink = sink
        return self

    def ask(
        self,
        messages: Sequence[Message],
        schema: type[WrittenClip],
        *,
        purpose: str,
        images: Sequence[bytes],
        labels: Sequence[str],
        max_tokens: int,
    ) -> Any:
        self.asked.append((list(messages), len(images), max_tokens))
        text = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        took = self.tokens or (request_tokens(messages, schema, len(images), labels) + max_tokens)
        self.spent += took
        assert self.sink is not None
        self.sink(CallRecord("r", purpose, "p", "m", (), {"text": ""}, None, took, 0, 0.0, 1))
        return read_value(text, schema)


def seen(words: int) -> Percept:
    """A clip with three keyframes, a face, and so many words in lines of ten."""
    output = "one two three four five six seven eight nine ten"
    return percept(
        0,
        keyframes=tuple(keyframe(5 + 9 * n, blob) for n, blob in enumerate(FRAMES)),
        faces=(face(0, 1, (1, 4)),),
        utterances=tuple(said(n * 0.01, f"{n} {output}", seconds=0.01) for n in range(words // 10)),
    )


def write(model: Model, words: int, tokens: int, sink: Sink | None = None) -> ClipMemories:
    context = ClipContext(VIDEO, "talk", blobs=FRAMES, sink=sink)
    return LlmClipWriter(model, tokens=tokens).write(seen(words), PEOPLE, context)


def test_a_usual_clip_is_shown_whole_within_the_default_budget() -> None:
    model = Model('{"lines": [{"kind": "episodic", "text": "They talk."}]}')
    written = write(model, 120, MemorySettings().clip_tokens)
    assert (written.budget, written.left_out) == (60_000, ())
    assert model.asked[0][1] == 3


@pytest.mark.parametrize("tokens", [MIN_CLIP_TOKENS, 30_000, 60_000])
@pytest.mark.parametrize("words", [0, 500, 20_000])
def test_all_tries_together_stay_within_the_budget(tokens: int, words: int) -> None:
    kept: list[CallRecord] = []
    bad = '{"lines": [{"kind": "plot", "text": "<face_9> wins."}, {"kind": "plot", "text": "So."}]}'
    model = Model(bad)
    write(model, words, tokens, kept.append)
    assert 1 < len(model.asked) <= MAX_TRIES
    assert model.spent <= tokens
    assert sum(one.tokens_in for one in kept) == model.spent


def test_a_dear_model_is_not_asked_again_and_what_is_sound_is_stored() -> None:
    bad = '{"lines": [{"kind": "plot", "text": "<face_9> wins."}, {"kind": "plot", "text": "So."}]}'
    model = Model(bad, tokens=50_000)
    written = write(model, 100, 60_000)
    assert len(model.asked) == 1
    assert [one.text for one in written.drafts if one.source == MemorySource.MODEL] == ["So."]


def test_a_clip_whose_budget_is_spent_fails_for_the_next_run_and_says_so() -> None:
    with pytest.raises(ModelError, match=r"60000 tokens, and 55000 are spent.*clip_tokens"):
        write(Model("no json", tokens=55_000), 100, 60_000)


def test_an_hour_s_budget_is_shared_out_among_its_clips() -> None:
    def budget(**memory: Any) -> int:
        return Settings(memory=MemorySettings(clip_view="keyframes", **memory)).clip_budget

    assert budget() == 60_000
    assert budget(hour_tokens=2_400_000) == 20_000
    assert budget(hour_tokens=10**9) == 60_000
    assert budget(hour_tokens=2_400_000, clip_tokens=15_000) == 15_000
    with pytest.raises(ValidationError, match="at least 1440000"):
        budget(hour_tokens=1_000_000)
    with pytest.raises(ValidationError, match="less than or equal to 1000000000"):
        budget(clip_tokens=2**31)
    minute = WatchSettings(clip_ms=60_000)
    hour = Settings(watch=minute, memory=MemorySettings(hour_tokens=1_200_000))
    assert hour.clip_budget == 20_000


def identity(kind: IdentityKind, number: int) -> Identity:
    return Identity(id=number + 1, kind=kind, number=number, first_clip=0)


PEOPLE_OF_WRITTEN = ClipPeople(
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


class ModelOfWritten:
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
        return read_value(reply, schema)


def reply(*lines: dict[str, Any], **more: Any) -> str:
    return json.dumps(
        {"lines": [{"kind": "episodic", "text": "So.", **one} for one in lines], **more}
    )


def write_of_written(*replies: str | Exception) -> ClipMemories:
    return LlmClipWriter(ModelOfWritten(*replies)).write(SEEN, PEOPLE_OF_WRITTEN, CONTEXT)


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
    (line,) = by_model(write_of_written(reply({"start_s": start, "end_s": end})))
    assert line.span == span(*shown)


def test_words_that_were_said_are_stored_beside_what_the_model_writes() -> None:
    written = write_of_written(reply({"text": "  <face_3>  opens\n the door. "}))
    assert [(one.source, one.text, one.tags) for one in written.drafts] == [
        (MemorySource.MODEL, "<face_3> opens the door.", ("<face_3>",)),
        (MemorySource.SAID, "It is late.", ("<voice_5>",)),
    ]


@pytest.mark.parametrize(
    "wrong",
    [{"text": "<face_9> dances."}, {"text": "<voice_3> sings."}, {"text": "<character_7> sits."}],
)
def test_a_line_about_nobody_is_asked_again_then_left_out(wrong: dict[str, Any]) -> None:
    model = ModelOfWritten(reply(wrong, {}))
    written = LlmClipWriter(model).write(SEEN, PEOPLE_OF_WRITTEN, CONTEXT)
    assert [one.text for one in by_model(written)] == ["So."]
    assert len(model.prompts) == MAX_TRIES
    output = str(model.prompts[-1][-1].content)
    assert TAG.findall(wrong["text"])[0][0] in output
    assert "does not exist" in output


def test_a_clip_of_which_no_line_can_be_stored_is_an_error() -> None:
    with pytest.raises(ModelError, match="no line that can be stored"):
        write_of_written(reply({"text": "<face_9> dances."}))
    with pytest.raises(ModelError, match="no line that can be stored"):
        write_of_written(reply())
    with pytest.raises(ModelError, match="cannot be read"):
        write_of_written("I would rather not.")


@given(st.integers(1, 60), st.integers(1, 60))
def test_a_clip_gives_no_more_lines_than_its_density_allows(most: int, written: int) -> None:
    model = ModelOfWritten(reply(*[{"text": f"Fact {n}."} for n in range(written)]))
    found = LlmClipWriter(model, most).write(SEEN, PEOPLE_OF_WRITTEN, CONTEXT)
    assert len(by_model(found)) == min(most, written)
    assert len(model.prompts) == 1
    assert f"at most {most} lines" in str(model.prompts[0][0].content)
    assert [one for one in found.drafts if one.source is MemorySource.SAID]


def test_of_too_many_lines_those_go_that_add_least() -> None:
    texts = ["A red boat lands.", "A boat, red, lands here.", "It gets late.", "Anna sings."]
    model = ModelOfWritten(reply(*({"text": text} for text in texts)))
    found = LlmClipWriter(model, lines=2).write(SEEN, PEOPLE_OF_WRITTEN, CONTEXT)
    assert [one.text for one in by_model(found)] == [texts[0], texts[3]]


def test_a_call_that_is_not_on_record_ends_a_replay_at_once() -> None:
    model = ModelOfWritten(ReplayMiss("gone"))
    with pytest.raises(ReplayMiss):
        LlmClipWriter(model).write(SEEN, PEOPLE_OF_WRITTEN, CONTEXT)
    assert len(model.prompts) == 1


@pytest.mark.parametrize(
    ("ref", "closed"), [("m12", (12,)), ("[m12]", (12,)), (" m12 ", (12,)), ("m13", ()), ("12", ())]
)
def test_only_a_known_fact_can_be_closed(ref: str, closed: tuple[int, ...]) -> None:
    (line,) = by_model(write_of_written(reply({"contradicts": [ref]})))
    assert line.contradicts == closed


TAGS = st.sampled_from(["<face_3>", "<face_0>", "<voice_5>", "<character_1>", "<face_03>", "Ada"])
TEXTS = st.lists(TAGS | st.text(max_size=6), max_size=4).map(" ".join)
LINES_OF_WRITTEN = st.fixed_dictionaries(
    {"kind": st.sampled_from([str(kind) for kind in MemoryKind] + ["gossip"]), "text": TEXTS},
    optional={
        "start_s": st.none() | st.floats() | st.integers(-100, 200),
        "end_s": st.none() | st.floats() | st.integers(-100, 200),
        "contradicts": st.lists(st.sampled_from(["m12", "m1", "", "[m12]", "x"]), max_size=2),
    },
)
WRITTEN = st.fixed_dictionaries(
    {"lines": st.lists(LINES_OF_WRITTEN, max_size=3)},
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
        written = write_of_written(*replies)
    except ModelError:
        return
    known, whole = PEOPLE_OF_WRITTEN.tags(), clip(CLIP).span
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
