"""Moments of videos, put together from what a search found or an answer cites."""

from __future__ import annotations

from collections.abc import Sequence

from domain.asking import Citation, Evidence
from domain.moments import Moment
from domain.people import tags_in_words
from store.database import Store
from views.library import videos_named
from views.moment import frame_at


def moments_of(
    store: Store, items: Sequence[Citation | Evidence], as_of_ms: int | None = None
) -> list[Moment]:
    """Return moments with titles and images; with ``as_of_ms``, no images of later frames."""
    titles = videos_named(store, [item.video for item in items])
    made = list[Moment]()
    for item in items:
        frame = frame_at(store, item.video, item.span.start_ms, item.ref, as_of_ms)
        made.append(
            Moment(
                ref=item.ref,
                video=item.video,
                title=titles[item.video].title if item.video in titles else item.video,
                span=item.span,
                clip=item.clip,
                text=tags_in_words(item.full_text),
                score=item.score if isinstance(item, Evidence) else item.support,
                image=None if frame is None else image_path(item.video, frame.ref),
            )
        )
    return made


def image_path(video: str, ref: str) -> str:
    """Return the path over HTTP of the image that a ref names."""
    kind = "frames" if ref.startswith("f") else "keyframes"
    return f"/media/{kind}/{video}/{ref[1:]}"
