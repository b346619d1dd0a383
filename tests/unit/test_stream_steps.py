"""The order in which clips of a stream are watched, what comes of failures, and how it is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import DatabaseError, HomerError, ModelError
from domain.settings import WorkSettings
from domain.streams import Gap, GapReason, PictureTally, StreamClip
from domain.time import TimeSpan
from flows.live_stream import StreamIngestion, follow_stream
from flows.perception_workers import WorkerPool
from flows.watching import Listener
from library.memory import describe_gap, describe_watching
from tests.support.eager_steps import EAGER

EVERY = 3
"""Clips after which the event graph is brought up to date."""


class Source:
    """A stream of so many clips. ``late`` ones are there only for whoever waits for them.

    ``left`` are those that an earlier run left in hand; ``fails`` says which step of which fails.
    """

    def __init__(
        self,
        clips: int,
        late: frozenset[int] = frozenset(),
        left: int = 0,
        fails: dict[str, HomerError] | None = None,
    ) -> None:
        self.coming, self.late, self.fails = list(range(left, clips)), late, fails or {}
        self.left = list(range(left))
        self.notes = list[str]()
        self.given_up, self.told = list[int](), list[int]()
        memory = SimpleNamespace(patch_every=EVERY)
        self.workspace = SimpleNamespace(settings=SimpleNamespace(memory=memory))
        self.video = None

    def taken(self) -> list[int]:
        return self.left

    def take_up(self, *, wait: bool) -> int | None:
        if not self.coming or (self.coming[0] in self.late and not wait):
            return None
        return self.coming.pop(0)

    def give_up(self, clip: int, _: ModelError) -> None:
        self.given_up.append(clip)

    def _do(self, step: str) -> None:
        self.notes.append(step)
        if (error := self.fails.get(step)) is not None:
            raise error

    def perceive(self, clip: int) -> None:
        self._do(f"perceive {clip}")

    def remember(self, clip: int) -> None:
        self._do(f"remember {clip}")

    def build_windows(self, *, final: bool) -> None:
        assert not final
        self.notes.append("build windows")

    def remembered(self, _: object, clip: int) -> None:
        self.told.append(clip)

    def failed(self, _: object, clip: int, error: ModelError) -> None:
        self.told.append(-clip)

    def follow(self, most: int | None = None) -> bool:
        """Watches it by itself; whether more may come."""
        work, pool = cast(StreamIngestion, self), WorkerPool(WorkSettings())
        return follow_stream(work, EAGER, pool, cast(Listener, self), most)


def test_the_next_clip_is_perceived_before_one_is_remembered_if_it_is_there() -> None:
    source = Source(3)
    assert not source.follow()
    assert source.notes == [
        *("perceive 0", "perceive 1", "remember 0", "perceive 2", "remember 1", "remember 2"),
        "build windows",
    ]


@given(st.integers(0, 9), st.frozensets(st.integers(0, 8)), st.integers(0, 3))
def test_each_clip_is_watched_in_order(clips: int, late: frozenset[int], left: int) -> None:
    source = Source(max(clips, left), late, left)
    assert not source.follow()
    order = list(range(max(clips, left)))
    for step in ("perceive", "remember"):
        assert [int(n.split()[1]) for n in source.notes if n.startswith(step)] == order
    assert source.told == order
    assert source.notes.count("build windows") == len(order) // EVERY


@given(st.integers(0, 9), st.frozensets(st.integers(0, 8)), st.integers(1, 4))
def test_runs_of_few_clips_do_as_one_run_does(clips: int, late: frozenset[int], most: int) -> None:
    source, runs = Source(clips, late), 0
    while source.follow(most):
        runs += 1
    assert source.told == list(range(clips))
    assert runs == clips // most


def test_a_run_takes_no_clip_that_it_will_not_watch() -> None:
    source = Source(5)
    assert source.follow(2)
    assert (source.coming, source.notes[-1]) == ([2, 3, 4], "remember 1")


@pytest.mark.parametrize("step", ["perceive", "remember"])
def test_a_clip_that_a_model_fails_on_is_given_up_and_the_stream_goes_on(step: str) -> None:
    source = Source(4, fails={f"{step} 2": ModelError("the model did not answer")})
    assert not source.follow()
    assert (source.given_up, source.told) == ([2], [0, 1, -2, 3])
    assert ("remember 2" in source.notes) is (step == "remember")
    assert source.notes.count("build windows") == 1


def test_a_database_that_is_gone_ends_it() -> None:
    source = Source(4, fails={"remember 1": DatabaseError("the database is away")})
    with pytest.raises(DatabaseError):
        source.follow()
    assert (source.given_up, source.told) == ([], [0])


def watched(level: int = 0, lag_ms: int | None = None, **tally: int) -> str:
    return describe_watching(
        StreamClip(clip=0, level=level, lag_ms=lag_ms, tally=PictureTally(**tally))
    )


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"came": 750, "sampled": 150}, "750 frames came, 150 looked at"),
        ({"came": 5, "damaged": 2}, "5 frames came, 0 looked at, 2 did not decode"),
        ({"lag_ms": 12_040}, "0 frames came, 0 looked at; lag 12.0 s"),
        ({"lag_ms": 0}, "0 frames came, 0 looked at; lag 0.0 s"),
        ({"level": 1}, "0 frames came, 0 looked at; level 1: 50% of the samples"),
        (
            {"level": 3, "lag_ms": 500},
            "0 frames came, 0 looked at; level 3: 20% of the samples, without objects, screen; "
            "lag 0.5 s",
        ),
    ],
)
def test_how_a_clip_was_watched_in_words(given: dict[str, Any], output: str) -> None:
    assert watched(**given) == output


@pytest.mark.parametrize("reason", GapReason)
def test_a_gap_has_its_reason_and_what_came_in_it(reason: GapReason) -> None:
    gap = Gap(span=TimeSpan.of(0, 5), reason=reason)
    assert describe_gap(gap) == reason.value
    assert describe_gap(gap.model_copy(update={"frames": 7})) == f"{reason.value} (7 frames)"
