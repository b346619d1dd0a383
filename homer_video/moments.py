"""What a search found, and answers, for programs and notebooks, which show images of it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, overload

from domain.errors import BlobGone
from domain.moments import Answered, Moment
from domain.time import in_seconds
from domain.words import format_time, plain_line
from library.answers import confidence_line, one_line, option_line
from library.moments import frame_at
from store.database import Store

if TYPE_CHECKING:
    import pandas

SHOWN_WITH_IMAGE = 6
"""Moments that a notebook shows with an image; the others have text only."""
COLUMNS = ("ref", "video", "title", "start_s", "end_s", "score", "text")


class FoundMoments(Sequence[Moment]):
    """Moments in order, best first; a notebook shows them with their images.

    Args:
        found: the moments.
        store: has their images.
        nothing_close: whether these are only the nearest, since nothing close was found.
    """

    def __init__(
        self, found: Iterable[Moment], store: Store, *, nothing_close: bool = False
    ) -> None:
        self._found, self._store, self.nothing_close = tuple(found), store, nothing_close

    @overload
    def __getitem__(self, index: int) -> Moment: ...
    @overload
    def __getitem__(self, index: slice) -> FoundMoments: ...
    def __getitem__(self, index: int | slice) -> Moment | FoundMoments:
        """Return one moment, or some of them."""
        if isinstance(index, int):
            return self._found[index]
        return FoundMoments(self._found[index], self._store, nothing_close=self.nothing_close)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._found)

    def __repr__(self) -> str:
        """Return a line for each moment."""
        lines = ["nothing close; what was nearest:"] if self.nothing_close else []
        return "\n".join([*lines, *(plain_line(str(one)) for one in self)]) or "nothing found"

    def image(self, moment: Moment) -> bytes | None:
        """Return the image of a moment as a JPEG; None where there is none near."""
        frame = frame_at(self._store, moment.video, moment.span.start_ms, moment.ref)
        with suppress(BlobGone):
            return None if frame is None else self._store.blobs.get(frame.blob)
        return None

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with a row for each moment and the columns ``COLUMNS``."""
        import pandas

        rows = [in_seconds(one.model_dump(mode="json")) for one in self._found]
        return pandas.DataFrame(rows, columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        return table_of(self)


def table_of(moments: FoundMoments) -> str:
    """Return moments as an HTML table: image, time, text."""
    remark = "<p>Nothing close was found; what was nearest:</p>" if moments.nothing_close else ""
    rows = ""
    for number, one in enumerate(moments):
        time, picture = format_time(one.span.start_ms), ""
        image = moments.image(one) if number < SHOWN_WITH_IMAGE else None
        if image is not None:
            alt, data = escape(f"{one.title} at {time}"), b64encode(image).decode()
            picture = f'<img width="160" alt="{alt}" src="data:image/jpeg;base64,{data}">'
        rows += f"<tr><td>{picture}</td><td>{escape(one.title)}<br>{time}</td>"
        rows += f'<td style="text-align:left">{escape(one.text)}</td></tr>'
    return f"{remark}<table>{rows}</table>" if rows else "<p>Nothing was found.</p>"


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
