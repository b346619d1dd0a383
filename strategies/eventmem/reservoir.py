"""Reservoir sampling whose choices depend only on the video, the event and the frame's number."""

from __future__ import annotations

from hashlib import sha256


def place_of(video: str, event: int, number: int, size: int) -> int | None:
    """Return the place that a frame takes in its event's reservoir; None if it is not kept.

    The n-th frame is kept with a chance of size / n, in place of a random one (algorithm R). The
    same frame always takes the same place: nothing has to be carried on to choose the same again.

    Args:
        video: the video's id.
        event: the event's number.
        number: which frame of the event it is, from 1.
        size: places of the reservoir.
    """
    if number <= size:
        return number - 1
    digest = sha256(f"{video}\0{event}\0{number}".encode()).digest()
    # 64 bits more than suffice: that they do not divide evenly changes no chance by 1e-12.
    place = int.from_bytes(digest[:8], "big") % number
    return place if place < size else None
