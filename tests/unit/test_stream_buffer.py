"""Clips handed from one thread to another: in order, a few at most, and none is lost unsaid."""

from __future__ import annotations

import signal
from threading import Thread

import numpy as np
import pytest

from cli.door import until_stopped
from domain.media import Clip
from domain.streams import PictureTally
from domain.time import TimeSpan
from perception.decode import RawClip
from perception.live_clips import CapturedClip, ClipBuffer


def clip(number: int) -> CapturedClip:
    span = TimeSpan.of(2_000 * number, 2_000 * number + 2_000)
    raw = RawClip(Clip(index=number, span=span), [], np.zeros(0, np.float32))
    return CapturedClip(raw, PictureTally(), 0, ())


def taken(buffer: ClipBuffer, *, wait: bool = True) -> int | None:
    found = buffer.get(wait=wait)
    return None if found is None else found.raw.clip.index


def test_clips_come_out_in_order_and_a_full_buffer_says_so() -> None:
    buffer = ClipBuffer(2)
    assert [buffer.put(clip(n), wait=False) for n in range(3)] == [True, True, False]
    assert len(buffer) == 2
    assert [taken(buffer) for _ in range(2)] == [0, 1]
    assert taken(buffer, wait=False) is None


def test_what_waits_for_room_goes_on_when_there_is_some() -> None:
    buffer = ClipBuffer(1)
    said: list[bool] = []
    buffer.put(clip(0), wait=False)
    thread = Thread(target=lambda: said.append(buffer.put(clip(1), wait=True)))
    thread.start()
    assert taken(buffer) == 0
    assert taken(buffer) == 1
    thread.join(5)
    assert said == [True]


def test_at_the_end_what_is_there_is_still_given_and_then_nothing() -> None:
    buffer = ClipBuffer(2)
    buffer.put(clip(0), wait=False)
    buffer.finish()
    assert [taken(buffer), taken(buffer)] == [0, None]


def test_nobody_waits_for_a_taker_that_has_left() -> None:
    buffer = ClipBuffer(1)
    said: list[bool] = []
    buffer.put(clip(0), wait=False)
    thread = Thread(target=lambda: said.append(buffer.put(clip(1), wait=True)))
    thread.start()
    buffer.cancel()
    thread.join(5)
    assert said == [False]
    assert buffer.put(clip(2), wait=True) is False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_ctrl_c_ends_the_stream_and_the_second_everything(number: int) -> None:
    before = signal.getsignal(number)
    with until_stopped() as stop:
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt, match="run the same command to continue"):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before
