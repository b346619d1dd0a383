"""How much is kept of a video by its age, and what a command line says of times and spans."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.errors import InputError, NotFound
from domain.retention import RANK, RetainSettings, Tier
from domain.time import TimeSpan
from library.registry import ACTS
from library.removal import LONGEST_MS

FEWER = Tier(after_days=7, keep="fewer")
TEXT = Tier(after_days=30, keep="text")
NOTHING = Tier(after_days=365, keep="nothing")
ALL = RetainSettings(tiers=(FEWER, TEXT, NOTHING))


@pytest.mark.parametrize(
    ("days", "tier"),
    [
        (0, None),
        (6.999, None),
        (7, FEWER),
        (29.9, FEWER),
        (30, TEXT),
        (364, TEXT),
        (365, NOTHING),
        (9_999, NOTHING),
    ],
)
def test_the_oldest_tier_that_is_reached_holds(days: float, tier: Tier | None) -> None:
    assert ALL.tier(timedelta(days=days)) == tier


def test_without_tiers_everything_is_stored_for_ever() -> None:
    assert RetainSettings().tier(timedelta(days=10**5)) is None


@st.composite
def settings(draw: st.DrawFn) -> RetainSettings:
    ages = sorted(draw(st.sets(st.integers(1, 900), max_size=4)))
    keeps = st.sampled_from(sorted(RANK, key=lambda one: RANK[one]))
    kept = sorted((draw(keeps) for _ in ages), key=lambda one: RANK[one])
    tiers = zip(ages, kept, strict=True)
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


DELETE = next(act for act in ACTS if act.command == "delete")


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
