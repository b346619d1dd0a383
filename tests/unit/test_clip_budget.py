"""A language model is shown of a clip what fits into its budget, and its calls stay within that."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.calls import CallRecord
from domain.errors import ModelError
from domain.media import IdentityKind, Percept
from domain.memories import ClipMemories, MemorySource
from domain.people import Identity
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
from tests.support.memory import VIDEO, face, keyframe, percept, said

GOOD = '{"lines": [{"kind": "episodic", "text": "They talk."}]}'
LINES = "lines of speech"


def lines(count: int, text: str = "They talk of the bridge.") -> tuple[PromptItem, ...]:
    return tuple(PromptItem(f"{n}: {text}") for n in range(count))


def images(count: int, *, crop: bool = False) -> tuple[PromptItem, ...]:
    return tuple(PromptItem(f"image {n}", b"jpeg", crop=crop) for n in range(count))


ITEMS = st.builds(
    PromptItem, text=st.text(max_size=60), image=st.none() | st.just(b"jpeg"), crop=st.booleans()
)
PARTS = st.dictionaries(st.sampled_from(REDUCTION_ORDER), st.lists(ITEMS, max_size=20).map(tuple))


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
    assert {name: len(items) for name, items in few.items()} == {
        "keyframes": 1,
        "faces": 8,
        LINES: 100,
    }
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
        self.sink(call(took, purpose))
        return type("Reply", (), {"value": read_value(text, schema)})


def call(tokens: int, purpose: str) -> CallRecord:
    return CallRecord("r", purpose, "p", "m", (), {"text": ""}, None, tokens, 0, 0.0, 1)


FRAMES = {f"{n:064}": b"jpeg" for n in range(3)}
PEOPLE = ClipPeople(faces={0: Identity(id=1, kind=IdentityKind.FACE, number=0, first_clip=0)})


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
    model = Model(GOOD)
    written = write(model, 120, MemorySettings().clip_tokens)
    assert (written.budget, written.left_out) == (60_000, ())
    assert model.asked[0][1] == 3


def test_with_a_small_budget_images_and_then_words_are_left_out_and_told() -> None:
    model = Model(GOOD)
    written = write(model, 3_000, MIN_CLIP_TOKENS)
    (asked, shown, _) = model.asked[0]
    assert shown == 0
    assert written.left_out[0] == "3 of 3 keyframes"
    assert written.left_out[1].endswith("of 300 lines of speech")
    # The model is shown less; what was said is remembered to the last word all the same.
    quoted = [one for one in written.drafts if one.source == MemorySource.SAID]
    assert len(quoted) == 300
    assert asked[1].content.count("nine ten") < 300


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
