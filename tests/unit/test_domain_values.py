"""The words of the system are whole and frozen; spans hold together, and clocks are read."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

import domain
from domain.asking import Action, Answer, Citation, Evidence, Question, Subtask
from domain.base import Frozen
from domain.errors import InputError, NotFound
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
from domain.settings import (
    RANK,
    AskSettings,
    MemorySettings,
    RetainSettings,
    Settings,
    Tier,
    WatchSettings,
)
from domain.time import TimeSpan, format_clock, parse_clock, parse_clock_span
from library.registry import ACTS
from library.removal import LONGEST_MS

FEWER = Tier(after_days=7, keep="fewer")
TEXT = Tier(after_days=30, keep="text")
NOTHING = Tier(after_days=365, keep="nothing")
DELETE = next(act for act in ACTS if act.command == "delete")
BOX = {"x0": 0, "y0": 0, "x1": 2, "y1": 2}
SPAN = {"start_ms": 0, "end_ms": 1}
FACT = {"kind": "plot", "text": "So.", "span": SPAN, "source": "model"}
REF = {"ref": "m1", "video": "v", "span": SPAN, "text": "t", "score": 0.5}


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
    assert (found.watch.clip_ms, found.watch.keyframes) == (30_000, 3)
    assert found.watch.entropy_weight == 0.3
    assert (found.watch.shot_threshold, found.watch.sample_fps) == (30.0, 5.0)
    assert (found.watch.keyframe_gap_ms, found.watch.hue_bins) == (2_000, 32)
    assert found.ask.skill_cosine == 0.45
    assert (found.memory.patch_every, found.memory.same_fact) == (10, 0.85)
    assert (found.ask.subtasks, found.ask.attempts, found.ask.rounds) == (5, 3, 10)
    assert found.ask.images == 5
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


DAY_MS = 86_400_000
"""What a Postgres bigint holds with room to spare."""

SEARCH = next(act for act in ACTS if act.command == "search")
MOMENTS = st.integers(0, 400 * DAY_MS)
SPANS = st.tuples(MOMENTS, MOMENTS).map(lambda pair: TimeSpan.of(*sorted(pair)))


@pytest.mark.parametrize(
    ("ms", "shown"),
    [
        (0, "00:00"),
        (999, "00:00"),
        (3_599_999, "59:59"),
        (3_600_000, "1:00:00"),
        (DAY_MS - 1, "23:59:59"),
        (DAY_MS, "d2 0:00:00"),
        (6 * DAY_MS + 3_661_000, "d7 1:01:01"),
    ],
)
def test_a_clock_has_hours_and_days_only_where_there_are_any(ms: int, shown: str) -> None:
    assert format_clock(ms) == shown


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("7", 7_000),
        ("1:30", 90_000),
        ("01:30.5", 90_500),
        ("0:00:01.", 1_000),
        (" 10:00 ", 600_000),
        ("d1 0:10", 10_000),
        ("d2  0:00:01", DAY_MS + 1_000),
    ],
)
def test_a_time_is_read_as_people_write_it(text: str, ms: int) -> None:
    assert parse_clock(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "soon", "1:2:3:4", "-1", "1:-2", "1:", ":30"),
        *("nan", "inf", "1e3", "1_0:00", "1,5"),
        # A day is written like d2.
        *("d0 1:00", "d00 1:00", "d-1 1:00", "d 1:00", "2 1:00"),
        *("d2", "dd2 1:00", "1:00 d2", "1.5:00"),
        # No video is as long as these.
        *("٣:00", "1:00\x00", f"d{'9' * 400} 1:00", "9" * 400, "d99999999999999999999 1:00"),
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time: write MM:SS"):
        parse_clock(text)


@given(st.text(alphabet="0123456789:.d -", max_size=30) | st.text(max_size=30))
def test_any_text_is_a_moment_that_the_store_can_hold_or_no_time(text: str) -> None:
    try:
        found = parse_clock(text)
    except ValueError:
        return
    assert 0 <= found <= 2**62


@given(MOMENTS)
def test_a_shown_time_reads_back_to_its_second(ms: int) -> None:
    assert parse_clock(format_clock(ms)) == ms // 1000 * 1000
    assert parse_clock(f"d{ms // DAY_MS + 1} 0:00") == ms // DAY_MS * DAY_MS


def test_a_span_does_not_end_before_it_starts() -> None:
    assert TimeSpan.of(5, 5).length_ms == 0
    with pytest.raises(ValidationError, match="ends \\(4 ms\\) before it starts \\(5 ms\\)"):
        TimeSpan.of(5, 4)
    with pytest.raises(ValidationError):
        TimeSpan.of(-1, 4)


@given(SPANS, SPANS)
def test_overlap_is_mutual_and_no_longer_than_either(one: TimeSpan, other: TimeSpan) -> None:
    shared = one.overlap_ms(other)
    assert shared == other.overlap_ms(one)
    assert 0 <= shared <= min(one.length_ms, other.length_ms)
    assert one.overlap_ms(one) == one.length_ms


@given(SPANS, SPANS)
def test_a_union_is_the_smallest_span_that_holds_both(one: TimeSpan, other: TimeSpan) -> None:
    both = one.union(other)
    assert both == other.union(one)
    assert both.overlap_ms(one) == one.length_ms
    assert both.overlap_ms(other) == other.length_ms
    assert {both.start_ms, both.end_ms} <= {one.start_ms, one.end_ms, other.start_ms, other.end_ms}


@pytest.mark.parametrize(
    ("text", "start_s", "end_s"),
    [("12:30", 750, 751), ("12:30-12:45", 750, 765), (" 1:00:00 - 1:00:10 ", 3600, 3610)],
)
def test_a_time_to_look_at_is_a_second_or_a_span(text: str, start_s: int, end_s: int) -> None:
    assert parse_clock_span(text) == TimeSpan.of(start_s * 1000, end_s * 1000)
    assert SEARCH.arguments(at=text).at == parse_clock_span(text)  # type: ignore[attr-defined]


@pytest.mark.parametrize("text", ["", "noon", "12:45-12:30", "12:30-later", "-5"])
def test_what_is_no_time_to_look_at_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the reader's
        parse_clock_span(text)
    with pytest.raises(InputError, match=r"^at: "):
        SEARCH.call(None, {"mode": "keyframe", "at": text})


def test_only_a_search_for_images_looks_at_a_time() -> None:
    with pytest.raises(InputError, match="mode keyframe"):
        SEARCH.call(None, {"query": "a cup", "at": "12:30"})
    assert SEARCH.arguments().at is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("days", "tier"),
    [(0, None), (6.999, None), (7, FEWER), (29.9, FEWER), (30, TEXT), (365, NOTHING)],
)
def test_the_oldest_tier_that_is_reached_holds(days: float, tier: Tier | None) -> None:
    assert RetainSettings(tiers=(FEWER, TEXT, NOTHING)).tier(timedelta(days=days)) == tier


def test_without_tiers_everything_is_stored_for_ever() -> None:
    assert RetainSettings().tier(timedelta(days=10**5)) is None


@st.composite
def settings(draw: st.DrawFn) -> RetainSettings:
    ages = sorted(draw(st.sets(st.integers(1, 900), max_size=4)))
    keeps = st.sampled_from(sorted(RANK, key=lambda one: RANK[one]))
    tiers = zip(ages, sorted((draw(keeps) for _ in ages), key=lambda one: RANK[one]), strict=True)
    return RetainSettings(tiers=tuple(Tier(after_days=age, keep=keep) for age, keep in tiers))


@given(settings(), st.integers(0, 1000), st.integers(0, 1000))
def test_older_a_video_less_is_stored_of_it(found: RetainSettings, one: int, other: int) -> None:
    def kept(days: int) -> int:
        tier = found.tier(timedelta(days=days))
        return -1 if tier is None else RANK[tier.keep]

    young, old = sorted((one, other))
    assert kept(young) <= kept(old)


@pytest.mark.parametrize(
    ("tiers", "output"),
    [
        ((TEXT, FEWER), "one after the other"),
        ((FEWER, FEWER), "one after the other"),
        ((Tier(after_days=1, keep="nothing"), FEWER), "keeps more"),
        ((Tier(after_days=1, keep="text"), FEWER), "'fewer' keeps more than 'text'"),
    ],
)
def test_tiers_that_go_back_are_refused(tiers: tuple[Tier, ...], output: str) -> None:
    with pytest.raises(ValidationError, match=output):
        RetainSettings(tiers=tiers)


def test_several_tiers_of_a_kind_may_follow_each_other() -> None:
    smaller = Tier(after_days=14, keep="fewer", side=64)
    assert RetainSettings(tiers=(FEWER, smaller)).tier(timedelta(days=20)) == smaller


@pytest.mark.parametrize(
    "wrong",
    [
        {"after_days": 0, "keep": "text"},
        {"after_days": -1, "keep": "text"},
        {"after_days": 1, "keep": "half"},
        {"after_days": 1, "keep": "fewer", "keyframes": 0},
        {"after_days": 1, "keep": "fewer", "side": 0},
        {"after_days": 1, "keep": "fewer", "width": 5},
    ],
)
def test_a_tier_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Tier.model_validate(wrong)


@pytest.mark.parametrize(
    ("begin", "end", "span"),
    [
        ("12:00", "14:30", (720_000, 870_000)),
        (None, "5", (0, 5_000)),
        ("1:00:00", None, (3_600_000, LONGEST_MS)),
        ("d2 0:00:00", "d2 0:00:00.5", (86_400_000, 86_400_500)),
    ],
)
def test_a_span_lies_between_two_clocks(
    begin: str | None, end: str | None, span: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted: list[TimeSpan] = []

    def preview(_: object, __: str, found: TimeSpan) -> None:
        deleted.append(found)
        raise NotFound("it is only looked at")

    monkeypatch.setattr("library.removal.preview_span_deletion", preview)
    with pytest.raises(NotFound):
        DELETE.call(None, {"video": "talk", "begin": begin, "end": end})
    assert deleted == [TimeSpan.of(*span)]


@pytest.mark.parametrize("end", ["5", "noon", ""])
def test_a_span_that_is_none_is_refused(end: str) -> None:
    with pytest.raises(InputError, match=r"not after the start, 00:06|end: .* is not a time"):
        DELETE.call(None, {"video": "talk", "begin": "6", "end": end})
