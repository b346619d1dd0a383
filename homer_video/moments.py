"""FoundMoments of videos that a search found or an answer cites, for programs and notebooks."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, overload

from pydantic import Field, NonNegativeFloat

from domain.asking import Citation, Evidence
from domain.base import Frozen
from domain.errors import BlobGone
from domain.people import tags_in_words
from store.database import Store
from views.moment import frame_at
from views.words import format_time, plain_line

if TYPE_CHECKING:
    import pandas

SHOWN_WITH_IMAGE = 6
"""FoundMoments that a notebook shows with an image; the others have text only."""
COLUMNS = ("ref", "video", "title", "start_s", "end_s", "score", "text")


class Moment(Frozen):
    """A span of a video with what was said, read or seen in it.

    ``score`` is in [0, 1]: how close it is to a query, or how well it supports an answer; None
    where nothing scored it. ``ref`` names it, as in ``m12``.
    """

    ref: str
    video: str = Field(description="the id of the video")
    title: str
    start_s: NonNegativeFloat
    end_s: NonNegativeFloat
    score: float | None = Field(default=None, ge=0, le=1)
    text: str

    def __str__(self) -> str:
        """Return the title, the time and the text."""
        return plain_line(f"{self.title} {format_time(round(self.start_s * 1000))}: {self.text}")


ImageOf = Callable[[Moment], bytes | None]
"""Returns the image of a moment as a JPEG; None where there is none near."""


class FoundMoments(Sequence[Moment]):
    """FoundMoments in order, best first; a notebook shows them with their images.

    Args:
        found: the moments.
        image_of: returns a moment's image.
        nothing_close: whether these are only the nearest, since nothing close was found.
    """

    def __init__(
        self, found: Iterable[Moment], image_of: ImageOf, *, nothing_close: bool = False
    ) -> None:
        self._found, self._image_of = tuple(found), image_of
        self.nothing_close = nothing_close

    @overload
    def __getitem__(self, index: int) -> Moment: ...
    @overload
    def __getitem__(self, index: slice) -> FoundMoments: ...
    def __getitem__(self, index: int | slice) -> Moment | FoundMoments:
        """Return one moment, or some of them."""
        if isinstance(index, int):
            return self._found[index]
        return FoundMoments(self._found[index], self._image_of, nothing_close=self.nothing_close)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._found)

    def __repr__(self) -> str:
        """Return a line for each moment."""
        lines = ["nothing close; what was nearest:"] if self.nothing_close else []
        return "\n".join([*lines, *map(str, self._found)]) or "nothing found"

    def image(self, moment: Moment) -> bytes | None:
        """Return the image of a moment as a JPEG; None where there is none near."""
        return self._image_of(moment)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with a row for each moment and the columns ``COLUMNS``."""
        import pandas

        return pandas.DataFrame([one.model_dump() for one in self._found], columns=list(COLUMNS))

    def _repr_html_(self) -> str:
        return table_of(self)


def moments_of(
    found: Iterable[Evidence | Citation],
    titles: dict[str, str],
    store: Store,
    *,
    nothing_close: bool = False,
) -> FoundMoments:
    """Return evidence or citations as moments, with images from the store."""
    made = (_moment(one, titles) for one in found)
    return FoundMoments(made, lambda one: _image(store, one), nothing_close=nothing_close)


def _moment(one: Evidence | Citation, titles: dict[str, str]) -> Moment:
    return Moment(
        ref=one.ref,
        video=one.video,
        title=titles.get(one.video, one.video),
        start_s=one.span.start_ms / 1000,
        end_s=one.span.end_ms / 1000,
        score=one.score if isinstance(one, Evidence) else one.support,
        text=tags_in_words(one.full_text),
    )


def _image(store: Store, moment: Moment) -> bytes | None:
    frame = frame_at(store, moment.video, round(moment.start_s * 1000), moment.ref)
    if frame is None:
        return None
    try:
        return store.blobs.get(frame.blob)
    except BlobGone:
        return None


def table_of(moments: FoundMoments) -> str:
    """Return moments as an HTML table: image, time, text."""
    remark = "<p>Nothing close was found; what was nearest:</p>" if moments.nothing_close else ""
    rows = "".join(
        f"<tr><td>{_picture(moments, one) if number < SHOWN_WITH_IMAGE else ''}</td>"
        f"<td>{escape(one.title)}<br>{format_time(round(one.start_s * 1000))}</td>"
        f'<td style="text-align:left">{escape(one.text)}</td></tr>'
        for number, one in enumerate(moments)
    )
    return f"{remark}<table>{rows}</table>" if rows else "<p>Nothing was found.</p>"


def _picture(moments: FoundMoments, moment: Moment) -> str:
    image = moments.image(moment)
    if image is None:
        return ""
    alt = escape(f"{moment.title} at {format_time(round(moment.start_s * 1000))}")
    return f'<img width="160" alt="{alt}" src="data:image/jpeg;base64,{b64encode(image).decode()}">'
