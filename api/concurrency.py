"""How many questions are searched at a time, and that none is left behind when the server ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from api.problems import Crowded

LOOK_S = 0.05


class QuestionSlots:
    """Places for what takes long. One is held until the work is over, not only until it is left.

    ``closing`` is set when the server ends.
    """

    def __init__(self, places: int) -> None:
        self.places = places
        self.closing = asyncio.Event()
        self._taken, self._lock = 0, threading.Lock()

    def take(self) -> None:
        """Takes a place.

        Raises:
            Crowded: there is none.
        """
        with self._lock:
            if self._taken >= self.places:
                raise Crowded(f"{self.places} of these are at work, and no more go at a time")
            self._taken += 1

    def give_back(self) -> None:
        """Gives a place back; from any thread."""
        with self._lock:
            self._taken -= 1

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place for as long as this lasts.

        Raises:
            Crowded: there is none.
        """
        self.take()
        try:
            yield
        finally:
            self.give_back()

    @property
    def taken(self) -> int:
        """Places that are taken."""
        with self._lock:
            return self._taken

    async def empty(self, within_s: float) -> bool:
        """Waits until no place is taken any more; False where one still is."""
        until = asyncio.get_running_loop().time() + within_s
        while self.taken and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(LOOK_S)
        return not self.taken
