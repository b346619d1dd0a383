"""Answers for programs and notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from domain.asked import Answered
from domain.words import plain_line
from homer_video.moments import FoundMoments, table_of
from library.answers import confidence_line, one_line, option_line
from store.database import Store


class VideoAnswer:
    """An answer as it is on record, with all that ``Answered`` has; notebooks show its images."""

    def __init__(self, answered: Answered, store: Store) -> None:
        self._answered, self._store = answered, store

    def __getattr__(self, name: str) -> Any:
        """Return what is on record, such as ``confidence`` or ``citations``."""
        return getattr(self._answered, name)

    @property
    def text(self) -> str:
        """The answer as a person reads it."""
        return option_line(one_line(self.answer), self.option, self.chosen)

    @property
    def moments(self) -> FoundMoments:
        """What it cites, with images."""
        return FoundMoments(self.citations, self._store)

    def __str__(self) -> str:
        """Return the answer as a person reads it."""
        return self.text

    def __repr__(self) -> str:
        """Return the answer, its confidence and a line for each citation."""
        cited = repr(self.moments) if self.citations else "nothing is cited"
        return f"{self.text}\n{self._remarks}\n{cited}"

    @property
    def _remarks(self) -> str:
        return plain_line("; ".join(filter(None, (confidence_line(self._answered), self.note))))

    def _repr_html_(self) -> str:
        cited = table_of(self.moments) if self.citations else "<p>Nothing is cited.</p>"
        return f"<p><b>{escape(self.text)}</b><br>{escape(self._remarks)}</p>{cited}"
